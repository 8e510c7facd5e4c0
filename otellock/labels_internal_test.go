//go:build go1.25

package otellock

import (
	"context"
	"strconv"
	"sync"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/latchkey-go/latchkey/core"
)

// Names that come from requests are a mistake, but must not fill the memory twice.
func TestTheCacheIsBounded(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	o := New(MeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	const names = maxCached + 100
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for i := range names {
				o.Observe(context.Background(), core.Event{Kind: core.EventOverdue, Name: strconv.Itoa(i)})
			}
		})
	}
	all.Wait()
	if n := len(*o.known.all.Load()); n != maxCached {
		t.Errorf("%d are kept, of at most %d", n, maxCached)
	}
	var metrics metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &metrics); err != nil {
		t.Fatal(err)
	}
	points := metrics.ScopeMetrics[0].Metrics[0].Data.(metricdata.Sum[int64]).DataPoints
	for _, p := range points {
		if p.Value != 3 {
			t.Errorf("%v counts %d, want 3", p.Attributes, p.Value)
		}
	}
	if len(points) != names {
		t.Errorf("%d names are counted, want %d", len(points), names)
	}
}

// What was seen before is counted without new attributes.
func TestEventsCostFewAllocations(t *testing.T) {
	o := New(TracerProvider(noop.NewTracerProvider()),
		MeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))))
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() {
		o.Observe(ctx, core.Event{Kind: core.EventRefused, Name: "orders", Reason: "no_wait", Status: 409})
	}); n > 1 {
		t.Errorf("a refusal takes %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		ctx := o.Observe(ctx, core.Event{Kind: core.EventWaiting, Name: "orders"})
		ctx = o.Observe(ctx, core.Event{Kind: core.EventAcquired, Name: "orders"})
		o.Observe(ctx, core.Event{Kind: core.EventReleased, Name: "orders"})
	}); n > 12 {
		t.Errorf("a lock takes %v allocations", n)
	}
}
