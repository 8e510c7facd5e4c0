package core

import (
	"container/heap"
	"sync"
	"time"
)

// agenda calls events at absolute times from one goroutine, which runs only
// while something is on the agenda. Many events have one time: renewals that are to
// travel together. They share a page.
type agenda struct {
	tasks *tasks
	flush func() // called after each round of events

	mu      sync.Mutex
	pages   pages
	byTime  map[moment]*page
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
	page  *page // nil: not on the agenda
	place int   // on it
}

func (a *appointment) entry() *appointment { return a }

func newAgenda(t *tasks, flush func()) *agenda {
	return &agenda{tasks: t, flush: flush, byTime: map[moment]*page{}, kick: make(chan struct{}, 1)}
}

// set puts an event on the agenda, or moves it.
func (g *agenda) set(e event, at moment) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return
	}
	g.strike(e.entry())
	p := g.byTime[at]
	if p == nil {
		p = &page{at: at}
		g.byTime[at] = p
		heap.Push(&g.pages, p)
	}
	*e.entry() = appointment{p, len(p.events)}
	p.events = append(p.events, e)
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
	g.strike(e.entry())
}

// strike is remove. g.mu is held.
func (g *agenda) strike(a *appointment) {
	p := a.page
	if p == nil {
		return
	}
	last := len(p.events) - 1
	moved := p.events[last]
	p.events[a.place], p.events[last] = moved, nil
	p.events = p.events[:last]
	moved.entry().place = a.place
	a.page = nil
	if last == 0 {
		heap.Remove(&g.pages, p.index)
		delete(g.byTime, p.at)
	}
}

// stop drops all events and ends the goroutine.
func (g *agenda) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	for len(g.pages) > 0 {
		g.tear()
	}
	g.wake()
}

// tear takes the first page, with all that is on it, off the agenda. g.mu is held.
func (g *agenda) tear() []event {
	p := heap.Pop(&g.pages).(*page)
	delete(g.byTime, p.at)
	for _, e := range p.events {
		e.entry().page = nil
	}
	return p.events
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
	if len(g.pages) == 0 {
		g.running = false
		return nil, 0, false
	}
	now := thisMoment()
	for len(g.pages) > 0 && g.pages[0].at <= now {
		events := g.tear()
		if due == nil {
			due = events
		} else {
			due = append(due, events...)
		}
	}
	if len(due) == 0 {
		g.wakeAt = g.pages[0].at
		rest = time.Duration(g.wakeAt - now)
	}
	return due, rest, true
}

// page is what has one time.
type page struct {
	at     moment
	index  int // in the heap
	events []event
}

// pages is a heap by time.
type pages []*page

func (h pages) Len() int           { return len(h) }
func (h pages) Less(i, j int) bool { return h[i].at < h[j].at }
func (h pages) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *pages) Push(x any) {
	p := x.(*page)
	p.index = len(*h)
	*h = append(*h, p)
}

func (h *pages) Pop() any {
	old := *h
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return p
}
