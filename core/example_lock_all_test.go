package core_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"

	"github.com/latchkey-go/latchkey/core"
)

// A transfer from 1 to 2 and one from 2 to 1 take the same locks in the same order.
func ExampleLocker_LockAll() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	locks, err := locker.LockAll(ctx, []string{"account=2", "account=1", "account=2"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(locks.Keys())

	// Every key or none.
	_, err = locker.LockAll(ctx, []string{"account=0", "account=1"}, core.NoWait())
	fmt.Println(errors.Is(err, core.ErrNotAcquired))
	info, _ := locker.Inspect(ctx, "account=0")
	fmt.Println(info.Locked)

	fmt.Println(locks.Unlock(ctx))
	// Output:
	// [account=1 account=2]
	// true
	// false
	// <nil>
}

func ExampleLocker_DoAll() {
	locker, done := open()
	defer done()

	balance := map[string]int{"ann": 100, "bob": 100}
	transfer := func(from, to string, amount int) error {
		return locker.DoAll(context.Background(), []string{from, to}, func(ctx context.Context) error {
			// ctx ends as soon as one of the locks is lost.
			balance[from] -= amount
			balance[to] += amount
			return ctx.Err()
		})
	}
	back := make(chan error)
	go func() { back <- transfer("bob", "ann", 30) }()
	fmt.Println(transfer("ann", "bob", 50), <-back)
	fmt.Println(balance)
	// Output:
	// <nil> <nil>
	// map[ann:80 bob:120]
}

func ExampleWrapAll() {
	locker, done := open()
	defer done()

	type Order struct{ SKUs []string }
	reserve := func(_ context.Context, o Order) (string, error) {
		return fmt.Sprint("reserved ", o.SKUs), nil
	}
	keys := func(o Order) ([]string, error) {
		var keys []string
		for _, sku := range o.SKUs {
			keys = append(keys, "sku="+sku)
		}
		return keys, nil
	}

	reserve = core.WrapAll(locker, keys, reserve)

	fmt.Println(reserve(context.Background(), Order{SKUs: []string{"tea", "cup"}}))
	// Output: reserved [tea cup] <nil>
}

// Each key has a token of its own, for the store that it protects.
func ExampleMultiLock_Token() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	first, _ := locker.LockAll(ctx, []string{"account=1", "account=2"})
	_ = first.Unlock(ctx)
	second, _ := locker.LockAll(ctx, []string{"account=1", "account=2"})
	defer second.Unlock(ctx)

	for _, key := range slices.Sorted(slices.Values(second.Keys())) {
		fmt.Println(key, second.Token(key) > first.Token(key))
	}
	fmt.Println(second.Token("account=3"))
	// Output:
	// account=1 true
	// account=2 true
	// 0
}
