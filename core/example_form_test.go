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

func ExampleLock_Downgrade() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	report, err := locker.Lock(ctx, "report")
	if err != nil {
		log.Fatal(err)
	}
	defer report.Unlock(ctx)
	fmt.Println("rebuilt alone")
	if err := report.Downgrade(ctx); err != nil {
		log.Fatal(err)
	}
	reader, err := locker.TryLock(ctx, "report", core.Shared())
	fmt.Println("read beside another reader:", err)
	defer reader.Unlock(ctx)
	_, err = locker.TryLock(ctx, "report")
	fmt.Println("a writer:", err)
	// Output:
	// rebuilt alone
	// read beside another reader: <nil>
	// a writer: core: lock not acquired: somebody else holds it
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

func ExampleWeight() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	for _, file := range []struct {
		name   string
		weight int
	}{{"a film", 4}, {"another film", 4}, {"a picture", 1}} {
		conversion, err := locker.TryLock(ctx, "conversions of acme", core.Permits(5), core.Weight(file.weight))
		if errors.Is(err, core.ErrNoPermit) {
			fmt.Println("no room for", file.name)
			continue
		}
		defer conversion.Unlock(ctx)
		fmt.Println("converting", file.name)
	}
	// Output:
	// converting a film
	// no room for another film
	// converting a picture
}

func ExamplePermitsEach() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	for _, tenant := range []string{"acme", "acme", "acme", "other", "third"} {
		keys := []string{"exports of " + tenant, "exports"}
		export, err := locker.LockAll(ctx, keys, core.PermitsEach(2, 3), core.NoWait())
		if busy := (*core.BusyError)(nil); errors.As(err, &busy) {
			fmt.Println(tenant, "finds no permit among the", busy.Key)
			continue
		}
		defer export.Unlock(ctx)
		fmt.Println(tenant, "exports")
	}
	// Output:
	// acme exports
	// acme exports
	// acme finds no permit among the exports of acme
	// other exports
	// third finds no permit among the exports
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
