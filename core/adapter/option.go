package adapter

import (
	"fmt"
	"reflect"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/internal/option"
)

// Option returns an option that an adapter understands and a lock does not, such as how refusals are
// answered. value has a type of the adapter's own, which finds it with [Split]. [core.New], calls and
// [Validate] refuse the option; if value is a [fmt.Stringer] its text is the error's, such as "Mode is
// an option of mylock.By".
func Option(value any) core.Option {
	return inside.Option(func(s *settings) {
		s.ForAdapter = value
		if belongs, ok := value.(fmt.Stringer); ok {
			s.Fail("%s", belongs)
		} else {
			s.Fail("an option of type %T is for an adapter that knows it, not for a lock", value)
		}
	})
}

// Split divides the options of middleware: own has the values of type T that [Option] was given,
// and rest all other options, both in order. It checks nothing; [Validate] refuses a value of
// another type in rest. It does not block.
func Split[T any](opts ...core.Option) (own []T, rest []core.Option) {
	for _, o := range opts {
		s, _ := inside.Settings(nil, []core.Option{o})
		if value, ok := s.ForAdapter.(T); ok {
			own = append(own, value)
		} else {
			rest = append(rest, o)
		}
	}
	return own, rest
}

// Validate says what is wrong with options for every call, so that an adapter can refuse them at
// set-up. It refuses what [core.Locker.Lock] refuses, and [core.Owner]: calls that share an owner
// do not exclude one another. It does not block.
func Validate(opts ...core.Option) error {
	_, err := inside.Settings(nil, opts)
	return err
}

// Fallback gives an adapter defaults of its own for [core.Wait], [core.NoWait] and [core.MaxWaiters],
// where neither [core.New] nor another option says otherwise. [NoWindow] goes with it. Other options, and bad ones, are refused.
func Fallback(opts ...core.Option) core.Option {
	own, err := inside.Settings(nil, opts)
	others := *own
	others.Wait, others.RefusesInWindow, others.MaxWaiters = nil, false, nil
	return inside.Option(func(s *settings) {
		switch {
		case err != nil:
			s.Refuse(err)
		case !reflect.DeepEqual(others, settings{}):
			s.Fail("Fallback takes Wait, NoWait and MaxWaiters only: give other options to the call")
		}
		if s.Wait == nil {
			s.Wait, s.RefusesInWindow = own.Wait, own.RefusesInWindow
		}
		if s.MaxWaiters == nil {
			s.MaxWaiters = own.MaxWaiters
		}
	})
}

// NoWindow has a call wait for a lock that somebody holds, and for no dedup window: that refuses the call at once, or when it
// begins. [core.Wait] and [core.NoWait] after it are for both again. For a repeated request would otherwise run if it came
// shortly before the end of the window.
func NoWindow() core.Option { return inside.Option(func(s *settings) { s.RefusesInWindow = true }) }

// Waits returns how long calls with the options wait, and how many of them; nil where nothing says so.
func Waits(opts ...core.Option) (longest *time.Duration, most *int) {
	s, _ := inside.Settings(nil, opts)
	return s.Wait, s.MaxWaiters
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

// OwnerBegin makes the owner of a lock begin with id, for middleware that finds out by [core.Info].Owner
// which of its calls holds a key. Unlike those of [core.Owner] the calls exclude one another: the rest
// differs. id is at most 64 bytes, and otherwise as in [core.Owner]. A call whose context holds the lock
// already enters it with the owner that the lock has.
func OwnerBegin(id string) core.Option {
	return inside.Option(func(s *settings) {
		s.Owner.Begin = id
		s.CheckOwner("OwnerBegin", id, option.MaxOwnerBytes/2)
	})
}

// Ticket makes a call resume a lock that it finds handed over, by a ticket, as
// [core.Locker.Resume] does. If the ticket does not fit, the call competes like any other.
func Ticket(ticket string) core.Option {
	return inside.Option(func(s *settings) { s.Ticket = ticket })
}

// Looking is for [core.Open] in tools that look at locks, or free them, and take none: Ping looks, too, so that it
// needs no other rights, nor memory in Redis.
func Looking() core.Option {
	return inside.Option(func(s *settings) {
		if s.Scope != option.OfLocker {
			s.Fail("Looking is an option of Open, not of a single call")
		}
		s.Looks = true
	})
}

// MayLast is for work that holds a lock for as long as it takes: the log does not say that it is held for long.
func MayLast() core.Option { return inside.Option(func(s *settings) { s.MayLast = true }) }

// Once is for middleware that calls [core.Once] with options that it has checked before, by [Validate]. It comes last: the options before
// it, such as [core.KeepFor] and [core.RefuseUnknown], are taken as [core.Once] takes them. A call with it takes no error of the run of
// another call, which has its own retries: it runs by itself.
func Once() core.Option { return inside.Once() }

// VoidTicket is [core.Lock.DropWindow] for work that is not tried again: its release frees also a lock that was resumed,
// where it would be parked again.
func VoidTicket(lock *core.Lock) { inside.VoidTicket(lock) }

// ReleasesInBackground reports whether [core.BackgroundRelease] is in effect for wrappers of l, nil for
// a Locker without options, with the options: given here or to [core.New], and not overridden by
// another option. It does not block.
func ReleasesInBackground(l *core.Locker, opts ...core.Option) bool {
	s, err := inside.Settings(l, opts)
	return err == nil && s.WrapperRelease() == option.BackgroundRelease
}

// Parks reports whether locks of l, nil for a Locker without options, taken with the options can be handed over by
// [Handover]: exclusive ones, and not those of [core.NewQuorum]. It does not block.
func Parks(l *core.Locker, opts ...core.Option) bool {
	s, err := inside.Settings(l, opts)
	return err == nil && s.Form.Alone() && !s.Quorum
}
