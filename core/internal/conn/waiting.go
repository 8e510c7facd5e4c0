package conn

import (
	"slices"
	"time"
)

// waiting are the commands that wait until they can be sent to a server. Where not all can, urgent ones go first, and then the
// newest: their callers wait for longest still.
type waiting struct{ urgent, others []*Queued }

func (w *waiting) size() int { return len(w.urgent) + len(w.others) }

func (w *waiting) add(qs []*Queued) {
	for _, q := range qs {
		if q.Command.Urgent {
			w.urgent = append(w.urgent, q)
		} else {
			w.others = append(w.others, q)
		}
	}
}

// remove takes a command out. It is false when it is not there.
func (w *waiting) remove(q *Queued) bool {
	for _, list := range []*[]*Queued{&w.urgent, &w.others} {
		if i := slices.Index(*list, q); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
			return true
		}
	}
	return false
}

// take moves n commands into qs, which is empty, or all. It drops those on its way for which nobody waits any more: they are not to
// have the place of another.
func (w *waiting) take(qs []*Queued, n int) []*Queued {
	seen := 0
	for ; seen < len(w.urgent) && len(qs) < n; seen++ {
		qs = appendAwaited(qs, w.urgent[seen])
	}
	w.urgent = slices.Delete(w.urgent, 0, seen)
	first, from := len(qs), len(w.others)
	for ; from > 0 && len(qs) < n; from-- {
		qs = appendAwaited(qs, w.others[from-1])
	}
	slices.Reverse(qs[first:]) // in their order
	clear(w.others[from:])
	w.others = w.others[:from]
	return qs
}

func appendAwaited(qs []*Queued, q *Queued) []*Queued {
	if q.dispatch.is(abandoned) {
		return qs
	}
	return append(qs, q)
}

// shed drops those for which nobody waits any more, and refuses those that would be answered too late, the oldest first.
// A server that is silent refuses nothing.
func (w *waiting) shed(now time.Time, server *window, refuse func() error) {
	n, answered := 0, now.Add(server.expected())
	for _, q := range w.others {
		d := q.dispatch
		isTooLate := d != nil && !server.isSilent && !d.until.Add(server.distance).After(answered)
		if !isTooLate && !d.is(abandoned) {
			break
		}
		if isTooLate && d.take() {
			q.receive(time.Time{}, answer{err: refuse()})
		}
		n++
	}
	w.others = slices.Delete(w.others, 0, n)
}
