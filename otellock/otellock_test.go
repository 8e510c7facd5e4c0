//go:build go1.25

package otellock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/locktest"
	"github.com/latchkey-go/latchkey/otellock"
)

var background = context.Background()

// telemetry is where spans and metrics go in a test.
type telemetry struct {
	t        *testing.T
	exporter *tracetest.InMemoryExporter
	tracer   trace.Tracer // the application's
	reader   *sdkmetric.ManualReader
	observer *otellock.Observer
}

func bubble(t *testing.T, test func(t *testing.T, tel *telemetry), opts ...otellock.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tel := &telemetry{t: t, exporter: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(tel.exporter))
		tel.tracer = tracers.Tracer("test")
		meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(tel.reader))
		tel.observer = otellock.New(append([]otellock.Option{otellock.TracerProvider(tracers), otellock.MeterProvider(meters)}, opts...)...)
		test(t, tel)
	})
}

// spans returns a line for each span that has ended since the last call:
// "parent > span [attributes] status (events) duration", by when they ended.
func (tel *telemetry) spans() []string {
	synctest.Wait() // what no call waits for comes from a goroutine of its own
	stubs := tel.exporter.GetSpans()
	tel.exporter.Reset()
	names := map[trace.SpanID]string{}
	for _, s := range stubs {
		names[s.SpanContext.SpanID()] = s.Name
	}
	var lines []string
	for _, s := range stubs {
		line := ""
		if s.Parent.IsValid() {
			line = names[s.Parent.SpanID()] + " > "
		}
		line += s.Name + text(s.Attributes)
		if s.Status.Code != codes.Unset {
			line += fmt.Sprintf(" %v: %s", s.Status.Code, s.Status.Description)
		}
		for _, e := range s.Events {
			line += " (" + e.Name + ")"
		}
		lines = append(lines, fmt.Sprint(line, " ", s.EndTime.Sub(s.StartTime)))
	}
	return lines
}

func text(attributes []attribute.KeyValue) string {
	var parts []string
	for _, a := range attributes {
		key := strings.TrimPrefix(string(a.Key), "latchkey.lock.")
		parts = append(parts, key+"="+a.Value.Emit())
	}
	slices.Sort(parts)
	return fmt.Sprint(" ", parts)
}

// metrics returns a line for each series: "name{unit} [attributes] value", of
// histograms count and sum.
func (tel *telemetry) metrics() []string {
	var all metricdata.ResourceMetrics
	if err := tel.reader.Collect(background, &all); err != nil {
		tel.t.Fatal(err)
	}
	var lines []string
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					lines = append(lines, fmt.Sprintf("%s %s%s %d", m.Name, m.Unit, text(p.Attributes.ToSlice()), p.Value))
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					lines = append(lines, fmt.Sprintf("%s %s%s %d", m.Name, m.Unit, text(p.Attributes.ToSlice()), p.Value))
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					lines = append(lines, fmt.Sprintf("%s %s%s %v", m.Name, m.Unit, text(p.Attributes.ToSlice()), p.Value))
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					lines = append(lines, fmt.Sprintf("%s %s%s %d in %v", m.Name, m.Unit, text(p.Attributes.ToSlice()), p.Count, p.Sum))
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n\t%s\nwant\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func TestSpansOfWaitingAndHolding(t *testing.T) {
	bubble(t, func(t *testing.T, tel *telemetry) {
		locker := locktest.New(t, core.Observe(tel.observer))
		holder, err := locker.Lock(background, "order:42")
		if err != nil {
			t.Fatal(err)
		}
		want(t, "holder", tel.spans(), "lock.wait [form=exclusive outcome=acquired] 0s")

		done := make(chan error)
		go func() {
			ctx, request := tel.tracer.Start(background, "request")
			defer func() { request.End(); close(done) }()
			done <- locker.Do(ctx, "order:42", func(ctx context.Context) error {
				_, work := tel.tracer.Start(ctx, "work")
				time.Sleep(2 * time.Second)
				work.End()
				return nil
			}, core.Name("orders"))
		}()
		time.Sleep(3 * time.Second)
		if err := holder.Unlock(background); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		<-done
		all := tel.spans()
		slices.Sort(all) // the hold of the one and the wait of the other end together
		want(t, "all", all,
			" > lock.hold [form=exclusive outcome=released] 3s", // its parent was told above
			"lock.hold orders > work [] 2s",
			"request > lock.hold orders [form=exclusive name=orders outcome=released] 2s",
			"request > lock.wait orders [form=exclusive name=orders outcome=acquired] 3s",
			"request [] 5s",
		)
	})
}

func TestWithoutAParentTheHoldIsInTheTraceOfTheWait(t *testing.T) {
	bubble(t, func(t *testing.T, tel *telemetry) {
		locker := locktest.New(t, core.Observe(tel.observer))
		if err := locker.Do(background, "k", func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		want(t, "spans", tel.spans(), "lock.wait [form=exclusive outcome=acquired] 0s", "lock.wait > lock.hold [form=exclusive outcome=released] 0s")
	})
}

func TestAReentryHasNoHoldOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, tel *telemetry) {
		locker := locktest.New(t, core.Observe(tel.observer))
		ctx, request := tel.tracer.Start(background, "request")
		err := locker.Do(ctx, "k", func(ctx context.Context) error {
			return locker.Do(ctx, "k", func(ctx context.Context) error {
				_, work := tel.tracer.Start(ctx, "work")
				work.End()
				return nil
			})
		})
		request.End()
		if err != nil {
			t.Error(err)
		}
		want(t, "spans", tel.spans(),
			"request > lock.wait [form=exclusive outcome=acquired] 0s",
			"lock.hold > lock.wait [form=exclusive outcome=reentered] 0s",
			"lock.hold > work [] 0s",
			"request > lock.hold [form=exclusive outcome=released] 0s",
			"request [] 0s",
		)
	})
}

func TestSpansOfWhatGoesWrong(t *testing.T) {
	bubble(t, func(t *testing.T, tel *telemetry) {
		locker := locktest.New(t, core.Observe(tel.observer), core.Name("orders"))
		k, err := locker.Lock(background, "secret", core.MaxHold(4*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		tel.spans()
		if _, err := locker.Lock(background, "secret", core.Wait(time.Second)); !errors.Is(err, core.ErrNotAcquired) {
			t.Errorf("err %v", err)
		}
		want(t, "busy: no error", tel.spans(), "lock.wait orders [form=exclusive name=orders outcome=busy reason=wait_over] 1s")
		done, err := locker.Lock(background, "done", core.KeepFor(time.Hour))
		if err != nil || done.Unlock(background) != nil {
			t.Fatal(err)
		}
		tel.spans()
		if _, err := locker.TryLock(background, "done"); !errors.Is(err, core.ErrNotAcquired) {
			t.Errorf("err %v", err)
		}
		want(t, "in a dedup window", tel.spans(), "lock.wait orders [form=exclusive name=orders outcome=busy reason=no_wait state=dedup_window] 0s")

		time.Sleep(5 * time.Second)
		if _, err := locker.ForceUnlock(background, "secret"); err != nil {
			t.Error(err)
		}
		if err := k.Unlock(background); !errors.Is(err, core.ErrLost) {
			t.Errorf("err %v", err)
		}
		want(t, "lost", tel.spans(), " > lock.hold orders [error.type=deleted form=exclusive name=orders outcome=lost] Error: deleted (lock.overdue) 6s")

		ctx := tel.observer.Observe(background, core.Event{Kind: core.EventWaiting})
		ctx = tel.observer.Observe(ctx, core.Event{Kind: core.EventAcquired})
		tel.observer.Observe(ctx, core.Event{Kind: core.EventRenewalFailed})
		tel.observer.Observe(ctx, core.Event{Kind: core.EventReleased, Reason: "unconfirmed", Err: core.ErrUnavailable})
		want(t, "in trouble", tel.spans(), "lock.wait [outcome=acquired] 0s", "lock.wait > lock.hold [outcome=unconfirmed] (lock.renewal_failed) 0s")
	})
}

func TestAWaitThatFailed(t *testing.T) {
	bubble(t, func(t *testing.T, tel *telemetry) {
		locker := locktest.New(t, core.Observe(tel.observer), core.Name("orders"))
		if _, err := locker.Lock(background, ""); !errors.Is(err, core.ErrInvalidKey) {
			t.Errorf("err %v", err)
		}
		want(t, "failed", tel.spans(), "lock.wait orders [error.type=invalid_key form=exclusive name=orders outcome=failed] Error: invalid_key 0s")
	})
}

func TestKeysAreToldOnRequest(t *testing.T) {
	bubble(t, func(t *testing.T, tel *telemetry) {
		locker := locktest.New(t, core.Observe(tel.observer))
		if err := locker.Do(background, "42", func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		want(t, "spans", tel.spans(),
			"lock.wait [form=exclusive key=42 outcome=acquired] 0s", "lock.wait > lock.hold [form=exclusive key=42 outcome=released] 0s")
		for _, line := range tel.metrics() {
			if strings.Contains(line, "42") {
				t.Errorf("the key is in a metric: %s", line)
			}
		}
	}, otellock.Keys())
}

// Exporters drop a batch of spans with an attribute that is not UTF-8.
func TestKeysAreToldInUTF8(t *testing.T) {
	bubble(t, func(t *testing.T, tel *telemetry) {
		locker := locktest.New(t, core.Observe(tel.observer))
		if err := locker.Do(background, "a\xff\xfeb", func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		want(t, "spans", tel.spans(),
			"lock.wait [form=exclusive key=a\uFFFDb outcome=acquired] 0s", "lock.wait > lock.hold [form=exclusive key=a\uFFFDb outcome=released] 0s")
	}, otellock.Keys())
}

func TestTwoObserversDoNotMixTheirSpansUp(t *testing.T) {
	bubble(t, func(t *testing.T, one *telemetry) {
		exporter := tracetest.NewInMemoryExporter()
		two := otellock.New(otellock.TracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))))
		locker := locktest.New(t, core.Observe(one.observer), core.Observe(two))
		if err := locker.Do(background, "k", func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		for _, spans := range []tracetest.SpanStubs{one.exporter.GetSpans(), exporter.GetSpans()} {
			if len(spans) != 2 || spans[0].Name != "lock.wait" || spans[1].Name != "lock.hold" {
				t.Errorf("spans %+v", spans)
			}
		}
	})
}

func TestTheGlobalProvidersAreTheDefault(t *testing.T) {
	exporter, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	tracers, meters := otel.GetTracerProvider(), otel.GetMeterProvider()
	defer func() { otel.SetTracerProvider(tracers); otel.SetMeterProvider(meters) }()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)))
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	locker := locktest.New(t, core.Observe(otellock.New()))
	if err := locker.Do(background, "k", func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	tel := &telemetry{t: t, reader: reader}
	ofServers := func(line string) bool { return strings.HasPrefix(line, "latchkey.redis.") }
	if spans, metrics := exporter.GetSpans(), slices.DeleteFunc(tel.metrics(), ofServers); len(spans) != 2 || len(metrics) != 4 {
		t.Errorf("%d spans, metrics %q", len(spans), metrics)
	}
}
