package adapter

import (
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/internal/option"
)

// OwnerBegin makes the owner of a lock begin with id, for middleware that finds out by
// [core.Info].Owner which of its calls holds a key. Unlike [core.Owner] it does not let other
// calls enter: the rest differs from one call to the next, and the calls exclude one another. id
// is at most 64 bytes, and otherwise as in [core.Owner]. A call whose context holds the lock already
// enters it with the owner that the lock has.
func OwnerBegin(id string) core.Option {
	return inside.Option(func(s *settings) {
		s.OwnerBegin = id
		s.CheckOwner("OwnerBegin", id, option.MaxOwnerBytes/2)
	})
}
