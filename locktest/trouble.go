package locktest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// Hold holds a key as another process would, until release is called or the test ends:
// meanwhile the Locker finds it busy. It ends the test when the key is held already, and when
// the Locker is not one of [New]. It does not wait. Observers among New's options are notified
// too.
//
// The options are those of the other process. With [core.Shared] or [core.Permits] the key is
// busy only for calls that such a lock excludes.
func Hold(tb testing.TB, l *core.Locker, key string, opts ...core.Option) (release func()) {
	tb.Helper()
	const long = 24 * time.Hour // whatever New's options say
	other, client := sceneOf(tb, l).open(tb)
	k, err := other.TryLock(context.Background(), key, append(opts[:len(opts):len(opts)], core.Lease(long), core.MaxHold(long))...)
	release = sync.OnceFunc(func() {
		if k != nil {
			_ = k.Abort(context.Background()) // also if it was taken away meanwhile
		}
	})
	tb.Cleanup(func() {
		release()
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_ = other.Close(ctx)
		_ = client.Close()
	})
	if err != nil {
		tb.Fatalf("locktest: Hold: %v", err)
	}
	return release
}

// Lose takes a lock away from the Locker that holds it: when Lose returns, the lock's Context is
// cancelled with [core.ErrLost]. If the Locker shares the key or has permits, it loses all of
// these, and others keep theirs. Lose ends the test when the Locker does not hold the key, and
// when it is not one of [New].
func Lose(tb testing.TB, l *core.Locker, key string) {
	tb.Helper()
	s := sceneOf(tb, l)
	s.mu.Lock()
	taken := slices.Clone(s.taken[key])
	s.mu.Unlock()
	ctx := context.Background()
	why := error(core.ErrNotHeld)
	lost := false
	for _, k := range taken {
		if _, err := k.TTL(ctx); err != nil {
			why = err
			continue
		}
		_, err := l.ForceUnlock(ctx, key, k.Owner())
		if err == nil {
			_, err = k.TTL(ctx) // notices at once; the watchdog would take a third of the lease
		}
		if !errors.Is(err, core.ErrLost) {
			tb.Fatalf("locktest: Lose: %v", err)
		}
		lost = true
	}
	if !lost {
		tb.Fatalf("locktest: Lose: the Locker does not hold %q: %v", key, why)
	}
}

// Outage makes Redis answer everything with an error until end is called or the test
// ends. Meanwhile no lock can be taken ([core.ErrUnavailable]), and a lock that is held
// is lost when its lease is over ([core.ErrLost]). It ends the test when the Locker
// is not one of [New].
func Outage(tb testing.TB, l *core.Locker) (end func()) {
	tb.Helper()
	s := sceneOf(tb, l)
	s.isAway.Store(true)
	end = func() { s.isAway.Store(false) }
	tb.Cleanup(end)
	return end
}
