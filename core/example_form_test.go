package core_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

func ExampleShared() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	report := func(who string, opts ...core.Option) *core.Lock {
		lock, err := locker.TryLock(ctx, "report", opts...)
		fmt.Println(who, "may:", err == nil)
		return lock
	}
	reader := report("a reader", core.Shared())
	another := report("another reader", core.Shared())
	report("a writer")
	fmt.Println(reader.Unlock(ctx), another.Unlock(ctx))
	report("the writer, alone")
	// Output:
	// a reader may: true
	// another reader may: true
	// a writer may: false
	// <nil> <nil>
	// the writer, alone may: true
}

func ExamplePermits() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	var exports []*core.Lock
	for range 4 {
		export, err := locker.TryLock(ctx, "exports of acme", core.Permits(3))
		if errors.Is(err, core.ErrNotAcquired) {
			fmt.Println("three exports are running")
			break
		}
		exports = append(exports, export)
	}
	fmt.Println(exports[0].Unlock(ctx))
	_, err := locker.TryLock(ctx, "exports of acme", core.Permits(3))
	fmt.Println("one more:", err)
	// Output:
	// three exports are running
	// <nil>
	// one more: <nil>
}

func ExampleLock_Handover() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	lock, err := locker.Lock(ctx, "orderID=42")
	if err != nil {
		log.Fatal(err)
	}
	ticket, err := lock.Handover(ctx, time.Minute) // goes along with the job
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(context.Cause(lock.Context()), lock.Unlock(ctx))
	_, err = locker.TryLock(ctx, "orderID=42")
	fmt.Println("busy:", errors.Is(err, core.ErrNotAcquired))

	resumed, err := locker.Resume(ctx, "orderID=42", ticket)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("later:", resumed.Token() > lock.Token(), resumed.Unlock(ctx))
	// Output:
	// core: the lock was handed over <nil>
	// busy: true
	// later: true <nil>
}

func ExampleLocker_Resume() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	lock, err := locker.Lock(ctx, "orderID=42")
	if err != nil {
		log.Fatal(err)
	}
	ticket, err := lock.Handover(ctx, time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	for attempt := range 2 {
		resumed, err := locker.Resume(ctx, "orderID=42", ticket)
		if err != nil {
			log.Fatal(err)
		}
		if attempt == 0 {
			fmt.Println("failed, and parked again:", resumed.Abort(ctx))
			continue
		}
		fmt.Println("done:", resumed.Unlock(ctx))
	}
	_, err = locker.Resume(ctx, "orderID=42", ticket)
	fmt.Println(errors.Is(err, core.ErrTicket))
	// Output:
	// failed, and parked again: <nil>
	// done: <nil>
	// true
}
