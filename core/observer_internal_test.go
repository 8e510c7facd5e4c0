package core

import (
	"context"
	"testing"

	"github.com/latchkey-go/latchkey/core/internal/life"
)

// Without an Observer the hooks cost a look at a field that is nil.
func TestWithoutObserversNothingIsAllocated(t *testing.T) {
	l := &Locker{}
	ctx := context.Background()
	err := errorsOf{}.Lost("k", life.Deleted)
	if n := testing.AllocsPerRun(100, func() {
		_, o := l.observers.Wants(ctx, "k", 1, &l.defaults.Settings)
		if o != nil {
			t.Fatal("the call is observed")
		}
		inside{}.Notify(ctx, l, Event{Kind: EventRefused, Err: err}, nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
