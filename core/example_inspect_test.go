package core_test

import (
	"context"
	"fmt"
	"log"

	"github.com/latchkey-go/latchkey/core"
)

// Who has the permits? Each holder is listed, with its own lease.
func ExampleLocker_Inspect_permits() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	for range 2 {
		export, err := locker.Lock(ctx, "tenant=7", core.Permits(3))
		if err != nil {
			log.Fatal(err)
		}
		defer export.Unlock(ctx)
	}
	info, err := locker.Inspect(ctx, "tenant=7")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Form, "in use:", len(info.Holders))
	for _, h := range info.Holders {
		who, _ := core.ProcessOf(h.Owner)
		fmt.Println("by this process:", who == locker.Snapshot().Process, "holds:", h.Count)
	}
	// Output:
	// permits in use: 2
	// by this process: true holds: 1
	// by this process: true holds: 1
}

// One of several holders hangs: it is evicted, and the others stay.
func ExampleLocker_ForceUnlock_owner() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	for _, owner := range []string{"export-1", "export-2"} {
		export, err := locker.Lock(ctx, "tenant=7", core.Permits(2), core.Owner(owner))
		if err != nil {
			log.Fatal(err)
		}
		defer export.Abort(ctx)
	}
	freed, err := locker.ForceUnlock(ctx, "tenant=7", "export-1")
	if err != nil {
		log.Fatal(err)
	}
	info, err := locker.Inspect(ctx, "tenant=7")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(freed, info.Holders[0].Owner)
	// Output: true export-2
}
