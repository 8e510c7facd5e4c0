package conn

import (
	"context"
	"sync"
	"time"
)

// attempt is the context under which go-redis sends a command by itself: one with the caller's values, which
// lasts as long as he waits. One of package context's takes several allocations more.
type attempt struct {
	caller   context.Context
	deadline time.Time

	mu    sync.Mutex
	ended bool          // nobody waits any more
	late  bool          // because the time was over
	over  chan struct{} // closed then; nil: nobody has asked for it
}

// end says that nobody waits any more.
func (a *attempt) end(late bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended {
		a.ended, a.late = true, late
		if a.over != nil {
			close(a.over)
		}
	}
}

func (a *attempt) Deadline() (time.Time, bool) { return a.deadline, true }
func (a *attempt) Value(key any) any           { return a.caller.Value(key) }

func (a *attempt) Done() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over == nil {
		a.over = make(chan struct{})
		if a.ended {
			close(a.over)
		}
	}
	return a.over
}

func (a *attempt) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.late:
		return context.DeadlineExceeded
	case a.ended:
		return context.Canceled
	}
	return nil
}

// ticket is what it takes to wait for answers. It serves another caller once they have come.
type ticket struct {
	arrived chan arrival // has room for all, and for one of nothing: the time is over
	attempt *attempt     // that ends with the time instead, if its caller does not wait here
	timer   *time.Timer
	cancel  func() // the attempt
}

// arrival is the answer to a command.
type arrival struct {
	*dispatch
	value any
	err   error
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
	t := &ticket{arrived: make(chan arrival, answers+1), attempt: a}
	t.cancel = func() { t.attempt.end(false) }
	t.timer = time.AfterFunc(left, func() {
		if t.attempt != nil {
			t.attempt.end(true)
		} else {
			t.arrived <- arrival{}
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
	var err error
	for range ds {
		select {
		case a := <-t.arrived:
			if a.dispatch != nil {
				a.dispatch.answer, a.dispatch.over = a.pipeline.ended(a.dispatch, answer{a.value, a.err}, end), false
				continue
			}
			err = ErrNoAnswer
		case <-ctx.Done():
			err = Ended(ctx)
		}
		break
	}
	ds[0].attempt.end(err == ErrNoAnswer)
	for i := range ds {
		if d := &ds[i]; d.over {
			d.answer = answer{err: err}
			if err == ErrNoAnswer {
				d.answer = d.pipeline.ended(d, d.answer, end)
			}
		}
	}
	if err == nil {
		s.giveBack(t)
	} else {
		t.timer.Stop()
	}
}
