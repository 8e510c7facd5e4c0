package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/locktest"
)

// exampleT is the *testing.T of your test.
type exampleT struct {
	testing.TB
	cleanups []func()
}

func (t *exampleT) Helper()          {}
func (t *exampleT) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

func (t *exampleT) end() {
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
}

// pay is what is tested.
func pay(ctx context.Context, locker *core.Locker) string {
	err := locker.Do(ctx, "orderID=42", charge, core.NoWait())
	switch {
	case errors.Is(err, core.ErrNotAcquired):
		return "somebody else pays this order"
	case errors.Is(err, core.ErrUnavailable):
		return "try again later"
	case errors.Is(err, core.ErrLost):
		return "paid, but look whether it was paid twice"
	default:
		return "paid"
	}
}

var charge = func(context.Context) error { return nil }

func ExampleHold() {
	t := &exampleT{}
	defer t.end()
	locker := locktest.New(t)

	release := locktest.Hold(t, locker, "orderID=42")
	fmt.Println(pay(context.Background(), locker))
	release()
	fmt.Println(pay(context.Background(), locker))
	// Output:
	// somebody else pays this order
	// paid
}

// Somebody else has one of the permits.
func ExampleHold_permits() {
	t := &exampleT{}
	defer t.end()
	locker := locktest.New(t)

	locktest.Hold(t, locker, "tenant=7", core.Permits(2))
	export := func(ctx context.Context) error {
		fmt.Println("the second one exports")
		err := locker.Do(core.Detach(ctx), "tenant=7", nothing, core.Permits(2), core.NoWait())
		fmt.Println("the third one is refused:", errors.Is(err, core.ErrNotAcquired))
		return nil
	}
	if err := locker.Do(context.Background(), "tenant=7", export, core.Permits(2)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// the second one exports
	// the third one is refused: true
}

func ExampleLose() {
	t := &exampleT{}
	defer t.end()
	locker := locktest.New(t, core.Logger(slog.New(slog.DiscardHandler)))

	charge = func(ctx context.Context) error {
		locktest.Lose(t, locker, "orderID=42")
		fmt.Println("cancelled:", errors.Is(context.Cause(ctx), core.ErrLost))
		return nil
	}
	defer func() { charge = nothing }()
	fmt.Println(pay(context.Background(), locker))
	// Output:
	// cancelled: true
	// paid, but look whether it was paid twice
}

func ExampleOutage() {
	t := &exampleT{}
	defer t.end()
	locker := locktest.New(t)

	end := locktest.Outage(t, locker)
	fmt.Println(pay(context.Background(), locker))
	end()
	fmt.Println(pay(context.Background(), locker))
	// Output:
	// try again later
	// paid
}
