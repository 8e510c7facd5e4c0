package adapter

import (
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/internal/option"
)

// OwnerBegin has the owner of a lock begin with id, for middleware that tells from
// [core.Info].Owner which of its calls is in the way. Unlike [core.Owner] it lets nobody
// enter: the rest differs from one attempt to the next, and the calls exclude one another. id
// is at most 64 bytes, and else as in [core.Owner]. A call whose context holds the lock already
// enters it with the owner that it has.
func OwnerBegin(id string) core.Option {
	return inside.Option(func(s *settings) {
		if s.CheckOwner("OwnerBegin", id, option.MaxOwnerBytes/2) {
			s.OwnerBegin = id
		}
	})
}
