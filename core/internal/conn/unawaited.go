package conn

import (
	"context"
	"time"
)

// Unawaited is a command that [Server.Begin] has begun.
type Unawaited struct {
	dispatch []dispatch // the one
	to       Recipient
	sent     time.Time
	over     *time.Timer // until there is an answer
}

// Begin is DoAll that does not wait: each recipient receives what Do would return. An error it receives on a goroutine of its own, which
// it may block. The topology of a cluster must be known. Begin does not block.
func (s *Server) Begin(cs []*Command, timeout time.Duration, to []Recipient) []Unawaited {
	sent, us, ds := time.Now(), make([]Unawaited, len(cs)), make([]dispatch, len(cs))
	s.silence.ask(sent, s.config.Timeout)
	for i := range us {
		u, d := &us[i], &ds[i]
		*u = Unawaited{dispatch: ds[i : i+1], to: to[i], sent: sent}
		d.queued = Queued{Command: cs[i], Timeout: timeout, To: u, dispatch: d}
		d.context, d.pipeline = &d.first, s.pipelineFor(cs[i])
		d.context.caller, d.context.deadline = context.Background(), sent.Add(timeout)
		u.over = time.AfterFunc(timeout, func() { u.end(answer{err: ErrNoAnswer}, awaited) })
	}
	enqueue(ds)
	return us
}

// Withdraw takes the command back, unless it is on its way: then it is false, and the recipient has received what came of it, or will.
func (u *Unawaited) Withdraw() bool {
	return u.dispatch[0].known.CompareAndSwap(0, abandoned) && u.over.Stop()
}

// Receive takes the answer to the first copy.
func (u *Unawaited) Receive(r Reply, err error) {
	if u.over.Stop() {
		u.end(answer{r.Value, err}, answered)
	}
}

// end takes what came of the first copy.
func (u *Unawaited) end(a answer, p progress) {
	d := &u.dispatch[0]
	d.answer, d.progress = a, p
	d.context.end(context.Canceled)
	conclude := func() {
		u.to.Receive(d.pipeline.server.resendUntilDone(context.Background(), u.dispatch, u.sent, d.context.deadline))
	}
	if a.err == nil {
		conclude()
		return
	}
	if p == answered {
		d.queued.To = nil // of other copies
	}
	d.pipeline.server.config.Workers.Start(conclude)
}
