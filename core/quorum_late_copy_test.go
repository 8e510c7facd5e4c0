package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// A member that refuses the second copy of an acquisition has the first one withdrawn. If
// it is asked once more, it may grant what is about to be withdrawn: that is no vote.
// Taken out, two have the lock at once.
func TestQuorumCountsNoVoteThatIsBeingWithdrawn(t *testing.T) {
	quorum(t, func(t *testing.T, servers []*embedded, a, b *core.Locker) {
		unlock(t, take(t, background, a, "warm-up"))
		servers[2].fail(acquire, hang)
		servers[1].HSet("lock:k", "stranger", "1")
		servers[1].fail(acquire, loseRequest)
		servers[1].fail(release, lateRequest(100*time.Millisecond)) // the withdrawal
		time.AfterFunc(500*time.Microsecond, func() { servers[1].Del("lock:k") })
		first, err := a.TryLock(background, "k")
		time.Sleep(time.Second)
		second, err2 := b.TryLock(background, "k")
		if err == nil && err2 == nil {
			t.Errorf("two have the lock; the first is told: %v", context.Cause(first.Context()))
		}
		if err == nil {
			_ = first.Unlock(background)
		}
		if err2 == nil {
			_ = second.Unlock(background)
		}
		time.Sleep(2 * time.Second)
		for _, s := range servers {
			s.isFree("k")
		}
	})
}

// A lock that most members have lost is given back to the one that has not.
// Taken out, that one keeps it for a lease, for nobody.
func TestQuorumLockThatIsLostIsGivenBack(t *testing.T) {
	for name, find := range map[string]func(l *core.Locker, k *core.Lock) error{
		"by a re-entry": func(l *core.Locker, k *core.Lock) error {
			_, err := l.Lock(k.Context(), "k")
			return err
		},
		"by a look": func(_ *core.Locker, k *core.Lock) error {
			_, err := k.Count(background)
			return err
		},
		"by a refresh": func(_ *core.Locker, k *core.Lock) error { return k.Refresh(background) },
		"by the release of a nested hold": func(l *core.Locker, k *core.Lock) error {
			return k.Unlock(background)
		},
	} {
		t.Run(name, func(t *testing.T) {
			quorum(t, func(t *testing.T, servers []*embedded, a, _ *core.Locker) {
				k := take(t, background, a, "k")
				inner := take(t, k.Context(), a, "k")
				time.Sleep(time.Second)
				servers[1].Del("lock:k")
				servers[2].Del("lock:k")
				wantErr(t, find(a, inner), core.ErrLost)
				_ = inner.Unlock(background)
				wantErr(t, k.Unlock(background), core.ErrLost)
				time.Sleep(2 * time.Second)
				for _, s := range servers {
					s.isFree("k")
				}
			})
		})
	}
}

// A member may be asked again when the others have granted the lock long ago.
// Taken out, a copy that arrives after the release takes the member for nobody.
func TestQuorumCopyToALateMemberArrivesAfterTheRelease(t *testing.T) {
	quorum(t, func(t *testing.T, servers []*embedded, a, _ *core.Locker) {
		first, arrive := lateCopy(servers[2])
		servers[2].fail(acquire, func(s *embedded, p *peer, cmd string, args []string) bool {
			time.Sleep(5 * time.Millisecond)
			return first(s, p, cmd, args)
		})
		k := take(t, background, a, "k")
		time.Sleep(50 * time.Millisecond)
		unlock(t, k)
		time.Sleep(time.Second)
		arrive()
		for _, s := range servers {
			s.isFree("k")
		}
	})
}

// Who has lost a lock releases nothing.
// Taken out, a copy that arrives later takes the lock for nobody.
func TestInvariant3FirstCopyThatArrivesAfterALoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		first, arrive := lateCopy(s)
		s.fail(acquire, first)
		k := take(t, background, l, "k")
		s.Del("lock:k")
		_, why := endOf(k.Context())
		wantErr(t, why, core.ErrLost)
		wantErr(t, k.Unlock(background), core.ErrLost)
		time.Sleep(time.Second)
		arrive()
		s.isFree("k")
	})
}
