package core_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey/core"
)

// Many may read a report, and one may rebuild it.
func ExampleShared() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	err := locker.Do(ctx, "report=7", func(ctx context.Context) error {
		fmt.Println("reading")
		// Others come, with contexts of their own.
		another, err := locker.TryLock(context.Background(), "report=7", core.Shared())
		if err != nil {
			return err
		}
		fmt.Println("another is reading")
		_, err = locker.TryLock(context.Background(), "report=7")
		fmt.Println("busy for who wants to rebuild it:", errors.Is(err, core.ErrNotAcquired))
		// This context would wait for itself.
		_, err = locker.TryLock(ctx, "report=7")
		fmt.Println("busy for who reads it:", errors.Is(err, core.ErrUpgrade))
		return another.Unlock(context.Background())
	}, core.Shared())
	fmt.Println(err)
	// Output:
	// reading
	// another is reading
	// busy for who wants to rebuild it: true
	// busy for who reads it: true
	// <nil>
}

// At most two exports of a tenant at once, in all processes together.
func ExamplePermits() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	two := core.Permits(2)
	first, err := locker.TryLock(ctx, "export:tenant=acme", two)
	fmt.Println("first:", err)
	second, err := locker.TryLock(ctx, "export:tenant=acme", two)
	fmt.Println("second:", err)
	_, err = locker.TryLock(ctx, "export:tenant=acme", two)
	fmt.Println("third: no permit:", errors.Is(err, core.ErrNoPermit))

	fmt.Println(first.Unlock(ctx))
	third, err := locker.TryLock(ctx, "export:tenant=acme", two)
	fmt.Println("third:", err)
	fmt.Println(errors.Join(second.Unlock(ctx), third.Unlock(ctx)))
	// Output:
	// first: <nil>
	// second: <nil>
	// third: no permit: true
	// <nil>
	// third: <nil>
	// <nil>
}
