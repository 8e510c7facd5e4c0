package otellock

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/latchkey-go/latchkey/core"
)

const scope = "github.com/latchkey-go/latchkey/otellock"

// Observer makes spans and metrics of what becomes of locks. Give it to
// [core.Observe], of one Locker or of several. It is safe for concurrent use; whether
// it blocks is up to the span processors.
type Observer struct {
	tracer trace.Tracer
	keys   bool
	meters
	known labelCache
}

var _ core.Observer = (*Observer)(nil)

// Option changes what New returns.
type Option func(*settings)

type settings struct {
	tracers trace.TracerProvider
	meters  metric.MeterProvider
	keys    bool
}

// TracerProvider makes the spans. The default is the global one.
func TracerProvider(p trace.TracerProvider) Option { return func(s *settings) { s.tracers = p } }

// MeterProvider makes the metrics. The default is the global one.
func MeterProvider(p metric.MeterProvider) Option { return func(s *settings) { s.meters = p } }

// Keys puts the key into the spans, as latchkey.lock.key; bytes that are not UTF-8 are
// replaced. Keys may hold personal data: [keyfunc.Hash] hides it.
//
// [keyfunc.Hash]: https://pkg.go.dev/github.com/latchkey-go/latchkey/keyfunc#Hash
func Keys() Option { return func(s *settings) { s.keys = true } }

// New returns an Observer. What OpenTelemetry has against its metrics goes to the
// global error handler.
func New(opts ...Option) *Observer {
	s := settings{tracers: otel.GetTracerProvider(), meters: otel.GetMeterProvider()}
	for _, o := range opts {
		o(&s)
	}
	return &Observer{tracer: s.tracers.Tracer(scope), keys: s.keys, meters: newMeters(s.meters.Meter(scope))}
}

// Observe turns an event into spans and metrics.
func (o *Observer) Observe(ctx context.Context, e core.Event) context.Context {
	l := o.known.of(e)
	o.count(ctx, e, l)
	return o.trace(ctx, e, l)
}
