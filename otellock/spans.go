package otellock

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/latchkey-go/latchkey/core"
)

// spans are what an Observer keeps in the context of a call.
type spans struct {
	outer   trace.Span // what the call runs in
	current trace.Span // the wait, then the hold
}

// spansKey is one for each Observer, for a Locker may have several.
type spansKey struct{ *Observer }

func (o *Observer) trace(ctx context.Context, e core.Event, l *labels) context.Context {
	if e.Kind == core.EventWaiting {
		return o.start(ctx, l.wait, trace.SpanFromContext(ctx), e, l)
	}
	s, ok := ctx.Value(spansKey{o}).(spans)
	if !ok {
		return ctx // of a refusal: the wait has told it
	}
	switch e.Kind {
	case core.EventAcquired:
		s.end(l)
		if s.outer.SpanContext().IsValid() { // else the wait begins the trace
			ctx = trace.ContextWithSpan(ctx, s.outer)
		}
		if !e.Reentry {
			ctx = o.start(ctx, l.hold, s.outer, e, l)
		}
	case core.EventBusy, core.EventReleased:
		if busy := (*core.BusyError)(nil); errors.As(e.Err, &busy) && busy.Done {
			s.current.SetAttributes(stateKey.String("dedup_window"))
		}
		s.end(l)
	case core.EventFailed, core.EventLost:
		s.current.SetStatus(codes.Error, e.Reason) // the error's text may have the key in it
		s.end(l)
	case core.EventOverdue:
		s.current.AddEvent("lock.overdue")
	case core.EventRenewalFailed:
		s.current.AddEvent("lock.renewal_failed")
	}
	return ctx
}

func (o *Observer) start(ctx context.Context, what string, outer trace.Span, e core.Event, l *labels) context.Context {
	start := l.start
	if o.keys {
		start = []trace.SpanStartOption{l.start[0], trace.WithAttributes(keyKey.String(strings.ToValidUTF8(e.Key, "\uFFFD")))}
	}
	ctx, span := o.tracer.Start(ctx, what, start...)
	return context.WithValue(ctx, spansKey{o}, spans{outer, span})
}

func (s spans) end(l *labels) {
	s.current.SetAttributes(l.details...)
	s.current.End()
}
