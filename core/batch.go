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
	// done receives the outcome exactly once; sent is a time before the call
	// left this process.
	done func(values []any, err error, sent time.Time)
}

// outbox collects deliveries and sends them in pipelines, one node apart from
// another, so that a slow node holds up nobody else.
type outbox struct {
	client redis.UniversalClient
	tasks  *tasks
	failed func(error) // hears of the outcome of each batch

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
		for node, ds := range o.byNode(waiting) {
			for len(ds) > 0 {
				n := min(len(ds), maxBatch)
				part := ds[:n:n]
				ds = ds[n:]
				o.tasks.start(func() { o.send(node, part) })
			}
		}
	})
}

// byNode sorts deliveries by the node that serves their key.
func (o *outbox) byNode(ds []*delivery) map[redis.UniversalClient][]*delivery {
	nodes := map[redis.UniversalClient][]*delivery{}
	for _, d := range ds {
		node := nodeOf(o.client, d.call.keys[0])
		nodes[node] = append(nodes[node], d)
	}
	return nodes
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
func (o *outbox) send(node redis.UniversalClient, ds []*delivery) {
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
	cmds := pipeline(ctx, node, o.client, ds)
	giveUp.Stop()
	o.failed(cmds[0].Err())
	if reported.CompareAndSwap(false, true) {
		for i, d := range ds {
			values, err := cmds[i].Slice()
			if err == nil {
				err = d.call.script.check(values)
			}
			d.done(values, err, sent)
		}
	}
}

// pipeline sends the calls to their node. What that node does not know, because
// its script cache is empty or the slot has moved, goes once more through the
// client, which follows redirections.
func pipeline(ctx context.Context, node, client redis.UniversalClient, ds []*delivery) []once {
	cmds := make([]once, len(ds))
	pipe := node.Pipeline()
	for i, d := range ds {
		cmds[i] = once{redis.NewCmd(ctx, d.call.command(false)...), &flight{}}
		_ = pipe.Process(ctx, cmds[i])
	}
	_, _ = pipe.Exec(ctx) // each command keeps its own error

	again := client.Pipeline()
	for i, d := range ds {
		if err := cmds[i].Err(); isUnknownScript(err) || isRedirection(err) {
			cmds[i] = once{redis.NewCmd(ctx, d.call.command(true)...), &flight{}}
			_ = again.Process(ctx, cmds[i])
		}
	}
	if again.Len() > 0 {
		_, _ = again.Exec(ctx)
	}
	return cmds
}

func isRedirection(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK")
}
