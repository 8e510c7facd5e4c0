//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

var background = context.Background()

// take locks or ends the test.
func take(tb testing.TB, ctx context.Context, l *core.Locker, key string, opts ...core.Option) *core.Lock {
	tb.Helper()
	k, err := l.Lock(ctx, key, opts...)
	if err != nil {
		tb.Fatalf("Lock(%q): %v", key, err)
	}
	return k
}

func unlock(tb testing.TB, locks ...*core.Lock) {
	tb.Helper()
	for _, k := range locks {
		if err := k.Unlock(background); err != nil {
			tb.Errorf("Unlock of %q: %v", k.Key(), err)
		}
	}
}

// wantErr fails the test unless err is all of the targets.
func wantErr(tb testing.TB, err error, targets ...error) {
	tb.Helper()
	if len(targets) == 0 && err != nil {
		tb.Errorf("error is %v; want none", err)
	}
	for _, target := range targets {
		if !errors.Is(err, target) {
			tb.Errorf("error is %v; want one that is %v", err, target)
		}
	}
}

// wantNot fails the test when err is any of the targets.
func wantNot(tb testing.TB, err error, targets ...error) {
	tb.Helper()
	for _, target := range targets {
		if errors.Is(err, target) {
			tb.Errorf("error is %v; want one that is not %v", err, target)
		}
	}
}

// wantTime fails the test unless a duration lies between two bounds, both included.
func wantTime(tb testing.TB, what string, got, from, to time.Duration) {
	tb.Helper()
	if got < from || got > to {
		tb.Errorf("%s after %v; want %v to %v", what, got, from, to)
	}
}

// wantBusy returns the refusal behind err.
func wantBusy(tb testing.TB, err error) *core.BusyError {
	tb.Helper()
	wantErr(tb, err, core.ErrNotAcquired)
	var busy *core.BusyError
	if !errors.As(err, &busy) {
		tb.Fatalf("error is %v (%T); want a *BusyError", err, err)
	}
	return busy
}

// outcome is what a Lock in another goroutine came to.
type outcome struct {
	lock *core.Lock
	err  error
	took time.Duration
}

// start calls Lock in another goroutine and returns when it waits, or has ended.
func start(ctx context.Context, l *core.Locker, key string, opts ...core.Option) <-chan outcome {
	done := make(chan outcome, 1)
	began := time.Now()
	go func() {
		k, err := l.Lock(ctx, key, opts...)
		done <- outcome{k, err, time.Since(began)}
	}()
	synctest.Wait()
	return done
}

// waits fails the test when the call has ended.
func waits(tb testing.TB, done <-chan outcome) {
	tb.Helper()
	synctest.Wait()
	select {
	case o := <-done:
		tb.Fatalf("the call has ended (%v, %v); it should wait", o.lock, o.err)
	default:
	}
}

// endOf returns the moment a context ends, and why. One that does not end has no
// reason after an hour, so that the test fails rather than hangs.
func endOf(ctx context.Context) (time.Time, error) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Hour):
	}
	return time.Now(), context.Cause(ctx)
}

// ofCore is on the stack of every goroutine of a Locker, in whatever room.
var ofCore = []string{"latchkey/core.(", "latchkey/core/internal/"}

// blockedIn counts goroutines with one of these functions on the stack.
func blockedIn(functions ...string) int {
	buf := make([]byte, 1<<22)
	n := 0
	for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if slices.ContainsFunc(functions, func(f string) bool { return strings.Contains(stack, f) }) {
			n++
		}
	}
	return n
}
