package conn

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// flushPause is between the answer to a pipeline of one Flush and the next one to the same server.
	flushPause = time.Millisecond
	// flushStall is how long a pipeline may hold up the next.
	flushStall = 20 * time.Millisecond
)

// Queued is a command that may wait in the queue of a pipeline, and go with others. One that Flush sends may arrive several times.
type Queued struct {
	Command *Command
	Timeout time.Duration
	Until   time.Time // when it makes no sense any more to repeat it
	To      Recipient // nil: nobody wants to know

	dispatch *dispatch // who waits for it in place of To; nil: nobody, and nobody gives it up
}

// process sends a command by itself: a script by its digest, and whole where Redis has not seen it.
func (q *Queued) process(ctx *sendContext, p *pipeline, client redis.UniversalClient) (any, error) {
	for whole := false; ; whole = true {
		cmd := &once{direct: p.direct}
		cmd.set(ctx, q.Command.Script, whole, q.dispatch, q.Command.line(cmd.line[:]))
		cmd.SetErr(recovered(func() error { return client.Process(ctx, cmd) }))
		p.noteScript(q.Command.Script, cmd.Err())
		if whole || !isUnknownScript(cmd.Err()) {
			return q.Command.withoutTag(cmd.reply())
		}
	}
}

// context is that under which the copy goes that is sent now.
func (q *Queued) context(now time.Time) *sendContext {
	if q.dispatch != nil {
		return q.dispatch.context
	}
	return &sendContext{caller: context.Background(), deadline: now.Add(q.Timeout)}
}

// receive takes the answer to the copy that was sent then, of which there is one.
func (q *Queued) receive(sent time.Time, a answer) {
	if d := q.dispatch; d != nil {
		d.slot.arrived <- arrival{d, a}
	} else {
		q.To.Receive(Reply{a.value, sent}, a.err)
	}
}

// Recipient receives the outcome of a queued command: once, on any goroutine, at the latest when the shortest
// timeout is over of those that were sent with it. Sent is set also of a failure. [OutcomeOf] tells about the
// error. It must not block.
type Recipient interface {
	Receive(r Reply, err error)
}

// Queue has the command go with the next Flush. It does not block. q is not changed until its outcome is
// there.
func (s *Server) Queue(q *Queued) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, q)
}

// Begin has the command go at once, once, with what goes to its server just now. It does not block. Its recipient may be told later than
// its timeout says, where go-redis does not interrupt it.
func (s *Server) Begin(q *Queued) {
	s.silence.ask(time.Now(), s.config.Timeout)
	s.pipelineFor(q.Command).enqueue(q)
}

// Withdraw takes a command back that has begun, unless it is on its way: then it is false.
func (s *Server) Withdraw(q *Queued) bool {
	p := s.pipelineFor(q.Command)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting.remove(q)
}

// Flush sends what was queued, each server's share apart from the others', so that a slow one holds up nobody
// else. It does not block.
func (s *Server) Flush() {
	s.mu.Lock()
	qs := s.queue
	s.queue = nil
	s.mu.Unlock()
	if len(qs) == 0 {
		return
	}
	s.config.Workers.Start(func() {
		began, timeout := time.Now(), soonest(qs)
		if _, err := s.awaitTopology(context.Background(), timeout); err != nil {
			s.report(qs, began, began.Add(timeout), answer{err: err})
			return
		}
		together := map[*pipeline][]*Queued{}
		for _, q := range qs {
			p := s.pipelineFor(q.Command)
			together[p] = append(together[p], q)
		}
		for p, qs := range together {
			if len(together) == 1 {
				p.sendInParts(qs) // each goroutine less is a thread less to be woken
			} else {
				s.config.Workers.Start(func() { p.sendInParts(qs) })
			}
		}
	})
}

func soonest(qs []*Queued) time.Duration { return slices.MinFunc(qs, byTimeout).Timeout }
func byTimeout(a, b *Queued) int         { return cmp.Compare(a.Timeout, b.Timeout) }

// sendInParts sends so many at a time, one after the other: so others of the server wait for few of them, and what was due
// together is not the next time.
func (p *pipeline) sendInParts(qs []*Queued) {
	for len(qs) > maxPipeline {
		part, answered := qs[:maxPipeline:maxPipeline], make(chan struct{})
		qs = qs[maxPipeline:]
		p.server.config.Workers.Start(func() {
			defer close(answered)
			p.sendInTime(part, nil)
		})
		select {
		case <-answered:
		case <-time.After(flushStall):
		}
		time.Sleep(flushPause)
	}
	p.sendInTime(qs, nil)
}

// sendInTime reports every outcome, at the latest when the shortest timeout is over, and then calls done, unless that is nil.
// Meanwhile the commands are sent again by each connection of the pool that may be dead; a Redis that is down is not asked at
// that pace. If the last commands had no outcome, a network may have forgotten the idle connections of the pool, and
// says nothing: then they are closed, and the commands go by a new one.
func (p *pipeline) sendInTime(qs []*Queued, done func([]answer)) {
	s, timeout, began := p.server, soonest(qs), time.Now()
	end := began.Add(timeout)
	ctx, cancel := context.WithDeadline(context.Background(), end.Add(-timeout/16)) // so that answers that came in time are known by then
	defer cancel()
	report := func(sent time.Time, answers ...answer) {
		s.report(qs, sent, end, answers...)
		if done != nil {
			done(answers)
		}
	}
	giveUp := time.AfterFunc(timeout, func() {
		s.noteOutcome(ErrNoAnswer)
		report(began, answer{err: ErrNoAnswer})
	})
	if s.silence.mayCloseConnections(timeout) {
		for range idle(p.client) {
			closeIdle(p.client)
		}
	}
	s.silence.ask(began, s.config.Timeout)
	next := newRepeats()
	for again := true; again; {
		sent := time.Now()
		answers := p.roundTrip(ctx, qs)
		again = ctx.Err() == nil && slices.ContainsFunc(answers, func(a answer) bool { return next.atOnce(a.err, p.client) })
		if !again && giveUp.Stop() {
			report(sent, answers...)
		}
	}
}

// report tells the recipients of commands the answers: there is one for each, or one for all.
func (s *Server) report(qs []*Queued, sent, end time.Time, answers ...answer) {
	for i, q := range qs {
		if a := answers[min(i, len(answers)-1)]; q.To != nil {
			q.To.Receive(Reply{a.value, sent}, s.explain(a.err, q, end))
		}
	}
}
