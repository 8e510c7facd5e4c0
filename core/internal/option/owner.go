package option

import (
	"strings"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// MaxOwnerBytes is how long an owner may be that a call has chosen.
const MaxOwnerBytes = 128

// CheckOwner reports whether an id may be an owner, or begin one, and fails if not. The text
// does not repeat it: errors of calls may be shown to anybody.
func (s *Settings[Observer]) CheckOwner(option, id string, maxBytes int) bool {
	switch {
	case id == "":
		s.Fail("%s: the id is empty", option)
	case len(id) > maxBytes:
		s.Fail("%s: the id has %d bytes, at most %d are allowed", option, len(id), maxBytes)
	case strings.ContainsFunc(id, IsControl):
		s.Fail("%s: control characters are not allowed", option)
	case store.IsOwnField(id):
		s.Fail("%s: the id is reserved", option)
	default:
		return true
	}
	return false
}

// IsControl reports whether r is an ASCII control character.
func IsControl(r rune) bool { return r < 0x20 || r == 0x7f }
