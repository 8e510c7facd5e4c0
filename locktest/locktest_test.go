//go:build go1.25

package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/locktest"
)

func TestWorksWithoutABubble(t *testing.T) {
	locker := locktest.New(t)
	if err := locker.Do(context.Background(), "order:42", func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// In a bubble an hour passes at once, and leases run by its clock.
func TestTimePassesInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t, core.NoWait())
		ctx := context.Background()
		k, err := locker.Lock(ctx, "order:42", core.FixedLease(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := locker.Lock(ctx, "order:42"); !errors.Is(err, core.ErrNotAcquired) {
			t.Fatalf("err %v, want ErrNotAcquired", err)
		}
		time.Sleep(time.Hour + time.Millisecond)
		again, err := locker.Lock(ctx, "order:42")
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Unlock(ctx); !errors.Is(err, core.ErrLost) {
			t.Errorf("err %v, want ErrLost", err)
		}
		if err := again.Unlock(ctx); err != nil {
			t.Error(err)
		}
	})
}

// Many renewals travel together, and none is lost.
func TestManyLocksInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		ctx := context.Background()
		var locks []*core.Lock
		for i := range 300 {
			k, err := locker.Lock(ctx, strconv.Itoa(i))
			if err != nil {
				t.Fatal(err)
			}
			locks = append(locks, k)
		}
		time.Sleep(time.Minute)
		for _, k := range locks {
			if err := k.Unlock(ctx); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Each New has a Redis of its own: what one holds the other does not.
func TestLockersDoNotShareARedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := locktest.New(t), locktest.New(t)
		k, err := one.Lock(context.Background(), "order:42")
		if err != nil {
			t.Fatal(err)
		}
		other, err := two.Lock(k.Context(), "order:42", core.NoWait())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(other.Unlock(context.Background()), k.Unlock(context.Background())); err != nil {
			t.Error(err)
		}
	})
}

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	cleanups []func()
	failed   bool
	said     string
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, args ...any) {
	r.failed, r.said = true, fmt.Sprintf(format, args...)
}
func (r *recorder) Fatalf(string, ...any) { r.failed = true; panic(r) }

func TestALockLeftHeldFailsTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{TB: t}
		k, err := locktest.New(r).Lock(context.Background(), "order:42")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.cleanups {
			f()
		}
		if want := `"order:42" by owner ` + k.Owner() + ", for 1s"; !r.failed || !strings.Contains(r.said, want) {
			t.Errorf("the test said %q; want %q", r.said, want)
		}
		if cause := context.Cause(k.Context()); !errors.Is(cause, core.ErrClosed) {
			t.Errorf("cause %v, want ErrClosed", cause)
		}
	})
}

func TestBadOptionsEndTheTest(t *testing.T) {
	r := &recorder{TB: t}
	defer func() {
		if recover() != r || !r.failed {
			t.Error("the test did not end")
		}
	}()
	locktest.New(r, core.Lease(-1))
}

// Whatever is left held, the test that fails says which key.
func TestLeaksAreNamed(t *testing.T) {
	lock := func(ctx context.Context, l *core.Locker, key string, opts ...core.Option) *core.Lock {
		k, err := l.Lock(ctx, key, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	for what, leak := range map[string]func(l *core.Locker){
		"a lock": func(l *core.Locker) { lock(context.Background(), l, "order") },
		"an inner hold": func(l *core.Locker) {
			outer := lock(context.Background(), l, "order")
			lock(outer.Context(), l, "order")
			_ = outer.Unlock(context.Background())
		},
		"a shared lock": func(l *core.Locker) { lock(context.Background(), l, "order", core.Shared()) },
		"by an owner":   func(l *core.Locker) { lock(context.Background(), l, "order", core.Owner("me")) },
		"one of two": func(l *core.Locker) {
			other := lock(context.Background(), l, "other")
			lock(other.Context(), l, "order")
			_ = other.Unlock(context.Background())
		},
		"several": func(l *core.Locker) { _, _ = l.LockAll(context.Background(), []string{"order", "other"}) },
		"a call that waits": func(l *core.Locker) {
			lock(context.Background(), l, "order")
			go func() { _, _ = l.Lock(context.Background(), "order") }()
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{TB: t}
				leak(locktest.New(r))
				for _, f := range r.cleanups {
					f()
				}
				if !strings.Contains(r.said, `"order"`) {
					t.Errorf("the test said %q", r.said)
				}
			})
		})
	}
}
