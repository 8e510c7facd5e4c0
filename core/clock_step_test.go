//go:build go1.25

package core_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// setBack sets the clock of Redis back, as an administrator or a time server does. Redis
// keeps the time at which a key expires, so that all keys last as much longer.
func (s *embedded) setBack(d time.Duration) {
	for _, key := range s.Keys() {
		if ttl := s.TTL(key); ttl > 0 {
			s.SetTTL(key, ttl+d)
		}
	}
	s.SetTime(time.Now().Add(-d))
	done := make(chan struct{})
	s.tb.Cleanup(func() { close(done) })
	go func() {
		for tick := time.Tick(10 * time.Millisecond); ; {
			select {
			case <-tick:
				s.SetTime(time.Now().Add(-d))
			case <-done:
				return
			}
		}
	}()
}

// A clock that is set back must not make a lock, a window, a grant or a wait last longer than it
// was meant to, or by little.
// Taken out, each of them lasts for the length of the step.
func TestClockOfRedisIsSetBack(t *testing.T) {
	const step = 10 * time.Minute
	for name, test := range map[string]func(t *testing.T, s *embedded){
		"while the lock is granted to a process that hangs": func(t *testing.T, s *embedded) {
			k := take(t, background, s.locker(), "k")
			mustAdd(s, "frozen:1")
			told := s.hear(processChannel("frozen"))
			unlock(t, k)
			<-told
			s.setBack(step)
			isServed(t, "a call", start(within(2*step), s.locker(), "k"), time.Second+4*prompt)
		},
		"while dead processes wait": func(t *testing.T, s *embedded) {
			k := take(t, background, s.locker(), "k")
			mustAdd(s, "dead:1")
			s.setBack(step)
			waiting := start(within(2*step), s.locker(), "k")
			unlock(t, k)
			isServed(t, "a call", waiting, prompt)
			if places, _ := s.ZMembers(waitQueue); len(places) > 0 {
				t.Errorf("in the queue: %v", places)
			}
		},
		"while somebody waits, and others come": func(t *testing.T, s *embedded) {
			k := take(t, background, s.locker(), "k")
			waiting := start(within(2*step), s.locker(), "k")
			time.Sleep(time.Second)
			s.setBack(step)
			ctx, cancel := context.WithCancel(background)
			var others sync.WaitGroup
			for range 2 {
				l := s.locker()
				others.Go(func() { work(ctx, t, l, 5*time.Millisecond) })
			}
			synctest.Wait()
			unlock(t, k)
			isServed(t, "the first", waiting, time.Second+prompt)
			cancel()
			others.Wait()
		},
		"while one holder of several is dead, and the lock lasts": func(t *testing.T, s *embedded) {
			take(t, background, s.locker(), "k", core.Permits(2), core.FixedLease(2*time.Second))
			lives := take(t, background, s.locker(), "k", core.Permits(2))
			s.setBack(step)
			isServed(t, "a call", start(background, s.locker(), "k", core.Permits(2)), 3*time.Second+prompt)
			unlock(t, lives)
		},
		"while a lock is held": func(t *testing.T, s *embedded) {
			k := take(t, background, s.locker(), "k")
			s.setBack(step)
			time.Sleep(lease/3 + time.Second)
			if got := s.TTL("lock:k"); got > lease {
				t.Errorf("after a renewal it lasts %v; want at most the lease", got)
			}
			unlock(t, k)
		},
		"while a lock is held, whose holder then dies": func(t *testing.T, s *embedded) {
			l := s.open()
			take(t, background, l, "k")
			s.failAll(loseRequest, renew, release)
			s.setBack(step)
			o := <-start(within(2*step), s.locker(), "k")
			if o.err != nil {
				t.Fatal(o.err)
			}
			wantTime(t, "the next call had it", o.took, 0, lease+time.Second)
			s.heal()
			unlock(t, o.lock)
			_ = l.Close(background)
		},
		"while a fixed lease runs": func(t *testing.T, s *embedded) {
			l := s.open()
			take(t, background, l, "k", core.FixedLease(time.Minute))
			s.setBack(step)
			isServed(t, "the next call", start(within(2*step), s.locker(), "k"), time.Minute+time.Second)
			_ = l.Close(background)
		},
		"while others share a lock, and one of them dies": func(t *testing.T, s *embedded) {
			l := s.open()
			take(t, background, l, "k", core.Shared())
			waiting := start(within(2*step), s.locker(), "k")
			time.Sleep(time.Millisecond)
			s.failAll(loseRequest, renew, release)
			s.setBack(step)
			o := <-waiting
			if o.err != nil {
				t.Fatal(o.err)
			}
			wantTime(t, "the next call had it", o.took, 0, lease+2*time.Second)
			s.heal()
			unlock(t, o.lock)
			_ = l.Close(background)
		},
		"while a permit is held by somebody who dies": func(t *testing.T, s *embedded) {
			l := s.open()
			take(t, background, l, "k", core.Permits(1))
			waiting := start(within(2*step), s.locker(), "k", core.Permits(1))
			time.Sleep(time.Millisecond)
			s.failAll(loseRequest, renew, release)
			s.setBack(step)
			o := <-waiting
			if o.err != nil {
				t.Fatal(o.err)
			}
			wantTime(t, "the next call had it", o.took, 0, lease+2*time.Second)
			s.heal()
			unlock(t, o.lock)
			_ = l.Close(background)
		},
		"while a lock is parked": func(t *testing.T, s *embedded) {
			parkedBy(t, take(t, background, s.locker(), "k"), time.Minute)
			s.setBack(step)
			isServed(t, "the next call", start(within(2*step), s.locker(), "k"), time.Minute+time.Second)
		},
		"while a resumed lock is held, whose holder then dies": func(t *testing.T, s *embedded) {
			l := s.open()
			ticket := parkedBy(t, take(t, background, l, "k"), time.Minute)
			if _, err := l.Resume(background, "k", ticket); err != nil {
				t.Fatal(err)
			}
			s.failAll(loseRequest, renew, release)
			s.setBack(step)
			o := <-start(within(2*step), s.locker(), "k")
			if o.err != nil {
				t.Fatal(o.err)
			}
			wantTime(t, "the next call had it", o.took, lease+time.Minute-time.Second, lease+time.Minute+2*time.Second)
			s.heal()
			unlock(t, o.lock)
			_ = l.Close(background)
		},
		"while a lock is held that others have resumed before, who are dead": func(t *testing.T, s *embedded) {
			l := s.open()
			ticket := parkedBy(t, take(t, background, l, "k"), 10*time.Second)
			resume := func(lease time.Duration) *core.Lock {
				k, err := l.Resume(background, "k", ticket, core.FixedLease(lease))
				if err != nil {
					t.Fatal(err)
				}
				return k
			}
			for range 8 {
				resume(time.Second)
				time.Sleep(time.Second)
			}
			k := resume(time.Minute)
			s.setBack(step)
			for range 50 {
				time.Sleep(time.Second)
				_, err := s.locker().TryLock(background, "k")
				wantBusy(t, err)
			}
			unlock(t, k)
			isServed(t, "the next call", start(background, s.locker(), "k"), prompt)
			_ = l.Close(background)
		},
		"before a window begins": func(t *testing.T, s *embedded) {
			l := s.locker()
			k := take(t, background, l, "k", core.KeepFor(time.Minute))
			s.setBack(step)
			unlock(t, k)
			inWindow(t, l, "k", time.Minute)
		},
		"in a window": func(t *testing.T, s *embedded) {
			l := s.locker()
			unlock(t, take(t, background, l, "k", core.KeepFor(time.Minute)))
			s.setBack(step)
			isServed(t, "the next call", start(within(2*step), l, "k"), time.Minute+time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) { bubble(t, test) })
	}
}
