package core_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

func ExampleLocker_Snapshot() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	order, err := locker.Lock(ctx, "orderID=42")
	if err != nil {
		log.Fatal(err)
	}
	defer order.Unlock(ctx)
	report, err := locker.Lock(ctx, "report", core.FixedLease(time.Hour))
	if err != nil {
		log.Fatal(err)
	}
	defer report.Unlock(ctx)

	for _, held := range locker.Snapshot().Held {
		fmt.Println(held.Key, "holds:", held.Count, "fixed:", held.Fixed)
	}
	// Output:
	// orderID=42 holds: 1 fixed: false
	// report holds: 1 fixed: true
}
