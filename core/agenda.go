package core

import (
	"container/heap"
	"sync"
	"time"
)

// agenda calls events at absolute times from one goroutine, which runs only
// while something is on the agenda.
type agenda struct {
	tasks *tasks
	flush func() // called after each round of events

	mu      sync.Mutex
	entries entries
	running bool
	stopped bool
	wakeAt  moment // when the goroutine looks next
	kick    chan struct{}
}

// event is something with a time. It embeds an appointment.
type event interface {
	// due is called at or after the time set. The agenda holds no lock then, so
	// the event may have been removed meanwhile and must look for itself.
	due(now moment)
	entry() *appointment
}

type appointment struct {
	at    moment
	index int // in the heap, plus 1; 0: not on the agenda
}

func (a *appointment) entry() *appointment { return a }

func newAgenda(t *tasks, flush func()) *agenda {
	return &agenda{tasks: t, flush: flush, kick: make(chan struct{}, 1)}
}

// set puts an event on the agenda, or moves it.
func (g *agenda) set(e event, at moment) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return
	}
	a := e.entry()
	a.at = at
	if a.index > 0 {
		heap.Fix(&g.entries, a.index-1)
	} else {
		heap.Push(&g.entries, e)
	}
	switch {
	case !g.running:
		g.running = true
		g.wakeAt = at
		g.tasks.start(g.run)
	case at < g.wakeAt:
		g.wakeAt = at
		g.wake()
	}
}

// remove takes an event off the agenda. Its due may be running.
func (g *agenda) remove(e event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := e.entry(); a.index > 0 {
		heap.Remove(&g.entries, a.index-1)
	}
}

// stop drops all events and ends the goroutine.
func (g *agenda) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	for _, e := range g.entries {
		e.entry().index = 0
	}
	g.entries = nil
	g.wake()
}

func (g *agenda) wake() {
	select {
	case g.kick <- struct{}{}:
	default:
	}
}

func (g *agenda) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due, rest, ok := g.next()
		if !ok {
			return
		}
		if len(due) > 0 {
			now := thisMoment()
			for _, e := range due {
				e.due(now)
			}
			g.flush()
			continue
		}
		timer.Reset(rest)
		select {
		case <-timer.C:
		case <-g.kick:
		}
	}
}

// next takes what is due off the agenda, or says how long until something is.
// It is false when the goroutine should end.
func (g *agenda) next() (due []event, rest time.Duration, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.entries) == 0 {
		g.running = false
		return nil, 0, false
	}
	now := thisMoment()
	for len(g.entries) > 0 && g.entries[0].entry().at <= now {
		due = append(due, heap.Pop(&g.entries).(event))
	}
	if len(due) == 0 {
		g.wakeAt = g.entries[0].entry().at
		rest = time.Duration(g.wakeAt - now)
	}
	return due, rest, true
}

// entries is a heap by time.
type entries []event

func (h entries) Len() int           { return len(h) }
func (h entries) Less(i, j int) bool { return h[i].entry().at < h[j].entry().at }
func (h entries) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].entry().index, h[j].entry().index = i+1, j+1
}

func (h *entries) Push(x any) {
	e := x.(event)
	*h = append(*h, e)
	e.entry().index = len(*h)
}

func (h *entries) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.entry().index = 0
	return e
}
