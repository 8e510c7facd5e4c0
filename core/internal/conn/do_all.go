package conn

import (
	"context"
	"time"
)

// arrival is the answer to one of several commands, and the Recipient of it.
type arrival struct {
	answer
	i  int
	to chan<- arrival // has room for all
}

func (a arrival) Receive(r Reply, err error) {
	a.answer = answer{value: r.Value, err: err}
	a.to <- a
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
	ds := make([]*dispatch, len(cs))
	for i, c := range cs {
		ds[i] = &dispatch{server: s, command: c}
	}
	for i, a := range s.tryAll(ctx, ds, end) {
		r, err := ds[i].follow(ctx, a, sent, end)
		done(i, r, err)
	}
}

// tryAll sends the first copies and waits for the answers.
func (s *Server) tryAll(ctx context.Context, ds []*dispatch, end time.Time) []answer {
	answers, arrived := make([]answer, len(ds)), make(chan arrival, len(ds))
	s.silence.ask(s.config.Timeout)
	err, over := s.locate(ctx, time.Until(end))
	together := map[*pipeline][]*Queued{}
	for i, d := range ds {
		to := arrival{i: i, to: arrived}
		switch {
		case err != nil:
			to.Receive(Reply{}, err)
		case s.replicates(d.command):
			s.config.Workers.Start(func() {
				to.answer = s.try(ctx, d, end)
				arrived <- to
			})
		default:
			p := s.pipelineTo(s.ClientFor(d.command.key()))
			together[p] = append(together[p], &Queued{Command: d.command, Timeout: time.Until(end), To: to, dispatch: d})
		}
		answers[i] = answer{err: ErrNoAnswer, over: true}
	}
	for p, qs := range together {
		p.enterAll(qs)
	}
	timer := time.NewTimer(time.Until(end))
	defer timer.Stop()
	for range ds {
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
