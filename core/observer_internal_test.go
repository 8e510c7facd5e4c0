package core

import (
	"context"
	"testing"
)

// Without an Observer the hooks cost a look at a field that is nil.
func TestWithoutObserversNothingIsAllocated(t *testing.T) {
	l := &Locker{}
	s := &lease{engine: &l.engine}
	ctx := context.Background()
	err := lostError("k", "of a test", nil)
	if n := testing.AllocsPerRun(100, func() {
		s.observed.held(EventRenewalFailed, "", err)
		s.observed.released()
		s.observed.held(EventLost, "deleted", err)
		inside{}.Notify(ctx, l, Event{Kind: EventRefused, Err: err}, nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if s.observed != nil {
		t.Error("the lease is observed")
	}
}
