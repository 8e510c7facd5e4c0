//go:build go1.25

package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// A call that gave up has left its entry in Redis for a moment, and the next release grants the lock to it. That refuses
// no call of this process, which knows that nobody waits.
// Taken out, each of the calls is refused.
func TestCallThatGaveUpRefusesNobodyHere(t *testing.T) {
	outOfOrder := func(ctx context.Context, l *core.Locker) error {
		m, err := l.LockAll(ctx, []string{"z"})
		if err != nil {
			return err
		}
		defer m.Unlock(background)
		k, err := l.Lock(m.Context(), "k") // which sorts before it: refused if it is busy
		if err == nil {
			err = k.Unlock(background)
		}
		return err
	}
	calls := map[string]func(context.Context, *core.Locker) error{
		"TryLock": func(ctx context.Context, l *core.Locker) error {
			k, err := l.TryLock(ctx, "k")
			if err == nil {
				err = k.Unlock(background)
			}
			return err
		},
		"LockAll": func(ctx context.Context, l *core.Locker) error {
			m, err := l.LockAll(ctx, []string{"j", "k", "l"}, core.NoWait())
			if err == nil {
				err = m.Unlock(background)
			}
			return err
		},
		"Lock out of order": outOfOrder,
	}
	for name, call := range calls {
		for how, end := range map[string]struct {
			wait, deadline time.Duration
			elsewhere      bool
		}{
			"its wait is over":             {wait: 30 * time.Millisecond, deadline: time.Hour},
			"its context has ended":        {wait: time.Hour, deadline: 30 * time.Millisecond},
			"another process had the lock": {wait: 30 * time.Millisecond, deadline: time.Hour, elsewhere: true},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					l := s.locker()
					holder := l
					if end.elsewhere {
						holder = s.locker()
					}
					held := take(t, background, holder, "k")
					ctx, cancel := context.WithTimeout(background, end.deadline)
					defer cancel()
					s.fail(release, lateRequest(50*time.Millisecond)) // of the entry
					_, err := l.Lock(ctx, "k", core.Wait(end.wait))
					wantErr(t, err, core.ErrNotAcquired)
					synctest.Wait()
					unlock(t, held)
					wantErr(t, call(background, l))
				})
			})
		}
	}
}

// Calls that have given up one after the other are confirmed in any order.
func TestCallsThatGaveUpRefuseNobodyHere(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		held := take(t, background, l, "k")
		s.fail(release, lateRequest(100*time.Millisecond), lateRequest(10*time.Millisecond)) // of the first entry, of the second
		for range 2 {
			_, err := l.Lock(background, "k", core.Wait(30*time.Millisecond))
			wantErr(t, err, core.ErrNotAcquired)
		}
		time.Sleep(20 * time.Millisecond)
		unlock(t, held)
		unlock(t, take(t, background, l, "k", core.NoWait()))
	})
}

// It waits for no more than that: a lock that somebody has is refused, and so is one of which nobody can say.
func TestBusyLockWhileAnEntryIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Timeout(time.Second))
		held := take(t, background, l, "k")
		s.failAll(refuse("ERR not now"), release)
		_, err := l.Lock(background, "k", core.Wait(30*time.Millisecond))
		wantErr(t, err, core.ErrNotAcquired)
		for _, limit := range []time.Duration{100 * time.Millisecond, time.Hour} {
			ctx, cancel := context.WithTimeout(background, limit)
			began := time.Now()
			_, err = l.TryLock(ctx, "k")
			wantBusy(t, err)
			wantTime(t, "TryLock", time.Since(began), 0, min(limit, time.Second))
			cancel()
		}
		began := time.Now()
		other, err := l.TryLock(background, "other")
		wantErr(t, err)
		wantTime(t, "TryLock of another lock", time.Since(began), 0, 0)
		s.heal()
		time.Sleep(time.Minute)
		unlock(t, held, other)
	})
}
