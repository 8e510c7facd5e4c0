package redistest

import (
	"testing"
	"time"
)

// patience bounds everything that this package waits for by itself: it ends tests
// that hang, on a machine that does other things at the same time.
const patience = 2 * time.Minute

// Await returns as soon as condition is true, and ends the test when it is not
// after d. The condition is asked every few milliseconds, on the caller's
// goroutine.
func Await(tb testing.TB, d time.Duration, what string, condition func() bool) {
	tb.Helper()
	if !poll(d, condition) {
		tb.Fatalf("still waiting after %v: %s", d, what)
	}
}

// poll asks condition until it is true or d is over.
func poll(d time.Duration, condition func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.Now().Add(d)
	for !condition() {
		if time.Now().After(end) {
			return false
		}
		<-tick.C
	}
	return true
}
