package conn

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// overrun is for how long after the end of its time a command may come back because the machine is busy.
const overrun = 100 * time.Millisecond

// direct sends commands to a server on the goroutines of their callers: no other has to be woken, which is most of what a lone
// command costs. nil never does.
type direct struct {
	options       *redis.Options           // tell the client
	withDeadlines *redis.Client            // the copy of a client that keeps none; nil: it does
	hasBlocked    atomic.Bool              // or has ended its caller's goroutine
	last          atomic.Pointer[lastHook] // of a client that keeps no deadlines, which has passed a command
	isHooked      atomic.Bool              // such a client was given a last hook
}

// newDirect returns nil where a client has something of its user's that may block on the goroutine that sends a command. Dialers do so
// on others. Hooks cannot be seen, nor what connections do.
func newDirect(client *redis.Client) *direct {
	o := client.Options()
	least := min(o.ReadTimeout, o.WriteTimeout)
	if least < 0 || least == 0 && !o.ContextTimeoutEnabled || o.Limiter != nil || o.OnConnect != nil ||
		o.CredentialsProvider != nil || o.CredentialsProviderContext != nil || o.StreamingCredentialsProvider != nil {
		return nil
	}
	d := &direct{options: o}
	if !o.ContextTimeoutEnabled {
		d.withDeadlines = client.WithTimeout(o.ReadTimeout)
		d.withDeadlines.Options().WriteTimeout, d.withDeadlines.Options().ContextTimeoutEnabled = o.WriteTimeout, true
	}
	return d
}

// mayGo says that a command may go on its caller's goroutine, as far as is seen.
func (d *direct) mayGo() bool {
	if d == nil || d.hasBlocked.Load() {
		return false
	}
	h := d.last.Load()
	return d.withDeadlines == nil || h != nil && h.isLast.Load()
}

// noteBlocked takes that a command, sent then, has come back now. One that is back long after its context has ended shows that
// something in the client blocks: no other caller lends it his goroutine. Where the whole process stood still, the context
// has ended late, too.
func (d *direct) noteBlocked(c *sendContext, sent, now time.Time) {
	if d == nil || d.withDeadlines != nil && d.last.Load() == nil {
		return
	}
	if since, isOver := c.over(); isOver && min(now.Sub(sent), now.Sub(since)) > overrun {
		d.hasBlocked.Store(true)
	}
}

// noteExited takes that a hook of the client's has ended the goroutine that sent.
func (d *direct) noteExited() {
	if d != nil {
		d.hasBlocked.Store(true)
	}
}

// addLastHook gives the client a last hook when a command that was written has found none: once, for a hook of the user's may hide it.
func (d *direct) addLastHook(client redis.UniversalClient) {
	if d != nil && d.withDeadlines != nil && d.last.Load() == nil && !d.isHooked.Swap(true) {
		client.AddHook(&lastHook{of: d.options})
	}
}

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
		if c, _ := cmd.(*once); c != nil && c.direct != nil && c.direct.options == h.of { // a hook may send a command to another client
			if h.isLast.Store(isLast); isLast {
				c.direct.last.Store(h)
				return c.direct.withDeadlines.Process(ctx, cmd)
			}
		}
		return next(ctx, cmd)
	}
}

// tryEnter reports whether a command may go by itself; then leave must follow.
func (p *pipeline) tryEnter(sent time.Time) (t trip, enters bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.window.room(sent) == 0 || !p.tryBegin(sent) {
		return t, false
	}
	t = p.window.begin(sent, 1)
	t.sent = sent
	return t, true
}

// sendDirectly sends one command on the caller's goroutine, and returns by then. A deadline of ctx it keeps. When ctx is cancelled
// meanwhile it waits nevertheless: for an answer that comes at once, or in vain, when Redis has just fallen silent.
func (p *pipeline) sendDirectly(ctx context.Context, d *dispatch, t trip, end time.Time) (a answer) {
	own, early := ctx.Deadline()
	if early = early && own.Before(end); early {
		d.context.deadline = own
	}
	slot := p.server.slotFor(1, d.context, d.context.deadline.Sub(t.sent))
	stop := func() bool { return true }
	if ctx.Done() != nil {
		stop = context.AfterFunc(ctx, slot.cancel)
	}
	back := t.sent
	defer func() {
		if t.end(a.err); a.err == errExited {
			d.abandon()
			p.direct.noteExited()
		}
		t.took = back.Sub(t.sent)
		p.direct.noteBlocked(d.context, t.sent, t.sent.Add(t.took))
		if stop() {
			p.server.giveBack(slot)
		}
		d.context.end(context.Canceled)
		p.leave(t)
	}()
	d.take()
	a.err, d.progress = errExited, answered
	value, err := d.queued.process(d.context, p, p.client)
	back = time.Now()
	if early && err != nil && !isRefusal(err) && !back.Before(own) {
		_ = Pause(ctx, time.Until(end)) // its timer is a moment behind that of the connection, if it has one at all
	}
	if err != nil && ctx.Err() != nil && !isRefusal(err) {
		p.server.noteOutcome(context.Canceled) // it says nothing about Redis
		d.progress = awaited
		return answer{err: Ended(ctx)}
	}
	p.server.noteOutcome(err)
	return answer{value, err}
}
