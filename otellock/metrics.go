package otellock

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/latchkey-go/latchkey/core"
)

// meters are the instruments of an Observer.
type meters struct {
	wait, hold               metric.Float64Histogram
	waiting, held            metric.Int64UpDownCounter
	overdue, failed, refused metric.Int64Counter
	missed, unheard          metric.Int64Counter
	compensations            metric.Int64UpDownCounter
	answer                   metric.Float64Gauge
	window, overloaded       metric.Int64Gauge
	shed                     metric.Int64Counter
}

func newMeters(m metric.Meter) meters {
	histogram := func(name, description string) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
			metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60))
		handle(err)
		return h
	}
	upDown := func(name, unit, description string) metric.Int64UpDownCounter {
		c, err := m.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		handle(err)
		return c
	}
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		handle(err)
		return c
	}
	gauge := func(name, unit, description string) metric.Int64Gauge {
		g, err := m.Int64Gauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		handle(err)
		return g
	}
	answer, err := m.Float64Gauge("latchkey.redis.answer.time", metric.WithUnit("s"),
		metric.WithDescription("How long an answer of Redis takes lately."))
	handle(err)
	return meters{
		wait:          histogram("latchkey.lock.wait.duration", "How long calls waited for a lock, by what became of them."),
		hold:          histogram("latchkey.lock.hold.duration", "How long locks were held, until released or lost."),
		waiting:       upDown("latchkey.lock.waiting", "{call}", "Calls that want a lock now."),
		held:          upDown("latchkey.lock.held", "{lock}", "Locks that are held now, each as often as it has holders here."),
		overdue:       counter("latchkey.lock.overdue", "{lock}", "Locks that were held longer than MaxHold permits."),
		failed:        counter("latchkey.lock.renewal.failures", "{failure}", "Renewals that failed and were tried again."),
		refused:       counter("latchkey.refusals", "{refusal}", "Requests and tasks that middleware refused."),
		missed:        counter("latchkey.grants.missed", "{grant}", "Grants that a waiting call noticed late or never."),
		unheard:       counter("latchkey.unheard", "{attempt}", "Attempts to subscribe to messages from Redis that failed; waiting calls poll."),
		compensations: upDown("latchkey.compensations.pending", "{command}", "Commands of unknown outcome that Redis has not confirmed to be undone."),
		answer:        answer,
		window:        gauge("latchkey.redis.window", "{command}", "How many commands may be in flight to Redis."),
		overloaded:    gauge("latchkey.redis.overloaded", "1", "1 while Redis is asked for more than it can do, and calls are refused."),
		shed:          counter("latchkey.redis.shed", "{call}", "Calls that were refused because Redis is asked for more than it can do."),
	}
}

func handle(err error) {
	if err != nil {
		otel.Handle(err)
	}
}

func (m *meters) count(ctx context.Context, e core.Event, l *labels) {
	switch e.Kind {
	case core.EventWaiting:
		m.waiting.Add(ctx, 1, l.byLock...)
	case core.EventAcquired, core.EventBusy, core.EventFailed:
		m.waiting.Add(ctx, -1, l.byLock...)
		m.wait.Record(ctx, e.Waited.Seconds(), l.record...)
		if e.Kind == core.EventAcquired && !e.Reentry {
			m.held.Add(ctx, 1, l.byLock...)
		}
	case core.EventReleased, core.EventLost:
		m.held.Add(ctx, -1, l.byLock...)
		m.hold.Record(ctx, e.HeldFor.Seconds(), l.record...)
	case core.EventOverdue:
		m.overdue.Add(ctx, 1, l.byLock...)
	case core.EventRenewalFailed:
		m.failed.Add(ctx, 1, l.byLock...)
	case core.EventRefused:
		m.refused.Add(ctx, 1, l.add...)
	case core.EventGrantMissed:
		m.missed.Add(ctx, 1)
	case core.EventUnheard:
		m.unheard.Add(ctx, 1)
	case core.EventCompensating:
		m.compensations.Add(ctx, 1)
	case core.EventCompensated:
		m.compensations.Add(ctx, -1)
	case core.EventLoad:
		overloaded := int64(0)
		if e.Load.Overloaded {
			overloaded = 1
		}
		m.answer.Record(ctx, e.Load.Answer.Seconds(), l.record...)
		m.window.Record(ctx, int64(e.Load.Window), l.record...)
		m.overloaded.Record(ctx, overloaded, l.record...)
		m.shed.Add(ctx, int64(e.Load.Shed), l.add...)
	}
}
