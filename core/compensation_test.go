package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// An acquisition that is undone must not leave the dedup window of work that never
// ran.
func TestCompensatedAcquisitionLeavesNoWindow(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		s.failAll(loseReply, acquire)
		_, err := l.TryLock(background, "lost", core.KeepFor(time.Hour))
		wantErr(t, err, core.ErrUnavailable)
		s.heal()

		s.fail(acquire, lateReply(50*time.Millisecond))
		ctx, cancel := context.WithCancel(background)
		time.AfterFunc(10*time.Millisecond, cancel)
		_, err = l.Lock(ctx, "cancelled", core.KeepFor(time.Hour))
		wantErr(t, err, core.ErrNotAcquired, context.Canceled)

		time.Sleep(2 * time.Second)
		s.isFree("lost")
		s.isFree("cancelled")
	})
}

// The window belongs to the outermost hold, also when another process with the same
// owner ends.
func TestEvictionOfAReentryLeavesTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.open()
		k := take(t, background, a, "k", core.KeepFor(time.Hour))
		take(t, background, b, "k", core.Owner(k.ShareOwner()))
		ctx, cancel := context.WithCancel(background)
		cancel()
		wantErr(t, b.Close(ctx), context.Canceled)
		unlock(t, k)
		_, err := a.TryLock(background, "k")
		wantBusy(t, err)
	})
}

// A connection that breaks just then must not cost a whole lease.
func TestEvictionRepeatsItsReleases(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.open()
		take(t, background, l, "k")
		s.fail(release, loseRequest)
		ctx, cancel := context.WithCancel(background)
		cancel()
		wantErr(t, l.Close(ctx), context.Canceled)
		s.isFree("k")
	})
}

// Renewals whose replies were lost have prolonged the lock in Redis all the same: a
// release is repeated until the end of the last of them.
func TestReleaseIsRepeatedForAsLongAsTheLockMayLast(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Lease(30 * time.Second))
		k := take(t, background, l, "k")
		time.Sleep(5 * time.Second)
		s.failAll(loseReply, renew)
		time.Sleep(24 * time.Second)
		s.outage()
		wantErr(t, k.Unlock(background), core.ErrUnavailable)
		time.Sleep(4 * time.Second) // past the lease that was confirmed
		s.heal()
		time.Sleep(time.Second)
		s.isFree("k")
	})
}

// Polling keeps its pace in an outage, although the lock's known end is over.
func TestWaitingCallDoesNotSpinInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		k := take(t, background, a, "k", core.FixedLease(2*time.Second))
		waiting := start(background, b, "k")
		time.Sleep(1900 * time.Millisecond)
		s.failAll(refuse("LOADING Redis is loading"), acquire)
		before := len(s.commands(acquire))
		time.Sleep(3 * time.Second)
		if n := len(s.commands(acquire)) - before; n > 60 {
			t.Errorf("%d attempts in 3 s of an outage", n)
		}
		s.heal()
		unlock(t, (<-waiting).lock)
		wantErr(t, k.Unlock(background), core.ErrLost)
	})
}
