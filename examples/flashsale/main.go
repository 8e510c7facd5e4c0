//go:build go1.25

// Flashsale sells a limited stock to a crowd, first without a lock, then with
// one, over two servers that keep the stock in Redis.
//
//	go run ./examples/flashsale                        # on an embedded Redis
//	go run ./examples/flashsale -redis localhost:6379  # on a real one
//	go run ./examples/flashsale -serve :8080           # in a browser, to watch
//
// This file is the program without -serve. The page begins in serve.go; with it a
// shop is open to curl. Start it in two terminals with the same -redis and
// different -serve addresses to see the lock hold across processes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/examples/internal/start"
	"github.com/latchkey-go/latchkey/ginlock"
)

var (
	redisAddr = flag.String("redis", "", "address of a Redis server; empty: an embedded one")
	stock     = flag.Int("stock", 100, "items for sale")
	buyers    = flag.Int("buyers", 500, "buyers who come at once")
	serve     = flag.String("serve", "", "address of a page to watch the sale on, such as :8080")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal("flashsale: ", err)
	}
}

func run(ctx context.Context) error {
	if *stock < 1 || *buyers < 1 {
		return errors.New("-stock and -buyers must be at least 1")
	}
	addr, stop, err := start.Redis(ctx, *redisAddr)
	if err != nil {
		return err
	}
	defer stop()
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	defer client.Close()
	locker, err := core.New(client)
	if err != nil {
		return err
	}
	defer locker.Close(context.WithoutCancel(ctx))
	core.SetDefault(locker)
	if *serve != "" {
		return servePage(ctx, client)
	}

	var servers [2]string
	for i := range servers {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		server := &http.Server{Handler: newShop(client), ReadHeaderTimeout: 5 * time.Second}
		defer server.Close()
		go server.Serve(listener)
		servers[i] = "http://" + listener.Addr().String()
	}

	without, err := sell(ctx, client, servers, "without lock", "/unsafe/items/flash/buy")
	if err != nil {
		return err
	}
	with, err := sell(ctx, client, servers, "with lock", "/items/flash/buy")
	if err != nil {
		return err
	}
	fmt.Printf("%-14s %7s %7s %9s %9s %9s %11s\n", "", "stock", "sold", "oversold", "rejected", "time", "requests/s")
	without.print()
	with.print()
	if n := with.oversold(); n > 0 {
		return fmt.Errorf("the lock let %d too many through", n)
	}
	return nil
}

// newShop is one instance of the shop.
func newShop(client *redis.Client) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.ContextWithFallback = true // calls with c end when the lock is lost
	router.Any("/unsafe/items/:sku/buy", buy(client, time.Millisecond))

	// One line: of all requests for one sku, one at a time runs, whichever
	// instance it reaches. The crowd may wait longer than the usual 3 s.
	router.Use(ginlock.ByParam("sku", core.Wait(time.Minute), core.MaxWaiters(*buyers)))
	router.Any("/items/:sku/buy", buy(client, time.Millisecond))
	return router
}

// buy reads the stock, checks it and writes it back, in steps, as real handlers
// do. Two that run at once sell the same item.
func buy(client *redis.Client, work time.Duration) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx := c.Request.Context()
		left, err := client.Get(ctx, stockKey(c.Param("sku"))).Int()
		switch {
		case errors.Is(err, redis.Nil):
			c.String(http.StatusNotFound, "no such item\n")
			return
		case err != nil:
			c.String(http.StatusServiceUnavailable, "try again\n")
			return
		case left < 1:
			c.String(http.StatusGone, "sold out\n")
			return
		}
		time.Sleep(work) // the price, the customer, the address
		if err := client.Set(ctx, stockKey(c.Param("sku")), left-1, time.Hour).Err(); err != nil {
			c.String(http.StatusServiceUnavailable, "try again\n")
			return
		}
		c.String(http.StatusOK, "yours; %d left\n", left-1)
	}
}

func stockKey(sku string) string { return "flashsale:stock:" + sku }

// sale is what became of one run.
type sale struct {
	name           string
	sold, rejected atomic.Int64
	took           time.Duration
}

func (s *sale) oversold() int64 { return max(0, s.sold.Load()-int64(*stock)) }

func (s *sale) print() {
	fmt.Printf("%-14s %7d %7d %9d %9d %9s %11.0f\n", s.name, *stock, s.sold.Load(), s.oversold(), s.rejected.Load(),
		s.took.Round(time.Millisecond), float64(*buyers)/s.took.Seconds())
}

// sell fills the stock and lets all buyers come at once, the servers in turn.
func sell(ctx context.Context, client *redis.Client, servers [2]string, name, path string) (*sale, error) {
	if err := client.Set(ctx, stockKey("flash"), *stock, time.Hour).Err(); err != nil {
		return nil, err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: *buyers}
	defer transport.CloseIdleConnections()
	buyer := &http.Client{Transport: transport, Timeout: 2 * time.Minute}

	s := &sale{name: name}
	done := make(chan struct{})
	var progress sync.WaitGroup
	progress.Go(func() { s.showProgress(done) })

	started := time.Now()
	failures := make(chan error, *buyers)
	var crowd sync.WaitGroup
	for i := range *buyers {
		crowd.Go(func() {
			if err := s.buyOne(ctx, buyer, servers[i%len(servers)]+path); err != nil {
				failures <- err
			}
		})
	}
	crowd.Wait()
	s.took = time.Since(started)
	close(done)
	progress.Wait()

	select {
	case err := <-failures:
		return nil, err
	default:
		return s, nil
	}
}

func (s *sale) buyOne(ctx context.Context, buyer *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	response, err := buyer.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode == http.StatusOK:
		s.sold.Add(1)
	case response.StatusCode == http.StatusGone, response.StatusCode == http.StatusConflict:
		s.rejected.Add(1)
	default:
		return fmt.Errorf("%s: %s: %s", url, response.Status, answer)
	}
	return nil
}

// showProgress rewrites one line of a terminal until done.
func (s *sale) showProgress(done <-chan struct{}) {
	if stat, err := os.Stderr.Stat(); err != nil || stat.Mode()&os.ModeCharDevice == 0 {
		return // a log has no line to rewrite
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		sold, rejected := s.sold.Load(), s.rejected.Load()
		fmt.Fprintf(os.Stderr, "\r%s: %d of %d buyers answered, %d sold ", s.name, sold+rejected, *buyers, sold)
		select {
		case <-tick.C:
		case <-done:
			fmt.Fprint(os.Stderr, "\r\033[K")
			return
		}
	}
}
