//go:build go1.25

package core_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// afterTheUnlock has a call ask Redis for what the outer lock of its context is, and the question arrive
// later, when that has been unlocked. A short lease has renewals fall due meanwhile, and end.
func afterTheUnlock(t *testing.T, later time.Duration, call func(context.Context, *core.Locker)) {
	bubble(t, func(t *testing.T, s *embedded) {
		heard, logged := &ear{}, &records{}
		opts := []core.Option{core.Lease(9 * time.Second), core.Timeout(time.Minute), core.Observe(heard), core.Logger(logged.logger())}
		l := s.locker(opts...)
		outer := take(t, background, l, "k")
		heard.want(t, "outer", "waiting", "acquired")
		s.fail(acquire, lateRequest(later))
		done := make(chan struct{})
		go func() {
			defer close(done)
			call(context.WithoutCancel(outer.Context()), l)
		}()
		synctest.Wait()
		unlock(t, outer)
		<-done
		synctest.Wait()
		events := strings.Join(heard.take(), ", ")
		if strings.Contains(events, "lost") || !strings.Contains(events, "released held="+later.String()) {
			t.Errorf("heard: %s", events)
		}
		if n := logged.count("lost"); n > 0 {
			t.Errorf("the log has %q", logged.all())
		}
		s.isFree("k")
	})
}

// Taken out, the inner call gets ErrLost, Observers hear of a loss, and the log has an error.
func TestReentryThatArrivesAfterTheUnlock(t *testing.T) {
	calls := map[string]func(context.Context, *core.Locker) (unlock func(context.Context) error, err error){
		"Lock": func(ctx context.Context, l *core.Locker) (func(context.Context) error, error) {
			k, err := l.Lock(ctx, "k")
			return k.Unlock, err
		},
		"TryLock": func(ctx context.Context, l *core.Locker) (func(context.Context) error, error) {
			k, err := l.TryLock(ctx, "k", core.Shared())
			return k.Unlock, err
		},
		"LockAll": func(ctx context.Context, l *core.Locker) (func(context.Context) error, error) {
			m, err := l.LockAll(ctx, []string{"j", "k"})
			return m.Unlock, err
		},
	}
	for name, call := range calls {
		for _, later := range []time.Duration{
			100 * time.Millisecond,
			800 * time.Millisecond, // a renewal was due
			2 * time.Second,        // the lease was over
		} {
			t.Run(fmt.Sprint(name, later), func(t *testing.T) {
				afterTheUnlock(t, later, func(ctx context.Context, l *core.Locker) {
					release, err := call(ctx, l)
					if err != nil {
						t.Fatalf("the inner call: %v", err)
					}
					if k, _ := core.FromContextKey(ctx, "k"); k != nil {
						t.Error("the outer one is held")
					}
					wantErr(t, release(background))
				})
			})
		}
	}
}

// It is as after the Unlock, also for a call with the context of the lock, which has ended.
func TestReentryWithTheContextOfALockThatIsUnlocked(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		outer := take(t, background, l, "k")
		s.fail(acquire, lateRequest(time.Second))
		during := start(outer.Context(), l, "k")
		unlock(t, outer)
		_, after := l.Lock(outer.Context(), "k")
		if err := (<-during).err; err == nil || after == nil || err.Error() != after.Error() {
			t.Errorf("%v; after the Unlock %v", err, after)
		}
		wantErr(t, after, core.ErrNotAcquired, context.Canceled)
	})
}

// foundThen is a context that has something done just when a call has found a lock in it.
type foundThen struct {
	context.Context
	then func()
}

func (c *foundThen) Err() error {
	if then := c.then; then != nil {
		c.then = nil
		then()
	}
	return c.Context.Err()
}

// Taken out, the call gets ErrLost.
func TestOuterUnlockedWhenACallHasFoundIt(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		for name, inside := range map[string]*core.Locker{"its Locker": l, "another one": s.locker()} {
			outer := take(t, background, l, "k")
			ctx := &foundThen{context.WithoutCancel(outer.Context()), func() { unlock(t, outer) }}
			in, err := inside.Lock(ctx, "k")
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if in.Owner() == outer.Owner() {
				t.Errorf("%s: it has the outer one's owner", name)
			}
			unlock(t, in)
		}
	})
}

// Another Locker enters by what Redis knows.
// Taken out, its call gets ErrLost.
func TestEntryOfAnotherLockerThatArrivesAfterTheUnlock(t *testing.T) {
	for name, keys := range map[string][]string{"Lock": nil, "LockAll of one": {"k"}, "LockAll": {"j", "k", "m"}, "LockAll that waits": {"busy", "k"}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l, other := s.locker(), s.locker()
				if slices.Contains(keys, "busy") {
					busy := take(t, background, l, "busy")
					time.AfterFunc(time.Second/2, func() { unlock(t, busy) })
				}
				outer := take(t, background, l, "k")
				ctx := context.WithoutCancel(outer.Context())
				s.fail(acquire, lateRequest(time.Second))
				done := make(chan error, 1)
				go func() {
					if keys == nil {
						k, err := other.Lock(ctx, "k")
						done <- cmp.Or(err, k.Unlock(background))
						return
					}
					m, err := other.LockAll(ctx, keys)
					done <- cmp.Or(err, m.Unlock(background))
				}()
				synctest.Wait()
				unlock(t, outer)
				wantErr(t, <-done)
				s.isFree("k")
			})
		})
	}
}
