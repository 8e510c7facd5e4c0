package conn

import (
	"context"
	"time"
)

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

// sendDirectly sends one command on the caller's goroutine, and returns by then: no other has to be woken,
// which is most of what a lone command costs. A deadline of ctx it keeps. When ctx is cancelled meanwhile it
// waits nevertheless: for an answer that comes at once, or in vain, when Redis has just fallen silent.
func (p *pipeline) sendDirectly(ctx context.Context, d *dispatch, t trip, end time.Time) (a answer) {
	sent := t.sent
	own, early := ctx.Deadline()
	if early = early && own.Before(end); early {
		d.context.deadline = own
	}
	slot := p.server.slotFor(1, d.context, end.Sub(sent))
	stop := func() bool { return true }
	if ctx.Done() != nil {
		stop = context.AfterFunc(ctx, slot.cancel)
	}
	defer func() {
		if stop() {
			p.server.giveBack(slot)
		}
		d.context.end(context.Canceled)
		t.end(a.err)
		p.leave(t, d.context.deadline)
	}()
	d.take()
	d.progress = answered
	value, err := d.queued.process(d.context, p, p.client)
	if early && isTimeout(err) && !time.Now().Before(own) {
		<-d.context.Done() // the timer of ctx is a moment behind that of the connection
	}
	if err != nil && ctx.Err() != nil && !isRefusal(err) {
		p.server.noteOutcome(context.Canceled) // it says nothing about Redis
		d.progress = awaited
		return answer{err: Ended(ctx)}
	}
	p.server.noteOutcome(err)
	return answer{value, err}
}

// noteOverrun notes when a single command came back. One that was back too late shows that something in the client blocks:
// no other caller lends it his goroutine.
func (p *pipeline) noteOverrun(t trip, deadline time.Time) {
	if min(t.took, t.sent.Add(t.took).Sub(deadline)) > overrun && (p.withDeadlines == nil || p.last.Load() != nil) {
		p.direct.Store(false)
	}
}

// leave ends the round trip of a single command. If others wait, a sender takes its place.
func (p *pipeline) leave(t trip, deadline time.Time) {
	p.noteOverrun(t, deadline)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endTrip(t)
	if p.tryGoOn(p.window.room(t.sent.Add(t.took))) {
		p.server.config.Workers.Begin(p)
	}
}
