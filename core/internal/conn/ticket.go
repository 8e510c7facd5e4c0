package conn

import (
	"context"
	"time"
)

// ticket is what a caller waits on for the answers to commands that he has queued. Its timer is
// also that of an attempt. Whoever has it alone may use it again, if the timer was stopped in time.
type ticket struct {
	arrived chan *dispatch // has room for all, and for nil: the time is over
	timer   *time.Timer
	attempt *attempt // whose end the timer is; nil: that of who waits
	cancel  func()   // the attempt
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
	t.cancel = func() { t.stop() }
	t.timer = time.AfterFunc(left, func() {
		if t.attempt != nil {
			t.attempt.end(true)
		} else {
			t.arrived <- nil
		}
	})
	return t
}

// stop ends the attempt, unless its time is over or somebody else has ended it.
func (t *ticket) stop() bool {
	inTime := t.timer.Stop()
	if inTime && t.attempt != nil {
		t.attempt.end(false)
	}
	return inTime
}

// giveBack is stop when all answers have come, and when nobody else will stop it any more.
func (s *Server) giveBack(t *ticket) {
	if t.stop() && cap(t.arrived) == 2 {
		t.attempt = nil
		s.tickets.Put(t)
	}
}

// await notes the answers to commands, until all have come or ctx or the time has ended.
func (s *Server) await(ctx context.Context, t *ticket, ds []dispatch, end time.Time) {
	var err error
	for range ds {
		select {
		case d := <-t.arrived:
			if d != nil {
				d.answer = d.got.by(end)
				continue
			}
			err = ErrNoAnswer
			s.silence.end(err) // by now the commands may have been cancelled, which says nothing
		case <-ctx.Done():
			err = Ended(ctx)
			t.timer.Stop()
		}
		for i := range ds {
			if a := &ds[i].answer; a.over {
				a.err = err
			}
		}
		return
	}
	s.giveBack(t)
}

// attempt is the context of a command that goes on its caller's goroutine: one with the caller's
// values that lasts as long as he waits. One of package context's takes three times as long.
type attempt struct {
	caller   context.Context
	deadline time.Time
	over     chan struct{} // closed when nobody waits any more
	late     bool          // because the time was over; set before
}

func (a *attempt) end(late bool) {
	a.late = late
	close(a.over)
}

func (a *attempt) Deadline() (time.Time, bool) { return a.deadline, true }
func (a *attempt) Done() <-chan struct{}       { return a.over }
func (a *attempt) Value(key any) any           { return a.caller.Value(key) }

func (a *attempt) Err() error {
	select {
	case <-a.over:
		if a.late {
			return context.DeadlineExceeded
		}
		return context.Canceled
	default:
		return nil
	}
}
