package core_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// Who is refused learns whether somebody is at work, or the work was done.
func TestBusyErrorTellsWorkFromAWindow(t *testing.T) {
	for name, c := range map[string]struct {
		opts       []core.Option
		held, done string
	}{
		"NoWait": {[]core.Option{core.NoWait()},
			`core: lock not acquired: somebody else holds it`,
			`core: lock not acquired: it is in its dedup window`},
		"Wait": {[]core.Option{core.Wait(50 * time.Millisecond)},
			`core: lock not acquired: the wait of 50ms is over, somebody else holds it`,
			`core: lock not acquired: the wait of 50ms is over, it is in its dedup window`},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				refused := func(want string, done bool) *core.BusyError {
					t.Helper()
					_, err := l.Lock(background, "k", c.opts...)
					busy := wantBusy(t, err)
					if busy.Done != done || busy.Error() != want {
						t.Errorf("Done is %v, %q; want %q", busy.Done, busy, want)
					}
					return busy
				}
				k := take(t, background, s.locker(), "k", core.KeepFor(time.Minute))
				refused(c.held, false)
				unlock(t, k)
				busy := refused(c.done, true)
				wantTime(t, "the window ends", busy.RetryAfter, 59*time.Second, time.Minute)

				k = take(t, background, s.locker(), "fixed", core.FixedLease(time.Minute))
				_, err := l.TryLock(background, "fixed")
				if wantBusy(t, err).Done {
					t.Error("a fixed lease counts as a window")
				}
				unlock(t, k)
			})
		})
	}
}

// A window that is over, while Redis is silent, is not "done" any more: nobody knows.
func TestBusyErrorDoesNotOutliveTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		unlock(t, take(t, background, l, "k", core.KeepFor(300*time.Millisecond)))
		ctx, cancel := context.WithCancel(background)
		waiting := start(ctx, l, "k")
		waits(t, waiting)
		time.Sleep(200 * time.Millisecond)
		s.outage()
		time.Sleep(500 * time.Millisecond) // after a second of silence a wait says that Redis is unavailable
		for _, opt := range []core.Option{core.Wait(200 * time.Millisecond), core.MaxWaiters(1)} {
			_, err := l.Lock(background, "k", opt)
			if busy := wantBusy(t, err); busy.Done || !strings.Contains(busy.Error(), "it was in its dedup window when Redis answered last") {
				t.Errorf("Done is %v, %q", busy.Done, busy)
			}
		}
		cancel()
		<-waiting
		s.heal()
		time.Sleep(5 * time.Second) // go-redis dials on
	})
}

// One call too many hears what the calls that wait know.
func TestBusyErrorOfOneCallTooMany(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, s.locker(), "k", core.KeepFor(time.Minute))
		ctx, cancel := context.WithCancel(background)
		waiting := start(ctx, l, "k")
		waits(t, waiting)
		tooMany := func(want string, done bool) {
			t.Helper()
			_, err := l.Lock(background, "k", core.MaxWaiters(1))
			busy := wantBusy(t, err)
			if want = `core: lock not acquired: too many calls wait for it already, ` + want; busy.Done != done || busy.Error() != want {
				t.Errorf("Done is %v, %q; want %q", busy.Done, busy, want)
			}
		}
		tooMany("somebody else holds it", false)
		unlock(t, k)
		time.Sleep(time.Second) // by then the waiting call has asked again
		tooMany("it is in its dedup window", true)
		cancel()
		<-waiting
	})
}
