package adapter_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/locktest"
)

// An adapter whose calls read or write, and share the lock when they read.
func ExampleForms() {
	t := &exampleT{}
	defer t.end()
	locker := locktest.New(t)

	type call struct{ method string }
	forms := adapter.Forms[call]{Shared: func(c call) bool { return c.method == "Read" }}
	opts := []core.Option{core.NoWait()}
	if err := forms.Validate(opts...); err != nil {
		panic("orderlock: " + err.Error())
	}
	fmt.Println("calls go", forms.Describe(opts...))

	do := func(ctx context.Context, c call, fn func(ctx context.Context) error) {
		err := locker.Do(ctx, "report", fn, forms.Options(c, opts)...)
		fmt.Println(c.method, "refused:", errors.Is(err, core.ErrNotAcquired))
	}
	nothing := func(context.Context) error { return nil }
	do(context.Background(), call{"Read"}, func(context.Context) error {
		do(context.Background(), call{"Read"}, nothing)
		do(context.Background(), call{"Write"}, nothing)
		return nil
	})
	// Output:
	// calls go shared or alone
	// Read refused: false
	// Write refused: true
	// Read refused: false
}
