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

	reader, err := locker.Lock(ctx, "report", core.Shared())
	if err != nil {
		log.Fatal(err)
	}
	another, err := locker.Lock(ctx, "report", core.Shared())
	if err != nil {
		log.Fatal(err)
	}
	_, err = locker.TryLock(ctx, "report")
	fmt.Println("a writer beside two readers:", err)
	fmt.Println(reader.Unlock(ctx), another.Unlock(ctx))

	writer, err := locker.TryLock(ctx, "report")
	fmt.Println("alone:", err, writer.Unlock(ctx))
	// Output:
	// a writer beside two readers: core: lock not acquired: somebody else holds it
	// <nil> <nil>
	// alone: <nil> <nil>
}

func ExamplePermits() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	for range 4 {
		export, err := locker.TryLock(ctx, "exports of acme", core.Permits(3))
		if errors.Is(err, core.ErrNotAcquired) {
			fmt.Println("three exports are running")
			continue
		}
		defer export.Unlock(ctx)
		fmt.Println("an export starts")
	}
	// Output:
	// an export starts
	// an export starts
	// an export starts
	// three exports are running
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
