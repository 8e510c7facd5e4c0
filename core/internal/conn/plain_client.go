package conn

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// lastHook is a hook of a client that keeps no deadlines. As the last one it passes commands that go by themselves to a
// copy that does: the user's hooks have run by then. go-redis asks for it first when it is added, as the last one; then
// when another follows it, but also for connections and transactions, so that only the next command shows whether it is
// the last. It refers to no client, or one that nobody closes would never be collected.
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
		if c, _ := cmd.(*once); c != nil && c.pipeline != nil && c.pipeline.options == h.of { // a hook may send a command to another client
			if h.isLast.Store(isLast); isLast {
				c.pipeline.last.Store(h)
				return c.pipeline.withDeadlines.Process(ctx, cmd)
			}
		}
		return next(ctx, cmd)
	}
}

// mayGoDirectly says that a command may go on its caller's goroutine, as far as is seen.
func (p *pipeline) mayGoDirectly() bool {
	h := p.last.Load()
	return p.direct.Load() && (p.withDeadlines == nil || h != nil && h.isLast.Load())
}

// addLastHook gives the client a last hook when a command has found none: once, for a hook of the user's may hide it.
func (p *pipeline) addLastHook(d *dispatch) {
	if p.withDeadlines != nil && p.last.Load() == nil && d.is(written) && !p.isHooked.Swap(true) {
		p.client.AddHook(&lastHook{of: p.options})
	}
}
