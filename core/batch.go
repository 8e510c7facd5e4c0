package core

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// maxBatch bounds the calls of one pipeline, so that a slow reply holds up few
	// renewals.
	maxBatch = 512
	// batchPause is between two pipelines to one server.
	batchPause = 2 * time.Millisecond
)

// delivery is a call that travels with others.
type delivery struct {
	call    *call
	timeout time.Duration
	flight  *flight   // nil: nobody gives it up
	to      recipient // nil: nobody wants to know
}

// recipient receives the outcome of a delivery, once; sent is a time before the call
// left this process.
type recipient interface {
	receive(values []any, err error, sent time.Time)
}

func (d *delivery) report(a answer, sent time.Time) {
	if d.to != nil {
		d.to.receive(a.values, a.err, sent)
	}
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
	if _, ok := o.node.client.(*redis.Client); ok && o.node.replication.replicas == 0 {
		// All go one way, and each goroutine less is a thread less to be woken.
		o.tasks.start(func() { o.sendAll(route{client: o.node.client}, waiting) })
		return
	}
	o.tasks.start(func() {
		if err := o.locate(waiting); err != nil {
			for _, d := range waiting {
				d.report(answer{err: err}, time.Now())
			}
			return
		}
		for r, ds := range o.byRoute(waiting) {
			o.tasks.start(func() { o.sendAll(r, ds) })
		}
	})
}

// sendAll spreads what a server is asked at once: other clients of it come between,
// and renewals that were due together are not the next time.
func (o *outbox) sendAll(r route, ds []*delivery) {
	for {
		n := min(len(ds), maxBatch)
		part := ds[:n:n]
		ds = ds[n:]
		if len(ds) == 0 {
			o.send(r, part)
			return
		}
		o.tasks.start(func() { o.send(r, part) })
		time.Sleep(batchPause)
	}
}

// locate waits until it is known which node has which keys, no longer than any of the
// deliveries may take.
func (o *outbox) locate(ds []*delivery) error {
	err, _ := o.node.await(context.Background(), soonest(ds))
	return err
}

// soonest is the shortest timeout of a batch.
func soonest(ds []*delivery) time.Duration {
	timeout := ds[0].timeout
	for _, d := range ds {
		timeout = min(timeout, d.timeout)
	}
	return timeout
}

// route is what deliveries of one pipeline have in common.
type route struct {
	client     redis.UniversalClient // of the node that serves their keys
	replicated bool                  // replicas must have what they write
}

func (o *outbox) byRoute(ds []*delivery) map[route][]*delivery {
	routes := map[route][]*delivery{}
	for _, d := range ds {
		r := o.routeOf(d)
		routes[r] = append(routes[r], d)
	}
	return routes
}

func (o *outbox) routeOf(d *delivery) route {
	return route{o.node.serving(d.call.lock), o.node.replication.wants(d.call)}
}

// serving returns the client of the server that has a key, or the client of all where
// that is not known. It does not block.
func (n *node) serving(key string) redis.UniversalClient {
	switch c := n.client.(type) {
	case *redis.ClusterClient:
		if !n.topology.known.Load() {
			break
		}
		if node, err := c.MasterForKey(context.Background(), key); err == nil {
			return node
		}
	case *redis.Ring:
		if node, err := c.GetShardClientForKey(key); err == nil {
			return node
		}
	}
	return n.client
}

// send runs one batch and reports every outcome, at the latest when the
// shortest timeout in it is over.
func (o *outbox) send(r route, ds []*delivery) {
	timeout := soonest(ds)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	o.node.silence.ask(o.node.timeout)

	var reported atomic.Bool
	sent := time.Now()
	giveUp := time.AfterFunc(timeout, func() {
		if reported.CompareAndSwap(false, true) {
			for _, d := range ds {
				d.report(answer{err: errNoAnswer}, sent)
			}
		}
	})
	answers := o.pipeline(ctx, r, ds)
	giveUp.Stop()
	o.node.failed(answers[0].err)
	if reported.CompareAndSwap(false, true) {
		for i, d := range ds {
			d.report(answers[i], sent)
		}
	}
}

// pipeline sends the calls to the node of their route. What that node does not
// do, because its script cache is empty, the slot has moved or the node is gone, goes
// once more, by a way that follows redirections.
func (o *outbox) pipeline(ctx context.Context, r route, ds []*delivery) []answer {
	parcels := pack(ds, o.merges(r, ds))
	for _, p := range parcels {
		p.write(ctx, false)
	}
	var wait *redis.Cmd
	if len(parcels) == 1 && !r.replicated {
		_ = r.client.Process(ctx, parcels[0].cmd) // which keeps its error
	} else {
		wait = o.exec(ctx, r, parcels)
	}

	answers := make([]answer, len(ds))
	var repeated []*parcel
	for _, p := range parcels {
		err := p.cmd.Err()
		switch {
		case err == nil || !isUnknownScript(err) && !isRedirection(err) && !(isClosed(err) && r.client != o.node.client) && !(len(p.calls) > 1 && isForOne(err)):
			for i, d := range p.deliveries {
				a := p.answer(i)
				if r.replicated && a.err == nil {
					a.err = o.node.replication.verify(a.values, wait)
				}
				answers[d] = a
			}
		case r.replicated:
			for _, d := range p.deliveries {
				answers[d].values, answers[d].err = o.node.runReplicated(ctx, ds[d].call, ds[d].flight)
			}
		default:
			repeated = append(repeated, p.split()...)
		}
	}
	if len(repeated) == 0 {
		return answers
	}
	for _, p := range repeated {
		p.write(ctx, true)
	}
	o.exec(ctx, route{client: o.node.client}, repeated)
	for _, p := range repeated {
		for i, d := range p.deliveries {
			answers[d] = p.answer(i)
		}
	}
	return answers
}

// exec sends commands in one pipeline.
func (o *outbox) exec(ctx context.Context, r route, parcels []*parcel) (wait *redis.Cmd) {
	pipe := r.client.Pipeline()
	for _, p := range parcels {
		_ = pipe.Process(ctx, p.cmd)
	}
	if r.replicated {
		wait = o.node.replication.queue(ctx, pipe)
	}
	_, err := pipe.Exec(ctx)
	for _, p := range parcels {
		p.fail(err)
	}
	return wait
}

// merges says whether one command may do several of the calls.
func (o *outbox) merges(r route, ds []*delivery) bool {
	_, isCluster := o.node.client.(*redis.ClusterClient)
	return len(ds) > 1 && !isCluster && o.node.laneTo(r.client).merges()
}

// isForOne says that a command was refused because of one of its keys perhaps.
func isForOne(err error) bool {
	return redis.HasErrorPrefix(err, "NOPERM") || redis.HasErrorPrefix(err, "CROSSSLOT")
}

func isRedirection(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK")
}
