//go:build go1.25

// Lockpage is a process that holds locks and waits for some, with a page to watch
// them: open the address that it prints.
//
//	go run ./examples/lockpage                        # on an embedded Redis
//	go run ./examples/lockpage -redis localhost:6379  # on a real one
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/examples/internal/start"
	"github.com/latchkey-go/latchkey/httplock"
)

var (
	redisAddr = flag.String("redis", "", "address of a Redis server; empty: an embedded one")
	serve     = flag.String("serve", "127.0.0.1:8080", "address to serve at until interrupted")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal("lockpage: ", err)
	}
}

func run(ctx context.Context) error {
	addr, stop, err := start.Redis(ctx, *redisAddr)
	if err != nil {
		return err
	}
	defer stop()
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	defer client.Close()

	// Two Lockers are two processes to one another. The page shows the first.
	shop, err := core.New(client, core.Describe("shop"))
	if err != nil {
		return err
	}
	defer shop.Close(context.WithoutCancel(ctx))
	warehouse, err := core.New(client, core.Describe("warehouse"))
	if err != nil {
		return err
	}
	defer warehouse.Close(context.WithoutCancel(ctx))

	var work sync.WaitGroup
	defer work.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
	open(ctx, &work, shop, warehouse)
	return keepServing(ctx, shop)
}

// newMux has the page. Here it is for all who reach the port, which are those on
// this machine, by the host that they are told to open. In a service put your
// authentication around it.
func newMux(locker *core.Locker, host string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/debug/locks", httplock.LockPage(locker, httplock.AllowForceUnlock(), httplock.AllowedHosts(host, "localhost")))
	mux.Handle("GET /{$}", http.RedirectHandler("/debug/locks", http.StatusFound))
	return mux
}

// open begins the day's work.
func open(ctx context.Context, work *sync.WaitGroup, shop, warehouse *core.Locker) {
	hold := func(l *core.Locker, key string, opts ...core.Option) {
		work.Go(func() { _ = l.Do(ctx, key, untilClosed, opts...) })
	}
	hold(shop, "import:supplier-7", core.FixedLease(time.Hour))
	// A job that hangs does not see that its context has ended.
	work.Go(func() {
		_ = shop.Do(ctx, "report:monthly", func(context.Context) error { return untilClosed(ctx) },
			core.Lease(time.Hour), core.MaxHold(10*time.Second))
	})
	work.Go(func() {
		_ = shop.Do(ctx, "orderID=1042", func(ctx context.Context) error {
			for range 3 {
				hold(shop, "orderID=1042") // waits
			}
			return shop.Do(ctx, "orderID=1042", untilClosed) // enters it once more
		})
	})
	work.Go(func() {
		_ = warehouse.Do(ctx, "stock:sku-1887", func(ctx context.Context) error {
			for range 2 {
				hold(shop, "stock:sku-1887") // waits
			}
			return untilClosed(ctx)
		})
	})
	hold(warehouse, "inventory:hall-3")
	// Confirmed once, and not again for an hour.
	work.Go(func() {
		_ = shop.Do(ctx, "mail:order-1041:shipped", func(context.Context) error { return nil }, core.KeepFor(time.Hour))
	})
	// Customers come and go.
	for range 6 {
		work.Go(func() {
			for ctx.Err() == nil {
				_ = shop.Do(ctx, fmt.Sprintf("cart:user-%d", 100+rand.IntN(8)), func(ctx context.Context) error {
					return pause(ctx, time.Second+rand.N(9*time.Second))
				})
			}
		})
	}
}

// untilClosed works until the process ends, or the lock is lost.
func untilClosed(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// keepServing serves until interrupted.
func keepServing(ctx context.Context, locker *core.Locker) error {
	listener, url, err := start.Listen(*serve)
	if err != nil {
		return err
	}
	fmt.Printf("The locks, to watch: %s/debug/locks (until interrupted)\n", url)
	return start.Serve(ctx, listener, newMux(locker, strings.TrimPrefix(url, "http://")))
}
