package core

import (
	"context"
	"testing"
)

// Without an Observer the hooks cost a look at a field that is nil.
func TestWithoutObserversNothingIsAllocated(t *testing.T) {
	l := &Locker{}
	s := &lease{locker: l}
	ctx := context.Background()
	err := lost("k", "of a test", nil)
	if n := testing.AllocsPerRun(100, func() {
		s.tell(s.observed, Event{Kind: EventRenewalFailed, Err: err})
		s.tellReleased()
		s.tellLost(err)
		l.notify(ctx, Event{Kind: EventRefused, Err: err}, nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if s.observed != nil {
		t.Error("the lease is observed")
	}
}
