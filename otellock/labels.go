package otellock

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/latchkey-go/latchkey/core"
)

const (
	nameKey    = attribute.Key("latchkey.lock.name")
	formKey    = attribute.Key("latchkey.lock.form")
	stateKey   = attribute.Key("latchkey.lock.state")
	keyKey     = attribute.Key("latchkey.lock.key")
	outcomeKey = attribute.Key("latchkey.lock.outcome")
	reasonKey  = attribute.Key("latchkey.lock.reason")
	serverKey  = attribute.Key("latchkey.redis.server")
	errorKey   = attribute.Key("error.type")
	statusKey  = attribute.Key("http.response.status_code")
)

// labels are how telemetry calls an event. To make them costs more than to count.
type labels struct {
	details    []attribute.KeyValue // what has become of it
	wait, hold string               // spans
	start      []trace.SpanStartOption
	byLock     []metric.AddOption    // by name and form
	add        []metric.AddOption    // by these and details
	record     []metric.RecordOption // likewise
}

func newLabels(e core.Event) *labels {
	l := &labels{details: slices.Clip(details(e)), wait: "lock.wait", hold: "lock.hold"}
	var lock []attribute.KeyValue
	if e.Form != "" {
		lock = append(lock, formKey.String(e.Form))
	}
	if e.Name != "" {
		lock = append(lock, nameKey.String(e.Name))
		l.wait += " " + e.Name
		l.hold += " " + e.Name
	}
	l.start = []trace.SpanStartOption{trace.WithAttributes(lock...)}
	l.byLock = []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(lock...))}
	full := metric.WithAttributeSet(attribute.NewSet(slices.Concat(lock, l.details)...))
	l.add, l.record = []metric.AddOption{full}, []metric.RecordOption{full}
	return l
}

// details returns what became of a wait or a hold, or how a request was refused.
func details(e core.Event) []attribute.KeyValue {
	switch {
	case e.Kind == core.EventAcquired && e.Reentry:
		return []attribute.KeyValue{outcomeKey.String("reentered")}
	case e.Kind == core.EventAcquired:
		return []attribute.KeyValue{outcomeKey.String("acquired")}
	case e.Kind == core.EventBusy:
		return []attribute.KeyValue{outcomeKey.String("busy"), reasonKey.String(e.Reason)}
	case e.Kind == core.EventFailed:
		return []attribute.KeyValue{outcomeKey.String("failed"), errorKey.String(e.Reason)}
	case e.Kind == core.EventLost:
		return []attribute.KeyValue{outcomeKey.String("lost"), errorKey.String(e.Reason)}
	case e.Kind == core.EventReleased && e.Err != nil:
		return []attribute.KeyValue{outcomeKey.String("unconfirmed")}
	case e.Kind == core.EventReleased:
		return []attribute.KeyValue{outcomeKey.String("released")}
	case e.Kind == core.EventRefused && e.Status != 0:
		return []attribute.KeyValue{reasonKey.String(e.Reason), statusKey.Int(e.Status)}
	case e.Kind == core.EventRefused:
		return []attribute.KeyValue{reasonKey.String(e.Reason)}
	case e.Kind == core.EventLoad && e.Load.Server != "":
		return []attribute.KeyValue{serverKey.String(e.Load.Server)}
	default:
		return nil
	}
}

// likeness is what events have in common that have the same labels. All of it takes
// few values.
type likeness struct {
	name, form      string
	reason          string
	server          string
	kind            core.EventKind
	reentry, failed bool
	status          int
}

// maxCached bounds what is kept, should names come from requests after all.
const maxCached = 1000

// labelCache keeps the labels of the events there were.
type labelCache struct {
	mu  sync.Mutex // for who adds to it
	all atomic.Pointer[map[likeness]*labels]
}

func (c *labelCache) of(e core.Event) *labels {
	like := likeness{e.Name, e.Form, e.Reason, "", e.Kind, e.Reentry, e.Err != nil, e.Status}
	if e.Load != nil {
		like.server = e.Load.Server
	}
	if all := c.all.Load(); all != nil {
		if l := (*all)[like]; l != nil {
			return l
		}
	}
	l := newLabels(e)
	c.mu.Lock()
	defer c.mu.Unlock()
	more := map[likeness]*labels{}
	if all := c.all.Load(); all != nil {
		if len(*all) >= maxCached {
			return l
		}
		maps.Copy(more, *all)
	}
	more[like] = l
	c.all.Store(&more)
	return l
}
