//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// The error says what to do, and where: it is for the log.
func ExampleOpen() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()

	locker, err := core.Open(ctx, "redis://"+server.Addr())
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(ctx) // and the client with it
	err = locker.Do(ctx, "orderID=42", func(context.Context) error {
		fmt.Println("paid")
		return nil
	})
	fmt.Println(err)

	_, err = core.Open(ctx, "localhost:6379")
	fmt.Println(err)
	// Output:
	// paid
	// <nil>
	// core: Open: the URL must begin with redis://, rediss:// or unix://, as redis://localhost:6379 does
}

// At the start of a program, and in its readiness probe.
func ExampleLocker_Ping() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	server.RequireAuth("secret")
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	locker, err := core.New(client)
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())

	if err := locker.Ping(context.Background()); errors.Is(err, core.ErrUnavailable) {
		fmt.Println("not ready") // err says NOAUTH: the client has no password
	}
	// Output: not ready
}

// A cron job that every instance of a service starts runs once each time: the first one
// takes the lock, and its dedup window refuses the others also when the job took only a
// moment. The window ends before the next time, the lock of an instance that died with its
// lease. A job that failed is tried again by whoever comes next.
func ExampleLocker_Do_oncePerInterval() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	const interval = 200 * time.Millisecond // of an hour, say

	instance := func() (tick func(job func(context.Context) error)) {
		locker, err := core.New(redis.NewClient(&redis.Options{Addr: server.Addr()}))
		if err != nil {
			log.Fatal(err)
		}
		return func(job func(context.Context) error) {
			err := locker.Do(context.Background(), "cron:report", job,
				core.NoWait(),
				core.KeepFor(interval*3/4), // at least for: the clocks of instances differ
				core.MaxHold(time.Hour),    // at most for: then the job's context ends
			)
			if err != nil && !errors.Is(err, core.ErrNotAcquired) { // somebody else does it, or has done it
				log.Print(err)
			}
		}
	}
	ticks := []func(func(context.Context) error){instance(), instance(), instance()}
	for hour := 1; hour <= 2; hour++ {
		var all sync.WaitGroup
		for _, tick := range ticks {
			all.Go(func() {
				tick(func(context.Context) error {
					fmt.Println("report of hour", hour)
					return nil
				})
			})
		}
		all.Wait()
		server.FastForward(interval)
	}
	// Output:
	// report of hour 1
	// report of hour 2
}

// Who has it? Owners tell the process: here, in redis-cli and in the lock page.
func ExampleProcessOf() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	locker, err := core.New(client, core.Describe("shop-eu"))
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())

	err = locker.Do(context.Background(), "orderID=42", func(ctx context.Context) error {
		info, err := locker.Inspect(ctx, "orderID=42")
		if err != nil {
			return err
		}
		if p, ok := core.ProcessOf(info.Owner); ok {
			fmt.Println(p.Name, p.PID == os.Getpid(), time.Since(p.Since) < time.Minute)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: shop-eu true true
}
