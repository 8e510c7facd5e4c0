package core

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// laneWidth is how many exchanges with one server are under way before others
	// share a round trip.
	laneWidth = 4
	// laneStall is how long those may hold up others.
	laneStall = 5 * time.Millisecond
)

// lane lets calls to one server share round trips: a call that finds few others
// under way goes at once, those that come while these are under way go together
// when one of them is back. So a lone call waits for nobody, and the more there
// are, the more of them travel together.
type lane struct {
	node    *node
	client  redis.UniversalClient // of one server, as far as is known
	bounded bool                  // client obeys the deadline of a context: then calls that nobody can cancel need no goroutine

	undivided atomic.Bool  // one server has all keys
	probeAt   atomic.Int64 // a moment

	mu      sync.Mutex
	busy    int // exchanges under way
	waiting []*delivery
	stalled *time.Timer
}

func newLane(n *node, client redis.UniversalClient) *lane {
	l := &lane{node: n, client: client}
	// A node of a cluster lacks the hooks of the cluster's client.
	single, ok := client.(*redis.Client)
	l.bounded = ok && client == n.client && single.Options().ContextTimeoutEnabled
	return l
}

// enter reports whether the call may go by itself; then leave must follow. If
// not, the delivery, unless nil, will be sent with others.
func (l *lane) enter(d *delivery) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy < laneWidth {
		l.busy++
		return true
	}
	if d == nil {
		return false
	}
	l.waiting = append(l.waiting, d)
	if len(l.waiting) == 1 {
		if l.stalled == nil {
			l.stalled = time.AfterFunc(laneStall, l.hurry)
		} else {
			l.stalled.Reset(laneStall)
		}
	}
	return false
}

// run sends one call on the caller's goroutine, and returns by then.
func (l *lane) run(ctx context.Context, c *call, end time.Time, f *flight) answer {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	values, err := l.node.run(ctx, c, f)
	l.node.failed(err)
	return answer{values: values, err: err}.by(ctx.Err())
}

// leave ends an exchange. Those that wait take its place.
func (l *lane) leave() {
	l.mu.Lock()
	if len(l.waiting) == 0 {
		l.busy--
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	l.node.tasks.start(l.drain)
}

// hurry sends what has waited for too long for exchanges that do not come back.
func (l *lane) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) > 0 {
		l.busy++
		l.node.tasks.start(l.drain)
	}
}

// drain sends what waits until nothing does.
func (l *lane) drain() {
	for {
		l.mu.Lock()
		n := min(len(l.waiting), maxBatch)
		if n == 0 {
			l.busy--
			l.waiting = nil
			l.mu.Unlock()
			return
		}
		ds := l.waiting[:n:n]
		l.waiting = l.waiting[n:]
		if len(l.waiting) > 0 {
			l.stalled.Reset(laneStall)
		} else {
			l.stalled.Stop()
		}
		l.mu.Unlock()
		l.send(ds)
	}
}

func (l *lane) send(ds []*delivery) {
	timeout := time.Duration(0)
	for _, d := range ds {
		timeout = max(timeout, d.timeout)
	}
	ds = slices.DeleteFunc(ds, func(d *delivery) bool { return !d.flight.wanted() })
	if len(ds) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	sent := time.Now()
	answers := l.node.outbox.pipeline(ctx, route{client: l.client}, ds)
	l.node.failed(answers[0].err)
	for i, d := range ds {
		d.report(answers[i], sent)
	}
}
