package adapter_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/locktest"
)

// The log says who is in the way of a call that was refused.
func ExampleLookUp() {
	t := &exampleT{}
	defer t.end()
	locker := locktest.New(t, core.Describe("shop-eu-3"))

	lock, err := locker.Lock(context.Background(), "42")
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock(context.Background())

	written := make(chan struct{})
	adapter.LookUp(locker, "42", func(info core.Info, waiting int, asked bool) {
		defer close(written)
		holder, _ := core.ProcessOf(info.Owner)
		fmt.Println("Redis has answered:", asked)
		fmt.Println("held by", holder.Name, "for less than a minute:", info.Holders[0].HeldFor < time.Minute)
		fmt.Println("waiting here:", waiting)
	})
	<-written
	// Output:
	// Redis has answered: true
	// held by shop-eu-3 for less than a minute: true
	// waiting here: 0
}

// What an adapter has to say goes where the lines of its Locker go.
func ExampleLoggerOf() {
	t := &exampleT{}
	defer t.end()
	untimed := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: untimed}))
	locker := locktest.New(t, core.Logger(logger))

	adapter.LoggerOf(locker).Info("a message was refused because it has no key", "topic", "orders")
	// Output:
	// level=INFO msg="a message was refused because it has no key" topic=orders
}

// A tool that looks at locks writes nothing in Redis.
func ExampleLooking() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	locker, err := core.Open(context.Background(), "redis://"+server.Addr(), adapter.Looking())
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())
	info, err := locker.Inspect(context.Background(), "42")
	fmt.Println("locked:", info.Locked, err)
	fmt.Println("keys in Redis:", len(server.Keys()))
	// Output:
	// locked: false <nil>
	// keys in Redis: 0
}
