package conn

import (
	"context"
	"time"
)

// part is one of several commands, and the Recipient of its answer.
type part struct {
	dispatch
	queued Queued
	i      int
	to     chan<- arrival // has room for all
}

type arrival struct {
	answer
	i int
}

func (p *part) Receive(r Reply, err error) {
	p.to <- arrival{answer{value: r.Value, err: err}, p.i}
}

// DoAll is Do for several commands, and has done with each one: in their order, as soon as all
// have been answered. Those to one server share a round trip, and a command where their script
// merges.
func (s *Server) DoAll(ctx context.Context, cs []*Command, timeout time.Duration, done func(i int, r Reply, err error)) {
	if ctx.Err() != nil {
		for i := range cs {
			done(i, Reply{}, &Failure{NotSent, Ended(ctx)})
		}
		return
	}
	sent := time.Now()
	end := sent.Add(timeout)
	parts := make([]part, len(cs))
	for i, c := range cs {
		parts[i].server, parts[i].command, parts[i].i = s, c, i
	}
	for i, a := range s.tryAll(ctx, parts, end) {
		r, err := parts[i].follow(ctx, a, sent, end)
		done(i, r, err)
	}
}

// tryAll sends the first copies and waits for the answers.
func (s *Server) tryAll(ctx context.Context, parts []part, end time.Time) []answer {
	answers, arrived := make([]answer, len(parts)), make(chan arrival, len(parts))
	s.silence.ask(s.config.Timeout)
	err, over := s.locate(ctx, time.Until(end))
	together := map[*pipeline][]*Queued{}
	for i := range parts {
		answers[i] = answer{err: ErrNoAnswer, over: true}
		part := &parts[i]
		part.to = arrived
		switch {
		case err != nil:
			part.Receive(Reply{}, err)
		case s.replicates(part.command):
			s.config.Workers.Start(func() { arrived <- arrival{s.try(ctx, &part.dispatch, new(attempt), end), i} })
		default:
			part.queued = Queued{Command: part.command, Timeout: time.Until(end), To: part, dispatch: &part.dispatch}
			p := s.pipelineTo(s.ClientFor(part.command.key()))
			together[p] = append(together[p], &part.queued)
		}
	}
	for p, qs := range together {
		p.enterAll(qs)
	}
	timer := time.NewTimer(time.Until(end))
	defer timer.Stop()
	for range parts {
		select {
		case a := <-arrived:
			answers[a.i] = a.by(end)
			answers[a.i].over = a.over || over
		case <-timer.C:
			return answers
		case <-ctx.Done():
			for i := range answers {
				if answers[i].err == ErrNoAnswer {
					answers[i] = answer{err: Ended(ctx), over: true}
				}
			}
			return answers
		}
	}
	return answers
}

// enterAll sends commands together: at once, unless enough are in flight.
func (p *pipeline) enterAll(qs []*Queued) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(qs...)
	if p.mayGo() {
		p.busy++
		p.server.config.Workers.Start(p.drain)
	}
}
