package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

func TestOwnerReentersFromAnotherProcess(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker(core.Lease(time.Second))
		owner := core.Owner("job-7")
		first := take(t, background, a, "k", owner)
		second := take(t, background, b, "k", owner)
		third := take(t, background, a, "k", owner)
		if s.held("k") != "job-7=3" {
			t.Errorf("Redis shows %s; want job-7=3", s.held("k"))
		}
		for _, k := range []*core.Lock{first, second, third} {
			if k.Owner() != "job-7" || k.Token() != first.Token() {
				t.Errorf("owner %s, token %d", k.Owner(), k.Token())
			}
		}
		if n, err := second.Count(background); n != 3 || err != nil {
			t.Errorf("Count %d, %v", n, err)
		}
		_, err := b.TryLock(background, "k")
		wantBusy(t, err)
		_, err = b.TryLock(background, "k", core.Owner("job-8"))
		wantBusy(t, err)

		unlock(t, first)
		if s.held("k") != "job-7=2" {
			t.Errorf("Redis shows %s; want job-7=2", s.held("k"))
		}
		time.Sleep(5 * time.Minute) // each process renews for itself
		unlock(t, third)
		time.Sleep(5 * time.Minute)
		if s.held("k") != "job-7=1" || second.Context().Err() != nil {
			t.Errorf("Redis shows %s; want job-7=1; %v", s.held("k"), context.Cause(second.Context()))
		}
		unlock(t, second)
		s.isFree("k")
	})
}

func TestOwnerTakesTheOutermostLeaseRules(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		began := time.Now()
		outer := take(t, background, a, "k", core.Owner("o"), core.FixedLease(20*time.Second))
		time.Sleep(5 * time.Second)
		inner := take(t, background, b, "k", core.Owner("o"), core.Lease(time.Hour))
		at, cause := endOf(inner.Context())
		wantErr(t, cause, core.ErrLost)
		wantTime(t, "end", at.Sub(began), 19900*time.Millisecond, 20*time.Second)
		wantErr(t, inner.Unlock(background), core.ErrLost)
		wantErr(t, outer.Unlock(background), core.ErrLost)
	})
}

func TestOwnerInTheContextIsReenteredWithoutTheOption(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		outer := take(t, background, l, "k", core.Owner("o"))
		inner := take(t, outer.Context(), l, "k")
		if inner.Owner() != "o" || s.held("k") != "o=2" {
			t.Errorf("owner %s; Redis shows %s", inner.Owner(), s.held("k"))
		}
		unlock(t, inner, outer)
	})
}

func TestAnotherOwnerUnderAHeldContextIsAStranger(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		outer := take(t, background, l, "k")
		_, err := l.TryLock(outer.Context(), "k", core.Owner("o"))
		wantBusy(t, err)
		unlock(t, outer)
	})
}

// Whoever waits must not keep an owner out that holds the lock already.
func TestWaitersDoNotKeepAnOwnerFromReentering(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		holder := take(t, background, a, "k", core.Owner("o"))
		strangers := []<-chan outcome{start(background, b, "k"), start(background, b, "k", core.Owner("p"))}
		time.Sleep(10 * time.Second)
		o := <-start(background, b, "k", core.Owner("o"))
		if o.err != nil || o.took != 0 {
			t.Fatalf("re-entry after %v: %v", o.took, o.err)
		}
		unlock(t, holder, o.lock)
		for range strangers {
			var o outcome
			select {
			case o = <-strangers[0]:
			case o = <-strangers[1]:
			}
			unlock(t, o.lock)
		}
		s.isFree("k")
	})
}

// An owner that waits, and meanwhile gets the lock elsewhere, enters it.
func TestWaitingOwnerEntersWhatItHasTakenElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		stranger := take(t, background, a, "k")
		waiting := []<-chan outcome{start(background, a, "k", core.Owner("o")), start(background, b, "k", core.Owner("o"))}
		time.Sleep(3 * time.Second)
		unlock(t, stranger)
		first, second := <-waiting[0], <-waiting[1]
		wantTime(t, "the second entered", max(first.took, second.took), 3*time.Second, 4*time.Second)
		if s.held("k") != "o=2" {
			t.Errorf("Redis shows %s; want o=2", s.held("k"))
		}
		unlock(t, first.lock, second.lock)
	})
}

// A call that may enter at once does not queue behind one that has to find out.
func TestOwnerDoesNotQueueToReenter(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		stranger := take(t, background, a, "k")
		waiting := start(background, b, "k", core.Owner("o"))
		time.Sleep(100 * time.Millisecond)
		s.failAll(refuse("NOPERM"), "publish")
		unlock(t, stranger)
		elsewhere := take(t, background, a, "k", core.Owner("o"))
		o := <-start(background, b, "k", core.Owner("o"))
		if o.err != nil || o.took != 0 {
			t.Errorf("re-entry after %v: %v", o.took, o.err)
		}
		unlock(t, o.lock, (<-waiting).lock, elsewhere)
	})
}

func TestOwnerAbortOfAReentryKeepsTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		outer := take(t, background, a, "k", core.KeepFor(time.Minute))
		inner := take(t, background, b, "k", core.Owner(outer.ShareOwner()))
		if err := inner.Abort(background); err != nil {
			t.Error(err)
		}
		unlock(t, outer)
		inWindow(t, a, "k", time.Minute)
	})
}

// After Unlock another call of the process may have the lock, and the owner.
func TestOwnerIsNotSharedAfterUnlock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		first := take(t, background, l, "k")
		next := start(background, l, "k")
		time.Sleep(time.Millisecond)
		unlock(t, first)
		second := (<-next).lock
		if second.Owner() != first.Owner() {
			t.Error("it was not handed off in memory; the test shows nothing")
		}
		if owner := first.ShareOwner(); owner != "" {
			t.Errorf("the owner %q lets others into the lock of a stranger", owner)
		}
		unlock(t, second)
	})
}

// Redis does not know the token of a lock that was handed off in memory.
func TestTokenOfWhoeverEntersBySharedOwner(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		first := take(t, background, l, "k")
		next := start(background, l, "k")
		time.Sleep(time.Millisecond)
		unlock(t, first)
		second := (<-next).lock
		entered := take(t, background, s.locker(), "k", core.Owner(second.ShareOwner()))
		if second.Token() <= first.Token() || entered.Token() != first.Token() {
			t.Errorf("tokens %d, %d and %d", first.Token(), second.Token(), entered.Token())
		}
		unlock(t, entered, second)
	})
}
