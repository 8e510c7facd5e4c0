package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// A cache that runs empty costs one call: all others, in any process, wait for its result.
func ExampleOnce() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	type rate struct{ Currency, Euro string }
	load := func(ctx context.Context) (rate, error) {
		fmt.Println("asking the bank")
		return rate{"CHF", "0.94"}, nil
	}
	for range 3 {
		r, err := core.Once(ctx, locker, "rate:CHF", load, core.KeepFor(time.Minute))
		fmt.Println(r.Euro, err)
	}
	// Output:
	// asking the bank
	// 0.94 <nil>
	// 0.94 <nil>
	// 0.94 <nil>
}

func ExampleWrapOnce() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	fails := true
	build := func(ctx context.Context, month string) (string, error) {
		if fails {
			fails = false
			return "", errors.New("the database is down")
		}
		fmt.Println("building", month)
		return "reports/" + month + ".pdf", nil
	}
	buildOnce := core.WrapOnce(locker,
		func(month string) (string, error) { return "report:" + month, nil }, build, core.KeepFor(time.Hour))
	for range 3 {
		fmt.Println(buildOnce(ctx, "2026-11"))
	}
	// Output:
	//  the database is down
	// building 2026-11
	// reports/2026-11.pdf <nil>
	// reports/2026-11.pdf <nil>
}

// A run that has lost its lock, or whose process has died, may have done its work.
func ExampleAttemptOf() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	pay := func(ctx context.Context) (string, error) {
		if n := core.AttemptOf(ctx); n > 1 {
			return fmt.Sprintf("attempt %d looks first whether it was paid", n), nil
		}
		<-ctx.Done() // Redis does not answer, until the lease is over
		return "paid", nil
	}
	for range 2 {
		text, err := core.Once(ctx, locker, "payment:42", pay, core.KeepFor(time.Hour), core.FixedLease(50*time.Millisecond))
		fmt.Println(text, errors.Is(err, core.ErrLost))
	}
	// Output:
	// paid true
	// attempt 2 looks first whether it was paid false
}

func ExampleRefuseUnknown() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	lost := func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", nil
	}
	_, _ = core.Once(ctx, locker, "payment:42", lost, core.KeepFor(time.Hour), core.FixedLease(50*time.Millisecond))

	never := func(context.Context) (string, error) { return "paid twice", nil }
	_, err := core.Once(ctx, locker, "payment:42", never, core.KeepFor(time.Hour), core.RefuseUnknown())
	fmt.Println(err, errors.Is(err, core.ErrOutcomeUnknown))
	// Output: core: nobody knows what the last attempt under the lock has done true
}

// What is too large to be kept belongs elsewhere: the result says where.
func ExampleOnce_tooLarge() {
	locker, done := open()
	defer done()

	film := func(context.Context) (string, error) { return strings.Repeat("frame", 20_000), nil }
	data, err := core.Once(context.Background(), locker, "film", film, core.KeepFor(time.Hour))
	fmt.Println(len(data), errors.Is(err, core.ErrResultTooLarge))
	// Output: 100000 true
}
