package adapter

import (
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// Fallback gives an adapter defaults of its own for [core.Wait], [core.NoWait] and
// [core.MaxWaiters]. They are used where neither [core.New] nor an earlier option says
// otherwise. Other options have no effect in it, but a bad one is refused.
func Fallback(opts ...core.Option) core.Option {
	own, err := inside.Settings(nil, opts)
	return inside.Option(func(s *settings) {
		if err != nil {
			s.Refuse(err)
		}
		if s.Wait == nil {
			s.Wait = own.Wait
		}
		if s.MaxWaiters == nil {
			s.MaxWaiters = own.MaxWaiters
		}
	})
}

// WaitAtMost shortens a wait that would be longer than d, by [core.Wait] or by default. It is
// for middleware that knows when its caller gives up. A negative d is refused.
func WaitAtMost(d time.Duration) core.Option {
	return inside.Option(func(s *settings) {
		if d < 0 {
			s.Fail("WaitAtMost(%v): give 0 or more", d)
		}
		if s.Wait == nil || d < *s.Wait {
			s.Wait = &d
		}
	})
}
