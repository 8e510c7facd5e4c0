package adapter_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// printer prints refusals.
type printer struct{}

func (printer) Observe(ctx context.Context, e core.Event) context.Context {
	if e.Kind == core.EventRefused {
		fmt.Println("refused:", e.Name, e.Reason)
	}
	return ctx
}

// Middleware of your own tells Observers of the calls that it refuses.
func ExampleNotify() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()
	locker, err := core.New(client, core.Observe(printer{}))
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())

	guarded := func(ctx context.Context, key string, handle func(context.Context) error) error {
		name := core.Name("payments")
		ran := false
		err := locker.Do(ctx, key, func(ctx context.Context) error { ran = true; return handle(ctx) }, name)
		if !ran {
			adapter.Notify(ctx, locker, core.Event{Kind: core.EventRefused, Err: err}, name)
		}
		return err
	}
	_ = guarded(context.Background(), "", func(context.Context) error { return nil }) // without a key
	// Output: refused: payments invalid_key
}
