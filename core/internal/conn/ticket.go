package conn

import (
	"context"
	"sync"
	"time"
)

// attempt is a copy of a command that goes by itself, and the context under which go-redis sends it: one with
// the caller's values, which lasts as long as somebody waits. One of package context's takes several
// allocations more.
type attempt struct {
	cmd      once
	caller   context.Context
	deadline time.Time

	mu   sync.Mutex
	err  error         // why nobody waits any more
	over chan struct{} // closed then; nil: nobody has asked for it
}

// end says that nobody waits any more.
func (a *attempt) end(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return
	}
	a.err = why
	if a.over != nil {
		close(a.over)
	}
}

func (a *attempt) Deadline() (time.Time, bool) { return a.deadline, true }
func (a *attempt) Value(key any) any           { return a.caller.Value(key) }

func (a *attempt) Done() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over == nil {
		a.over = make(chan struct{})
		if a.err != nil {
			close(a.over)
		}
	}
	return a.over
}

func (a *attempt) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// ticket is what it takes to wait for answers. It serves another caller once they have come.
type ticket struct {
	arrived chan *dispatch // has room for all, and for nil: the time is over
	attempt *attempt       // that ends with the time instead, if its caller does not wait here
	timer   *time.Timer
	cancel  func() // the attempt
}

// ticketFor returns a ticket for so many answers, until so much time is over.
func (s *Server) ticketFor(answers int, a *attempt, left time.Duration) *ticket {
	if answers == 1 {
		if t, ok := s.tickets.Get().(*ticket); ok {
			t.attempt = a
			t.timer.Reset(left)
			return t
		}
	}
	t := &ticket{arrived: make(chan *dispatch, answers+1), attempt: a}
	t.cancel = func() { t.attempt.end(context.Canceled) }
	t.timer = time.AfterFunc(left, func() {
		if t.attempt != nil {
			t.attempt.end(context.DeadlineExceeded)
		} else {
			t.arrived <- nil
		}
	})
	return t
}

// giveBack is for a ticket whose answers have come, and whose attempt nobody else will cancel. If the time is
// over its timer may still be at work.
func (s *Server) giveBack(t *ticket) {
	if t.timer.Stop() && cap(t.arrived) == 2 {
		t.attempt = nil
		s.tickets.Put(t)
	}
}

// await notes the answers to commands, until all have come or ctx or the time has ended.
func (s *Server) await(ctx context.Context, t *ticket, ds []dispatch, end time.Time) {
	err, ended := error(nil), context.Canceled
	for range ds {
		select {
		case d := <-t.arrived:
			if d != nil {
				d.answer = d.got.by(end)
				continue
			}
			err, ended = ErrNoAnswer, context.DeadlineExceeded
		case <-ctx.Done():
			err = Ended(ctx)
		}
		break
	}
	for i := range ds {
		d := &ds[i]
		if d.attempt.end(ended); d.answer.over {
			d.answer.err = err
		}
	}
	if err == nil {
		s.giveBack(t)
	} else {
		t.timer.Stop()
	}
}
