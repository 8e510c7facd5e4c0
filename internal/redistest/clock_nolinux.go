//go:build !linux

package redistest

import (
	"testing"
	"time"
)

// Clock is that of a Server.
type Clock struct{}

// StartWithClock is Start: the clock is nil, and cannot be set.
func StartWithClock(tb testing.TB, args ...string) (*Server, *Clock) {
	tb.Helper()
	return Start(tb, args...), nil
}

// SetBack is never called.
func (*Clock) SetBack(testing.TB, time.Duration) {}
