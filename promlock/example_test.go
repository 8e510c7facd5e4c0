package promlock_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/promlock"
)

func Example() {
	server, err := miniredis.Run() // yours is a real one
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()

	metrics := promlock.New()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	locker, err := core.New(client, core.Observe(metrics))
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())

	pay := func(context.Context) error { return nil }
	for _, key := range []string{"orderID=41", "orderID=42"} {
		if err := locker.Do(context.Background(), key, pay, core.Name("orders")); err != nil {
			log.Fatal(err)
		}
	}

	// What Prometheus reads. Two keys, one name.
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.Contains(line, `outcome="acquired"`) || strings.HasPrefix(line, "latchkey_lock_held") {
			fmt.Print(line)
		}
	}
	// Output:
	// latchkey_lock_calls_total{form="exclusive",name="orders",outcome="acquired",reason=""} 2
	// latchkey_lock_held{form="exclusive",name="orders"} 0
}

// Labels of your own, and buckets for work that takes minutes.
func ExampleNew() {
	metrics := promlock.New(0.01, 0.1, 1, 10, 60, 600)
	registry := prometheus.NewRegistry()
	labelled := prometheus.WrapRegistererWith(prometheus.Labels{"redis": "eu"}, registry)
	fmt.Println(labelled.Register(metrics))
	// Output: <nil>
}
