package promlock

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// holds are the locks that are held now, of which the age of the oldest is shown by name and form.
type holds struct {
	age *prometheus.GaugeVec

	mu     sync.Mutex
	byName map[[2]string]*list.List // of time.Time, the oldest first
}

// hold is a place in the holds of a name.
type hold struct {
	of *list.List
	at *list.Element
}

// of are the holds of a name and form. The caller has mu.
func (h *holds) of(name, form string) *list.List {
	all := h.byName[[2]string{name, form}]
	if all == nil {
		all = list.New()
		h.byName[[2]string{name, form}] = all
	}
	return all
}

// prepare shows that nothing of a name is held.
func (h *holds) prepare(name, form string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of(name, form)
}

// begin notes a hold, which end finds by the context that is returned. Another Collector has a key of its own there.
func (h *holds) begin(ctx context.Context, name, form string) context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.of(name, form)
	return context.WithValue(ctx, h, hold{all, all.PushBack(time.Now())})
}

func (h *holds) end(ctx context.Context) {
	if held, ok := ctx.Value(h).(hold); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		held.of.Remove(held.at)
	}
}

// show sets the ages as they are now.
func (h *holds) show() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for of, all := range h.byName {
		age := time.Duration(0)
		if oldest := all.Front(); oldest != nil {
			age = time.Since(oldest.Value.(time.Time))
		}
		h.age.WithLabelValues(of[0], of[1]).Set(age.Seconds())
	}
}
