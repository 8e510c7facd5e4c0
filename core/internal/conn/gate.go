package conn

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Gate admits calls that several servers answer together, before any is asked: windows of each server would admit different
// calls. Of those that wait the newest goes first. Its methods are safe for concurrent use.
type Gate struct {
	timeout time.Duration

	mu      sync.Mutex
	meter   meter
	window  window
	waiting []chan trip // by arrival
}

// NewGate returns a Gate for calls that are answered within a timeout, or not at all. It tells its load, without blocking.
func NewGate(timeout time.Duration, tell func(Load)) *Gate {
	if tell == nil {
		tell = func(Load) {}
	}
	g := &Gate{timeout: timeout, window: newWindow(min(lateMax, timeout/latePart))}
	g.meter = meter{mu: &g.mu, window: &g.window, waiting: func() int { return len(g.waiting) }, tell: tell}
	return g
}

// Admission is of one call. Leave must follow.
type Admission struct {
	gate *Gate
	trip trip
}

// Enter waits until a call may begin. When it could not be answered in time any more, or ctx ends, it fails with a [*Failure].
func (g *Gate) Enter(ctx context.Context) (Admission, error) {
	now := time.Now()
	g.mu.Lock()
	if g.window.room(now) > 0 {
		defer g.mu.Unlock()
		return g.admission(g.window.begin(now, 1)), nil
	}
	admitted, wait := make(chan trip, 1), g.timeout/waitPart
	if leaves, has := ctx.Deadline(); has {
		wait = min(wait, leaves.Sub(now))
	}
	g.waiting = append(g.waiting, admitted)
	timer := time.NewTimer(wait + g.window.distance - g.window.expected())
	g.mu.Unlock()
	defer timer.Stop()
	var err error
	select {
	case t := <-admitted:
		return g.admission(t), nil
	case <-timer.C:
	case <-ctx.Done():
		err = Ended(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, admitted); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	} else {
		g.end(<-admitted)
	}
	if err == nil && g.window.isMute(time.Now()) {
		err = ErrNoAnswer
	} else if err == nil {
		err = g.meter.refuse()
	}
	return Admission{}, &Failure{NotSent, err}
}

// Stop ends what is told of the load.
func (g *Gate) Stop() { g.meter.stop() }

func (g *Gate) admission(t trip) Admission {
	t.sent = time.Now()
	return Admission{g, t}
}

// Leave is called when a call is answered, or has failed with err.
func (a Admission) Leave(err error) {
	a.trip.end(err)
	a.gate.mu.Lock()
	defer a.gate.mu.Unlock()
	a.gate.end(a.trip)
}

// end admits others. mu is held.
func (g *Gate) end(t trip) {
	if g.window.end(t); t.ending != endedOtherwise {
		g.meter.note(t.sent.Add(t.took))
	}
	now := time.Now()
	for last := len(g.waiting) - 1; last >= 0 && g.window.room(now) > 0; last-- {
		g.waiting[last] <- g.window.begin(now, 1)
		g.waiting = g.waiting[:last]
	}
}
