package core_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

func TestReentryCountsInRedis(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		outer := take(t, background, l, "k")
		ctx := outer.Context()
		var inner []*core.Lock
		for i := 2; i <= 5; i++ {
			k := take(t, ctx, l, "k")
			inner = append(inner, k)
			ctx = k.Context()
			if k.Owner() != outer.Owner() || k.Token() != outer.Token() {
				t.Errorf("re-entry has owner %s and token %d; want its outer lock's %s, %d",
					k.Owner(), k.Token(), outer.Owner(), outer.Token())
			}
			if got, want := s.held("k"), fmt.Sprintf("%s=%d", outer.Owner(), i); got != want {
				t.Errorf("Redis shows %s; want %s", got, want)
			}
			if n, err := outer.Count(background); n != i || err != nil {
				t.Errorf("Count is %d, %v; want %d", n, err, i)
			}
		}
		for i, k := range inner {
			unlock(t, k)
			if got, want := s.held("k"), fmt.Sprintf("%s=%d", outer.Owner(), 4-i); got != want {
				t.Errorf("Redis shows %s after a partial release; want %s", got, want)
			}
		}
		unlock(t, outer)
		s.isFree("k")
	})
}

func TestOuterReleasedBeforeInnerFreesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Lease(6 * time.Second))
		outer := take(t, background, l, "k")
		// The inner one must not end with its outer one's context.
		inner := take(t, context.WithoutCancel(outer.Context()), l, "k")
		unlock(t, outer)
		time.Sleep(time.Minute)
		if got := s.held("k"); got != inner.Owner()+"=1" {
			t.Errorf("Redis shows %q; the inner hold must keep the lock", got)
		}
		if err := context.Cause(inner.Context()); err != nil {
			t.Errorf("the inner lock ended: %v", err)
		}
		third := take(t, inner.Context(), l, "k")
		unlock(t, inner, third)
		s.isFree("k")
	})
}

func TestALossIsToldToTheInnerHoldThatIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		began := time.Now()
		outer := take(t, background, l, "k", core.FixedLease(20*time.Second))
		inner := take(t, context.WithoutCancel(outer.Context()), l, "k")
		unlock(t, outer)
		at, cause := endOf(inner.Context())
		wantErr(t, cause, core.ErrLost)
		wantTime(t, "end", at.Sub(began), 19950*time.Millisecond, 20*time.Second)
		wantErr(t, inner.Unlock(background), core.ErrLost)
	})
}

func TestInnerShorterLeaseShortensNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Lease(30 * time.Second))
		outer := take(t, background, l, "k")
		for _, opt := range []core.Option{core.Lease(time.Second), core.FixedLease(time.Second), core.MaxHold(time.Second), core.KeepFor(time.Minute)} {
			inner := take(t, outer.Context(), l, "k", opt)
			if got := s.TTL("lock:k"); got != 30*time.Second {
				t.Errorf("TTL %v after a re-entry; want the outer lease", got)
			}
			time.Sleep(45 * time.Second)
			if err := context.Cause(inner.Context()); err != nil {
				t.Errorf("the re-entry's own option ended it: %v", err)
			}
			unlock(t, inner)
		}
		if got := s.TTL("lock:k"); got < 20*time.Second {
			t.Errorf("TTL %v; want the outer lease", got)
		}
		unlock(t, outer)
		s.isFree("k")
	})
}

func TestReentryAndPartialReleaseRefreshTheLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Lease(30 * time.Second))
		outer := take(t, background, l, "k")
		time.Sleep(9 * time.Second)
		inner := take(t, outer.Context(), l, "k")
		if got := s.TTL("lock:k"); got != 30*time.Second {
			t.Errorf("TTL %v after a re-entry; want a full lease", got)
		}
		time.Sleep(9 * time.Second)
		if n := len(s.commands(renew)); n != 0 {
			t.Errorf("%d renewals 9 s after a re-entry has renewed", n)
		}
		unlock(t, inner)
		if got := s.TTL("lock:k"); got != 30*time.Second {
			t.Errorf("TTL %v after a partial release; want a full lease", got)
		}
		unlock(t, outer)
	})
}

func TestReentryDoesNotExtendAFixedLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		outer := take(t, background, l, "k", core.FixedLease(10*time.Second))
		time.Sleep(6 * time.Second)
		inner := take(t, outer.Context(), l, "k", core.Lease(time.Minute))
		if got := s.TTL("lock:k"); got != 4*time.Second {
			t.Errorf("TTL %v after a re-entry; want the rest of the fixed lease", got)
		}
		unlock(t, inner)
		if got := s.TTL("lock:k"); got != 4*time.Second {
			t.Errorf("TTL %v after a partial release; want the rest of the fixed lease", got)
		}
		began := time.Now()
		at, cause := endOf(outer.Context())
		wantErr(t, cause, core.ErrLost)
		wantTime(t, "end", at.Sub(began), 3950*time.Millisecond, 4*time.Second)
		wantErr(t, outer.Unlock(background), core.ErrLost)
	})
}

func TestManyGoroutinesReenterAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		outer := take(t, background, l, "k")
		const n = 100
		var all, out sync.WaitGroup
		all.Add(n)
		out.Add(n)
		for range n {
			go func() {
				k, err := l.Lock(outer.Context(), "k")
				all.Done()
				if err != nil {
					t.Error(err)
				} else {
					all.Wait()
					unlock(t, k)
				}
				out.Done()
			}()
		}
		all.Wait()
		if got, want := s.held("k"), fmt.Sprintf("%s=%d", outer.Owner(), n+1); got != want && len(s.commands(release)) == 0 {
			t.Errorf("Redis shows %s; want %s", got, want)
		}
		out.Wait()
		if got, want := s.held("k"), outer.Owner()+"=1"; got != want {
			t.Errorf("Redis shows %s; want %s", got, want)
		}
		unlock(t, outer)
		s.isFree("k")
	})
}

func TestSecondLockerOnTheSameRedisReenters(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker(core.Lease(time.Second))
		outer := take(t, background, a, "k")
		inner := take(t, outer.Context(), b, "k")
		if inner.Owner() != outer.Owner() || inner.Token() != outer.Token() {
			t.Errorf("owner %s, token %d; want %s, %d", inner.Owner(), inner.Token(), outer.Owner(), outer.Token())
		}
		if got := s.held("k"); got != outer.Owner()+"=2" {
			t.Errorf("Redis shows %s", got)
		}
		time.Sleep(time.Minute)
		if err := context.Cause(inner.Context()); err != nil {
			t.Errorf("lost: %v", err)
		}
		unlock(t, inner)
		if got := s.held("k"); got != outer.Owner()+"=1" {
			t.Errorf("Redis shows %s", got)
		}
		unlock(t, outer)
		s.isFree("k")
	})
}

func TestLockerOnAnotherRedisIsIndependent(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		other := newEmbedded(t)
		a, b := s.locker(), other.locker()
		outer := take(t, background, a, "k")
		inner := take(t, outer.Context(), b, "k")
		if other.held("k") != inner.Owner()+"=1" || s.held("k") != outer.Owner()+"=1" {
			t.Errorf("the two servers show %q and %q", s.held("k"), other.held("k"))
		}
		unlock(t, inner, outer)
		other.isFree("k")
	})
}

// Nobody can say whether two clients reach one Redis: the owner is the same on both. A prefix of its own keeps them apart.
func TestSiblingsOnAnotherRedisEnterTogether(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		other := newEmbedded(t)
		outer := take(t, background, s.locker(), "k")
		same, apart := other.locker(), other.locker(core.Prefix("other:"))
		one, two := take(t, outer.Context(), same, "k"), take(t, outer.Context(), same, "k")
		if got := other.held("k"); got != outer.Owner()+"=2" {
			t.Errorf("the other Redis shows %q", got)
		}
		alone := take(t, outer.Context(), apart, "k")
		_, err := apart.TryLock(outer.Context(), "k")
		wantBusy(t, err)
		unlock(t, alone, two, one, outer)
	})
}

func TestSiblingContextsDoNotShare(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		parent, cancel := context.WithCancel(background)
		defer cancel()
		k := take(t, parent, l, "k")
		_, err := l.TryLock(parent, "k")
		wantBusy(t, err)
		unlock(t, k)
	})
}

func TestReentryOfAnotherKeyIsAFreshLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		a := take(t, background, l, "a")
		b := take(t, a.Context(), l, "b")
		if a.Owner() == b.Owner() {
			t.Error("two locks share an owner")
		}
		again := take(t, b.Context(), l, "a") // through b
		if again.Owner() != a.Owner() {
			t.Error("the lock of the grandparent was not re-entered")
		}
		unlock(t, again, b, a)
	})
}

// A re-entry whose answer comes when the lock is over leaves no hold behind.
// Taken out, its hold stays in the lock, which Redis may keep for longer.
func TestInvariant3ReentryThatComesTooLateLeavesNoHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Timeout(time.Minute))
		outer := take(t, background, l, "k", core.FixedLease(time.Second))
		s.fail(acquire, lateReply(2*time.Second))
		done := start(context.WithoutCancel(outer.Context()), l, "k")
		s.SetTTL("lock:k", time.Hour) // Redis keeps it for longer
		wantErr(t, (<-done).err, core.ErrLost)
		s.heal()
		time.Sleep(time.Minute)
		if held := s.held("k"); held != outer.Owner()+"=1" {
			t.Errorf("Redis shows %q", held)
		}
	})
}
