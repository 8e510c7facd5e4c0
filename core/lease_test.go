package core_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

func TestFixedLeaseEndsInTime(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		began := time.Now()
		k := take(t, background, l, "k", core.FixedLease(20*time.Second))
		at, cause := endOf(k.Context())
		wantErr(t, cause, core.ErrLost)
		wantNot(t, cause, core.ErrMaxHold)
		wantTime(t, "end", at.Sub(began), 19950*time.Millisecond, 20*time.Second)
		if n := len(s.commands(renew)); n != 0 {
			t.Errorf("%d renewals of a fixed lease", n)
		}
		time.Sleep(20*time.Second - time.Since(began))
		s.isFree("k")
		wantErr(t, k.Unlock(background), core.ErrLost)
	})
}

func TestRefreshExtendsAFixedLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		began := time.Now()
		k := take(t, background, l, "k", core.FixedLease(20*time.Second))
		for range 3 {
			time.Sleep(15 * time.Second)
			if err := k.Refresh(background); err != nil {
				t.Fatal(err)
			}
			if got := s.TTL("lock:k"); got != 20*time.Second {
				t.Errorf("TTL %v after Refresh", got)
			}
		}
		at, cause := endOf(k.Context())
		wantErr(t, cause, core.ErrLost)
		wantTime(t, "end", at.Sub(began), 64950*time.Millisecond, 65*time.Second)
		wantErr(t, k.Unlock(background), core.ErrLost)
	})
}

// A Refresh whose answer nobody has seen may have prolonged the lock in Redis. When its lease is over here, it is given back.
func TestRefreshOfAFixedLeaseWithoutAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k", core.FixedLease(20*time.Second))
		time.Sleep(15 * time.Second)
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		s.fail(renew, lateReply(3*time.Second))
		wantErr(t, k.Refresh(ctx), context.DeadlineExceeded)
		time.Sleep(5 * time.Second)
		wantErr(t, k.Unlock(background), core.ErrLost)
		s.isFree("k")
	})
}

func TestUnlockOfAFixedLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k", core.FixedLease(20*time.Second))
		time.Sleep(10 * time.Second)
		unlock(t, k)
		s.isFree("k")
	})
}

func TestRefreshPostponesTheNextRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k")
		time.Sleep(9 * time.Second)
		if err := k.Refresh(background); err != nil {
			t.Fatal(err)
		}
		time.Sleep(9 * time.Second)
		if n := len(s.commands(renew)); n != 1 {
			t.Errorf("%d renewals; want Refresh only", n)
		}
		unlock(t, k)
	})
}

func TestRefreshErrors(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k")
		ctx, cancel := context.WithCancel(background)
		cancel()
		err := k.Refresh(ctx)
		wantErr(t, err, context.Canceled)
		if !strings.HasPrefix(err.Error(), "core: refreshing the lock") || len(s.commands(renew)) > 0 {
			t.Errorf("after %d commands: %v", len(s.commands(renew)), err)
		}
		s.fail(renew, refuse("NOPERM"))
		wantErr(t, k.Refresh(background), core.ErrUnavailable)
		if err := context.Cause(k.Context()); err != nil {
			t.Errorf("a failed Refresh ended the lock: %v", err)
		}
		s.Del("lock:k")
		wantErr(t, k.Refresh(background), core.ErrLost)
		wantErr(t, k.Refresh(ctx), core.ErrLost)
		wantErr(t, k.Unlock(background), core.ErrLost)
	})
}

func TestMaxHoldCancelsThenTheLeaseEnds(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		began := time.Now()
		k := take(t, background, l, "k", core.MaxHold(65*time.Second))
		at, cause := endOf(k.Context())
		wantErr(t, cause, core.ErrMaxHold)
		wantNot(t, cause, core.ErrLost)
		wantTime(t, "MaxHold", at.Sub(began), 65*time.Second, 65*time.Second)
		wantErr(t, k.Refresh(background), core.ErrMaxHold)

		renewals := len(s.commands(renew))
		time.Sleep(89*time.Second - time.Since(began)) // renewed last at 60 s
		if got := s.held("k"); got != k.Owner()+"=1" {
			t.Errorf("Redis shows %q 1 s before the lease ends", got)
		}
		time.Sleep(90*time.Second - time.Since(began))
		s.isFree("k")
		if n := len(s.commands(renew)); n != renewals {
			t.Errorf("%d renewals after MaxHold", n-renewals)
		}
		err := k.Unlock(background)
		wantErr(t, err, core.ErrLost, core.ErrMaxHold)
	})
}

// The holder has its lease to stop, also of a lock that a release has granted, for a second at first.
func TestMaxHoldOfAGrant(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		k := (<-s.granted(t, s.locker(), core.MaxHold(2*time.Millisecond))).lock
		_, cause := endOf(k.Context())
		wantErr(t, cause, core.ErrMaxHold)
		time.Sleep(lease - time.Second)
		unlock(t, k)
	})
}

func TestUnlockAfterMaxHoldFreesAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k", core.MaxHold(time.Minute))
		time.Sleep(70 * time.Second)
		unlock(t, k)
		s.isFree("k")
	})
}

func TestMaxHoldOfTheOutermostCounts(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		began := time.Now()
		outer := take(t, background, l, "k", core.MaxHold(time.Minute))
		inner := take(t, context.WithoutCancel(outer.Context()), l, "k", core.MaxHold(time.Hour))
		at, cause := endOf(inner.Context())
		wantErr(t, cause, core.ErrMaxHold)
		wantTime(t, "MaxHold", at.Sub(began), time.Minute, time.Minute)
		unlock(t, inner, outer)
		s.isFree("k")
	})
}

func TestReentryDoesNotProlongALockPastMaxHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		outer := take(t, background, l, "k", core.MaxHold(65*time.Second))
		ctx := context.WithoutCancel(outer.Context())
		time.Sleep(80 * time.Second)
		if _, err := l.Lock(ctx, "k"); err == nil {
			t.Error("a lock that was held for too long was entered once more")
		} else {
			wantErr(t, err, core.ErrMaxHold)
		}
		if got := s.TTL("lock:k"); got > 10*time.Second {
			t.Errorf("TTL %v; want the rest of the last lease", got)
		}
		unlock(t, outer)
		s.isFree("k")
	})
}

func TestMaxHoldUnderAFixedLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		began := time.Now()
		k := take(t, background, l, "k", core.FixedLease(time.Minute), core.MaxHold(20*time.Second))
		at, cause := endOf(k.Context())
		wantErr(t, cause, core.ErrMaxHold)
		wantTime(t, "MaxHold", at.Sub(began), 20*time.Second, 20*time.Second)
		unlock(t, k)
		s.isFree("k")
	})
}

func TestTinyLeaseIsHeld(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Lease(3 * time.Millisecond))
		k := take(t, background, l, "k")
		time.Sleep(time.Second)
		if err := context.Cause(k.Context()); err != nil {
			t.Errorf("lost: %v", err)
		}
		unlock(t, k)
	})
}
