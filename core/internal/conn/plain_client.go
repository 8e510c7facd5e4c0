package conn

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// obedientCopy returns a copy of a client that has its connections, and keeps the deadlines of contexts. It lacks the
// hooks of the client.
func obedientCopy(client *redis.Client) *redis.Client {
	c := client.WithTimeout(client.Options().ReadTimeout)
	c.Options().WriteTimeout = client.Options().WriteTimeout
	c.Options().ContextTimeoutEnabled = true
	return c
}

// lastHook is a hook of a client that keeps no deadlines. If it is the last one it passes commands that go by themselves
// to the copy that does: the user's hooks have run by then. go-redis asks for it first when it is added, as the last one;
// again when another one follows it, but also for connections and transactions. So the next command has to show whether
// it still is the last. It refers to no client, or one that is not closed would never be collected.
type lastHook struct {
	of      *redis.Options // tell the client
	isAsked atomic.Bool
	isLast  atomic.Bool // as a command has found since go-redis asked
}

func (*lastHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*lastHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *lastHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	isLast := !h.isAsked.Swap(true)
	h.isLast.Store(false)
	return func(ctx context.Context, cmd redis.Cmder) error {
		if p := pipelineOf(cmd); p != nil && p.options == h.of { // a hook may send a command to another client
			if h.isLast.Load() != isLast {
				h.isLast.Store(isLast)
			}
			if isLast {
				p.last.Store(h)
				return p.obedient.Process(ctx, cmd)
			}
		}
		return next(ctx, cmd)
	}
}

// pipelineOf returns that of a command that goes by itself; nil: it is none.
func pipelineOf(cmd redis.Cmder) *pipeline {
	if c, ours := cmd.(*once); ours {
		if d, isLone := c.script.command.(*dispatch); isLone {
			return d.pipeline
		}
	}
	return nil
}

// lends says that a command may go on its caller's goroutine, as far as is seen.
func (p *pipeline) lends() bool {
	h := p.last.Load()
	return p.direct.Load() && (p.obedient == nil || h != nil && h.isLast.Load())
}

// hook gives the client a last hook when a command has found none: once, for a hook of the user's may hide it.
func (p *pipeline) hook(d *dispatch) {
	if p.obedient != nil && p.last.Load() == nil && d.is(written) && !p.isHooked.Swap(true) {
		p.client.AddHook(&lastHook{of: p.options})
	}
}
