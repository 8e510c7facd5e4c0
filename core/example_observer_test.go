package core_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// busyCounter counts refused calls by the name of the lock.
type busyCounter map[string]int // a real one would be safe for concurrent use

func (c busyCounter) Observe(ctx context.Context, e core.Event) context.Context {
	if e.Kind == core.EventBusy {
		c[e.Name+" "+e.Reason]++
	}
	return ctx
}

func ExampleObserve() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()

	refused := busyCounter{}
	locker, err := core.New(client, core.Observe(refused))
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())

	ctx := context.Background()
	holder, err := locker.Lock(ctx, "orderID=42", core.Name("orders"))
	if err != nil {
		log.Fatal(err)
	}
	defer holder.Unlock(ctx)
	_, err = locker.TryLock(ctx, "orderID=42", core.Name("orders"))
	fmt.Println(errors.Is(err, core.ErrNotAcquired), refused)
	// Output: true map[orders no_wait:1]
}
