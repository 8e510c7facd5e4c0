package core_test

import (
	"context"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"

	"github.com/latchkey-go/latchkey/core"
)

// Close waits for the releases that Do has not waited for.
func ExampleBackgroundRelease() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	locker, err := core.Open(ctx, "redis://"+server.Addr(), core.BackgroundRelease())
	if err != nil {
		log.Fatal(err)
	}

	err = locker.Do(ctx, "orderID=42", func(context.Context) error {
		fmt.Println("paid")
		return nil
	})
	fmt.Println(err)

	fmt.Println(locker.Close(ctx), server.Exists("lock:orderID=42"))
	// Output:
	// paid
	// <nil>
	// <nil> false
}
