package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// A re-entry that comes before the first renewal gives the lock a lease of its own, in
// which the holders do not believe for longer than Redis does.
func TestInvariant1ReentryBeforeTheFirstRenewal(t *testing.T) {
	for name, c := range map[string]struct {
		another bool
		lease   time.Duration
	}{
		"longer":                  {false, time.Minute},
		"shorter":                 {false, 5 * time.Second},
		"another Locker, longer":  {true, time.Minute},
		"another Locker, shorter": {true, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				by := l
				if c.another {
					by = s.locker()
				}
				s.failAll(hang, renew)
				o := <-s.granted(t, l)
				inner := take(t, o.lock.Context(), by, "k", core.Lease(c.lease))
				if token := inner.Token(); token != o.lock.Token() {
					t.Errorf("token %d inside of %d", token, o.lock.Token())
				}
				if ttl := s.TTL("lock:k"); ttl != c.lease {
					t.Errorf("it lasts %v", ttl)
				}
				began := time.Now()
				at, why := endOf(inner.Context())
				wantErr(t, why, core.ErrLost)
				wantTime(t, "it ended", at.Sub(began), 0, c.lease)
				s.heal()
				_, _ = inner.Unlock(background), o.lock.Unlock(background) // which may be lost as well
			})
		})
	}
}

// So does one that wants another lease, or a window: what the holder has is not cut, and it
// is no other lock after that.
// Taken out, another process has the lock while the holder believes in it.
func TestInvariant1ReentryBeforeTheFirstRenewalCutsNothing(t *testing.T) {
	for name, want := range map[string]core.Option{
		"shorter lease": core.Lease(300 * time.Millisecond),
		"fixed lease":   core.FixedLease(100 * time.Millisecond),
		"dedup window":  core.KeepFor(time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				s.failAll(hang, renew)
				o := <-s.granted(t, l)
				inner := take(t, o.lock.Context(), l, "k", want)
				if ttl := s.TTL("lock:k"); ttl < time.Second {
					t.Errorf("it lasts %v", ttl)
				}
				_, why := endOf(o.lock.Context())
				wantErr(t, why, core.ErrLost)
				s.heal()
				wantErr(t, inner.Unlock(background), core.ErrLost)
			})
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				s.fail(renew, lateRequest(150*time.Millisecond))
				o := <-s.granted(t, l)
				unlock(t, take(t, o.lock.Context(), l, "k", want))
				time.Sleep(time.Minute)
				if err := context.Cause(o.lock.Context()); err != nil {
					t.Error(err)
				}
				unlock(t, o.lock)
				s.isFree("k")
			})
		})
	}
}

// The renewals of neither Locker cut short what the other believes in.
func TestInvariant1TwoLockersInOneGrant(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		o := <-s.granted(t, a)
		inner := take(t, o.lock.Context(), b, "k", core.Lease(3*time.Second))
		time.Sleep(9300 * time.Millisecond)
		s.failAll(hang, renew)
		expires := time.Now().Add(s.TTL("lock:k"))
		at, why := endOf(o.lock.Context())
		wantErr(t, why, core.ErrLost)
		if at.After(expires) {
			t.Error("the outer context outlasts the lock")
		}
		wantErr(t, inner.Unlock(background), core.ErrLost)
		s.heal()
	})
}

func TestReentryDoesNotPostponeTheFirstRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		o := <-s.granted(t, l)
		inner := take(t, o.lock.Context(), l, "k")
		time.Sleep(time.Minute)
		if err := inner.Context().Err(); err != nil {
			t.Error(context.Cause(inner.Context()))
		}
		unlock(t, inner, o.lock)
		s.isFree("k")
	})
}
