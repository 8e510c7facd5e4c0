//go:build go1.25

package core_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// missed counts the messages that the Locker with this Observer takes for missed.
func (o *ear) missed() (n int) {
	settle()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.events {
		if e.Kind == core.EventGrantMissed {
			n++
		}
	}
	return n
}

// Where Redis is far away, everything comes late, and nothing is missed: a process that
// believed so would poll.
func TestNothingIsMissedFarFromRedis(t *testing.T) {
	const there = 60 * time.Millisecond // and as long back
	bubble(t, func(t *testing.T, s *embedded) {
		s.failAll(func(s *embedded, p *peer, cmd string, args []string) bool {
			time.Sleep(there)
			s.pass(p, cmd, args)
			time.Sleep(there)
			return true
		}, acquire, release, renew)
		ctx, cancel := context.WithCancel(background)
		var working sync.WaitGroup
		heard := new(ear)
		for range 3 {
			l := s.grantsArrive(t, func() { time.Sleep(there) }, core.Observe(heard))
			for _, opt := range []core.Option{core.Lease(30 * time.Second), core.FixedLease(5 * time.Second)} {
				working.Go(func() {
					for ctx.Err() == nil {
						if k, err := l.Lock(ctx, "k", opt); err == nil {
							time.Sleep(5 * time.Millisecond)
							unlock(t, k)
						}
					}
				})
			}
		}
		time.Sleep(30 * time.Second)
		cancel()
		working.Wait()
		if n := heard.missed(); n > 0 {
			t.Errorf("%d messages are believed to be missed", n)
		}
		s.heal()
	})
}

// A call that waits, and enters a lock which its owner has got elsewhere long before, has
// missed nothing.
func TestWhoEntersAnOldLockHasMissedNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		heard := new(ear)
		a, b, c := s.locker(), s.locker(), s.locker(core.Observe(heard))
		other := take(t, background, a, "k", core.Owner("y"))
		first := start(background, b, "k", core.Owner("x"))
		second := start(background, c, "k", core.Owner("x"))
		waits(t, second)
		time.Sleep(100 * time.Millisecond) // the second asks again after half a second or more
		unlock(t, other)
		unlock(t, (<-first).lock, (<-second).lock)
		if n := heard.missed(); n > 0 {
			t.Errorf("%d messages are believed to be missed", n)
		}
	})
}

// Nor has one whose token is an old one, as the clock of Redis was set back meanwhile.
func TestWhoTakesALockAfterAStepOfTheClockHasMissedNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		heard := new(ear)
		a := s.locker()
		take(t, background, a, "k")
		waiting := start(background, s.locker(core.Observe(heard)), "k")
		waits(t, waiting)
		time.Sleep(5 * time.Second)
		s.setBack(10 * time.Minute)
		if _, err := a.ForceUnlock(background, "k"); err != nil {
			t.Fatal(err)
		}
		unlock(t, (<-waiting).lock)
		if n := heard.missed(); n > 0 {
			t.Errorf("%d messages are believed to be missed", n)
		}
	})
}
