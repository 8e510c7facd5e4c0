//go:build go1.25

// Nethttp guards routes of net/http's ServeMux: paying and cancelling one order
// exclude each other, other orders go on, and a receipt is sent once in two seconds. A report is
// read by many at once, and rebuilt by one alone.
// GET /metrics tells Prometheus about the locks.
//
//	go run ./examples/nethttp                        # on an embedded Redis
//	go run ./examples/nethttp -redis localhost:6379  # on a real one
//	go run ./examples/nethttp -serve :8080           # serves until interrupted, for curl
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/examples/internal/start"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/promlock"
)

var (
	redisAddr = flag.String("redis", "", "address of a Redis server; empty: an embedded one")
	serve     = flag.String("serve", "", "address to serve at until interrupted, such as :8080")
	lease     = flag.Duration("lease", 30*time.Second, "how long a lock outlives a program that died")
	maxHold   = flag.Duration("max-hold", 20*time.Second, "how long a lock may be held")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal("nethttp: ", err)
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
	metrics := promlock.New()
	locker, err := core.New(client, core.Observe(metrics), core.Lease(*lease), core.MaxHold(*maxHold))
	if err != nil {
		return err
	}
	defer locker.Close(context.WithoutCancel(ctx))
	core.SetDefault(locker)

	if *serve != "" {
		return keepServing(ctx, newMux(metrics))
	}
	server := httptest.NewServer(newMux(metrics))
	defer server.Close()
	if err := demonstrate(ctx, server.URL); err != nil {
		return err
	}
	compareReports(ctx, os.Stdout)
	return nil
}

func newMux(metrics prometheus.Collector) http.Handler {
	// The route has to be known when ByParam asks for its parameter, so it goes
	// around handlers, not around the mux.
	perOrder := httplock.ByParam("orderID")

	mux := http.NewServeMux()
	mux.Handle("POST /orders/{orderID}/pay", perOrder(work("paid")))
	mux.Handle("POST /orders/{orderID}/cancel", perOrder(work("cancelled")))

	// A key of its own, so a receipt waits for no payment. Without a parameter to be
	// called by, the lock is given a name for the metrics.
	once := httplock.By(keyfunc.Scope("receipt", keyfunc.Param("orderID")),
		core.NoWait(), core.KeepFor(2*time.Second), core.Name("receipt"))
	mux.Handle("POST /orders/{orderID}/receipt", once(work("mailed")))

	new(report).handle(mux, sharedReads())

	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

var started = time.Now()

// work takes 200 ms, or what the query says (?takes=5s), and tells when it began and ended.
func work(done string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Since(started)
		takes, err := time.ParseDuration(r.URL.Query().Get("takes"))
		if err != nil || takes > time.Minute {
			takes = 200 * time.Millisecond
		}
		// The request's context is the lock's: it is cancelled if the lock is lost.
		select {
		case <-time.After(takes):
		case <-r.Context().Done():
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "order %s %-9s  from %4d to %4d ms\n", r.PathValue("orderID"), done,
			began.Milliseconds(), time.Since(started).Milliseconds())
	})
}

// demonstrate sends four requests at once, three of them for one order.
func demonstrate(ctx context.Context, url string) error {
	started = time.Now()
	paths := []string{"/orders/42/pay", "/orders/42/pay", "/orders/42/cancel", "/orders/7/pay"}
	failures := make([]error, len(paths))
	var all sync.WaitGroup
	for i, path := range paths {
		all.Go(func() { failures[i] = post(ctx, url+path) })
	}
	all.Wait()
	return errors.Join(failures...)
}

func post(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	fmt.Printf("%d  %s", response.StatusCode, answer)
	return err
}

// keepServing serves until interrupted.
func keepServing(ctx context.Context, handler http.Handler) error {
	listener, url, err := start.Listen(*serve)
	if err != nil {
		return err
	}
	fmt.Printf("Serving at %s until interrupted. Try, in two terminals:\n", url)
	fmt.Printf("  curl -X POST '%s/orders/42/pay?takes=2s'\n", url)
	fmt.Printf("  curl -X PUT %s/reports/7; curl %s/reports/7\n", url, url)
	fmt.Printf("  curl %s/metrics\n", url)
	return start.Serve(ctx, listener, handler)
}
