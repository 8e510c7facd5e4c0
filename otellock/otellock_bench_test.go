package otellock_test

import (
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/otellock"
)

// A lock that is taken and released: three events. Sampled or not is the spans' cost.
func BenchmarkALock(b *testing.B) {
	for name, sampler := range map[string]sdktrace.Sampler{"sampled": sdktrace.AlwaysSample(), "unsampled": sdktrace.NeverSample()} {
		b.Run(name, func(b *testing.B) {
			o := otellock.New(
				otellock.TracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler))),
				otellock.MeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))))
			b.ReportAllocs()
			for b.Loop() {
				ctx := o.Observe(background, core.Event{Kind: core.EventWaiting, Name: "orders"})
				ctx = o.Observe(ctx, core.Event{Kind: core.EventAcquired, Name: "orders", Waited: time.Millisecond})
				o.Observe(ctx, core.Event{Kind: core.EventReleased, Name: "orders", HeldFor: time.Millisecond})
			}
		})
	}
}

// A refusal makes no span.
func BenchmarkARefusal(b *testing.B) {
	o := otellock.New(otellock.MeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))))
	b.ReportAllocs()
	for b.Loop() {
		o.Observe(background, core.Event{Kind: core.EventRefused, Name: "orders", Reason: "no_wait", Status: 409})
	}
}
