package conn

import (
	"context"
	"runtime"
	"slices"
	"time"
)

// sendStalled sends what has waited for too long for round trips that do not come back: one command, if there is no room for
// more.
func (p *pipeline) sendStalled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting.size() > 0 {
		p.inFlight++
		p.stalls++
		p.mayProbe = true
		p.server.config.Workers.Begin(p)
	}
}

// Run is a sender: it sends what waits until nothing does.
func (p *pipeline) Run() {
	qs, t := p.takeWaiting(nil, trip{})
	defer func() {
		if len(qs) == 0 {
			return
		}
		t.end(errExited)
		p.direct.noteExited()
		for _, q := range qs {
			if q != nil { // else nobody waited for it any more
				q.receive(t.sent, answer{err: errExited})
			}
		}
		p.leave(t)
	}()
	for len(qs) > 0 {
		p.send(qs, &t)
		qs, t = p.takeWaiting(qs, t)
	}
}

// leave ends a round trip. If others wait, a sender takes its place.
func (p *pipeline) leave(t trip) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endTrip(t)
	if p.waiting.size() > 0 && p.window.room(time.Now()) > 0 {
		p.server.config.Workers.Begin(p)
	} else {
		p.inFlight--
	}
}

// takeWaiting ends a round trip. It returns what goes next, in the memory of what a sender has sent; none: it must end.
func (p *pipeline) takeWaiting(sent []*Queued, t trip) ([]*Queued, trip) {
	clear(sent)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endTrip(t)
	if t.commands > 1 && p.waiting.size() < int(t.commands) {
		p.mu.Unlock()
		runtime.Gosched() // those that have their answers may have more to send: a batch costs little more than a command
		p.mu.Lock()
	}
	now := time.Now()
	room := p.window.room(now)
	switch {
	case room == 0 && p.mayProbe:
		room, p.mayProbe = 1, false
	case p.waiting.size() > room:
		p.waiting.shed(now, &p.window, p.meter.refuse)
	}
	if sent == nil {
		sent, p.spare = p.spare, nil
	}
	sent = p.waiting.take(sent[:0], min(room, maxPipeline))
	if len(sent) == 0 {
		p.inFlight--
		p.spare = sent
		return nil, trip{}
	}
	if p.waiting.size() > 0 {
		p.stalled.Reset(p.stallTime(room - len(sent)))
	} else {
		p.stalled.Stop()
	}
	next := p.window.begin(now, len(sent))
	return sent, next
}

// send is for commands that somebody waits for, as long as he does, and for those that have begun.
func (p *pipeline) send(qs []*Queued, t *trip) {
	qs = slices.DeleteFunc(qs, func(q *Queued) bool { return !q.dispatch.take() })
	if len(qs) == 0 {
		return
	}
	sent := time.Now()
	t.sent = sent
	switch {
	case len(qs) == 1 && !p.replicates():
		q, ctx := qs[0], qs[0].context(sent)
		value, err := q.process(ctx, p, p.server.client) // a cluster's, which follows redirections, and has hooks
		t.end(err)
		if q.dispatch.is(written) {
			p.direct.addLastHook(p.client)
		}
		p.direct.noteBlocked(ctx, sent, sent.Add(t.took))
		p.server.noteOutcome(err)
		q.receive(sent, answer{value, err})
	default:
		var ctx context.Context = qs[0].context(sent)
		if len(qs) > 1 {
			longest, cancel := context.WithTimeout(context.Background(), slices.MaxFunc(qs, byTimeout).Timeout)
			defer cancel()
			ctx = longest
		}
		answers := p.roundTrip(ctx, qs)
		t.end(answers[len(answers)-1].err)
		for i, a := range answers {
			qs[i].receive(sent, a)
		}
	}
}
