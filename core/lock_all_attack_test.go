package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// Whoever may ask for somebody else's key together with his own, and keeps his own busy, does not keep
// the other one: his calls hold it only while they ask. Theirs sorts before his, the worst case for it.
func TestLockAllThatWaitsLeavesOthersTheirKeys(t *testing.T) {
	const theirs, his = "a", "b"
	for name, c := range map[string]struct {
		processes int
		busy      time.Duration // how long each of his plain calls has his key; 0: one call has it all the time
		within    time.Duration
	}{
		"held":                     {1, 0, 20 * time.Millisecond},
		"held, in other processes": {4, 0, 20 * time.Millisecond},
		"contended":                {1, 700 * time.Millisecond, 1500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				ctx, stop := context.WithCancel(background)
				defer stop()
				if c.busy == 0 {
					defer unlock(t, take(t, background, s.locker(), his))
				}
				for range c.processes {
					l := s.locker()
					for range 60 {
						go func() {
							for ctx.Err() == nil {
								if c.busy > 0 {
									_ = l.Do(ctx, his, func(context.Context) error { time.Sleep(c.busy); return nil }, core.Wait(time.Second))
								}
								_ = l.DoAll(ctx, []string{his, theirs}, func(context.Context) error { return errors.New("forbidden") }, core.Wait(3*time.Second))
							}
						}()
					}
				}
				for _, l := range []*core.Locker{s.locker(), s.locker()} {
					for range 10 {
						time.Sleep(700 * time.Millisecond)
						began := time.Now()
						k, err := l.Lock(background, theirs, core.Wait(3*time.Second))
						if err != nil {
							t.Errorf("refused after %v: %v", time.Since(began), err)
							continue
						}
						if took := time.Since(began); took > c.within {
							t.Errorf("it took %v", took)
						}
						unlock(t, k)
					}
				}
			})
		})
	}
}

// However often it has given locks back, nothing of them is left in the context.
func TestLockAllContextHasWhatIsHeld(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		b := take(t, background, s.locker(), "b")
		all := startAll(background, s.locker(), []string{"a", "b"})
		unlock(t, b)
		m := (<-all).lock
		if n := strings.Count(fmt.Sprint(m.Context()), ".WithLock"); n != 2 {
			t.Errorf("%d locks are in the context", n)
		}
		unlockAll(t, m)
	})
}

// A lock for which a call of this process waits is handed off, also where Redis is slow to take back the others.
// Taken out, it lies idle as long as that takes, without a renewal: a lock that was granted a moment before ends, and
// Unlock fails with ErrLost.
func TestUnlockOfSeveralLocksHandsOffWhileRedisIsSlow(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		m := takeAll(t, background, l, []string{"a", "b"})
		next := start(background, l, "b")
		time.Sleep(time.Millisecond)
		s.fail(release, lateReply(time.Second))
		began := time.Now()
		unlocked := make(chan error, 1)
		go func() { unlocked <- m.Unlock(background) }()
		o := <-next
		wantTime(t, "handed off", time.Since(began), 0, 10*time.Millisecond)
		wantErr(t, <-unlocked, nil)
		unlock(t, o.lock)
	})
}

// Where somebody waits for one of them, the locks are released one by one after a command for all was in vain: both
// together take no longer than one request may.
func TestUnlockOfSeveralLocksEndsInTime(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.locker(core.Timeout(time.Second)), s.locker()
		m := takeAll(t, background, l, []string{"a", "b"})
		next := start(background, other, "b")
		time.Sleep(time.Millisecond)
		s.failAll(lateReply(800*time.Millisecond), release, "free_all")
		began := time.Now()
		err := m.Unlock(background)
		wantTime(t, "Unlock", time.Since(began), 800*time.Millisecond, time.Second+10*time.Millisecond)
		wantErr(t, err, core.ErrUnavailable)
		s.heal()
		unlock(t, (<-next).lock)
	})
}

// The same for a call that takes them: for all, one by one, and what it got it gives back.
func TestLockAllEndsInTimeWhileRedisIsSlow(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		const timeout = time.Second
		l, other := s.locker(core.Timeout(timeout)), s.locker()
		k := take(t, background, other, "b")
		s.failAll(lateReply(timeout*9/10), acquire, release, "take_all", "free_all")
		began := time.Now()
		_, err := l.LockAll(background, []string{"a", "b"}, core.NoWait())
		wantTime(t, "LockAll", time.Since(began), timeout, 4*timeout)
		wantErr(t, err, core.ErrUnavailable)
		s.heal()
		unlock(t, k)
	})
}
