package otellock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/otellock"
)

func Example() {
	server, err := miniredis.Run() // yours is a real one
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()

	// Yours sends the spans somewhere. otellock.New() takes the global provider.
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	locker, err := core.New(client, core.Observe(otellock.New(otellock.TracerProvider(tracers))))
	if err != nil {
		log.Fatal(err)
	}

	ctx, request := tracers.Tracer("shop").Start(context.Background(), "POST /orders/{orderID}/pay")
	err = locker.Do(ctx, "orderID=42", func(ctx context.Context) error {
		_, query := tracers.Tracer("shop").Start(ctx, "UPDATE orders")
		query.End()
		return nil
	}, core.Name("orders"))
	if err != nil {
		log.Fatal(err)
	}
	request.End()
	if err := locker.Close(context.Background()); err != nil { // it waits for the Observer
		log.Fatal(err)
	}

	names := map[string]string{}
	for _, s := range spans.GetSpans() {
		names[s.SpanContext.SpanID().String()] = s.Name
	}
	for _, s := range spans.GetSpans() {
		fmt.Printf("%s, in %q\n", s.Name, names[s.Parent.SpanID().String()])
	}
	// Output:
	// lock.wait orders, in "POST /orders/{orderID}/pay"
	// UPDATE orders, in "lock.hold orders"
	// lock.hold orders, in "POST /orders/{orderID}/pay"
	// POST /orders/{orderID}/pay, in ""
}
