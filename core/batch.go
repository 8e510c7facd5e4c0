package core

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// maxBatch bounds the commands of one pipeline, so that a slow reply holds up
// few renewals.
const maxBatch = 256

// delivery is a call of the background that travels with others.
type delivery struct {
	call    *call
	timeout time.Duration
	flight  *flight // nil: nobody gives it up
	// done receives the outcome exactly once; sent is a time before the call
	// left this process.
	done func(values []any, err error, sent time.Time)
}

// outbox collects deliveries and sends them in pipelines, one node apart from
// another, so that a slow node holds up nobody else.
type outbox struct {
	node  *node
	tasks *tasks

	mu      sync.Mutex
	waiting []*delivery
}

func (o *outbox) add(d *delivery) {
	o.mu.Lock()
	o.waiting = append(o.waiting, d)
	o.mu.Unlock()
}

// flush sends what was added. It does not block.
func (o *outbox) flush() {
	o.mu.Lock()
	waiting := o.waiting
	o.waiting = nil
	o.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	o.tasks.start(func() {
		for r, ds := range o.byRoute(waiting) {
			for len(ds) > 0 {
				n := min(len(ds), maxBatch)
				part := ds[:n:n]
				ds = ds[n:]
				o.tasks.start(func() { o.send(r, part) })
			}
		}
	})
}

// route is what deliveries of one pipeline have in common.
type route struct {
	client     redis.UniversalClient // of the node that serves their keys
	replicated bool                  // replicas must have what they write
}

func (o *outbox) byRoute(ds []*delivery) map[route][]*delivery {
	routes := map[route][]*delivery{}
	for _, d := range ds {
		r := route{nodeOf(o.node.client, d.call.lock), o.node.replication.wants(d.call)}
		routes[r] = append(routes[r], d)
	}
	return routes
}

// nodeOf returns the client of the node that serves a key, or client itself
// where it cannot tell.
func nodeOf(client redis.UniversalClient, key string) redis.UniversalClient {
	switch c := client.(type) {
	case *redis.ClusterClient:
		if node, err := c.MasterForKey(context.Background(), key); err == nil {
			return node
		}
	case *redis.Ring:
		if node, err := c.GetShardClientForKey(key); err == nil {
			return node
		}
	}
	return client
}

// send runs one batch and reports every outcome, at the latest when the
// shortest timeout in it is over.
func (o *outbox) send(r route, ds []*delivery) {
	timeout := ds[0].timeout
	for _, d := range ds {
		timeout = min(timeout, d.timeout)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()

	var reported atomic.Bool
	sent := time.Now()
	giveUp := time.AfterFunc(timeout, func() {
		if reported.CompareAndSwap(false, true) {
			for _, d := range ds {
				d.done(nil, errNoAnswer, sent)
			}
		}
	})
	answers := o.pipeline(ctx, r, ds)
	giveUp.Stop()
	o.node.failed(answers[0].err)
	if reported.CompareAndSwap(false, true) {
		for i, d := range ds {
			d.done(answers[i].values, answers[i].err, sent)
		}
	}
}

// pipeline sends the calls to the node of their route. What that node does not
// know, because its script cache is empty or the slot has moved, goes once more,
// by a way that follows redirections.
func (o *outbox) pipeline(ctx context.Context, r route, ds []*delivery) []answer {
	cmds := make([]once, len(ds))
	pipe := r.client.Pipeline()
	for i, d := range ds {
		cmds[i] = once{redis.NewCmd(ctx, d.call.command(false)...), d.flight}
		_ = pipe.Process(ctx, cmds[i])
	}
	var wait *redis.Cmd
	if r.replicated {
		wait = o.node.replication.queue(ctx, pipe)
	}
	_, _ = pipe.Exec(ctx) // each command keeps its own error

	answers := make([]answer, len(ds))
	again := o.node.client.Pipeline()
	for i, d := range ds {
		switch err := cmds[i].Err(); {
		case !isUnknownScript(err) && !isRedirection(err):
			answers[i] = read(d.call, cmds[i].Cmd)
			if r.replicated && answers[i].err == nil {
				answers[i].err = o.node.replication.verify(answers[i].values, wait)
			}
		case r.replicated:
			answers[i].values, answers[i].err = o.node.runReplicated(ctx, d.call, d.flight)
		default:
			cmds[i] = once{redis.NewCmd(ctx, d.call.command(true)...), d.flight}
			_ = again.Process(ctx, cmds[i])
		}
	}
	if again.Len() > 0 {
		_, _ = again.Exec(ctx)
		for i, d := range ds {
			answers[i] = read(d.call, cmds[i].Cmd)
		}
	}
	return answers
}

func isRedirection(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK")
}
