package conn

import (
	"context"
	"time"
)

// waitSlot is the memory that a wait for answers takes. It serves another caller once the answers have come.
type waitSlot struct {
	arrived chan arrival // has room for all answers, and for one of no command: the time is over
	context *sendContext // ends with the time instead, if its caller does not wait here
	timer   *time.Timer
	cancel  func() // ends the context because the caller's has ended
}

// arrival is the answer to a command.
type arrival struct {
	*dispatch
	answer
}

// slotFor returns a slot for so many answers, until so much time is over.
func (s *Server) slotFor(answers int, c *sendContext, left time.Duration) *waitSlot {
	if answers == 1 {
		if slot, ok := s.slots.Get().(*waitSlot); ok {
			slot.context = c
			slot.timer.Reset(left)
			return slot
		}
	}
	slot := &waitSlot{arrived: make(chan arrival, answers+1), context: c}
	slot.cancel = func() { slot.context.end(context.Canceled) }
	slot.timer = time.AfterFunc(left, func() {
		if slot.context != nil {
			slot.context.end(context.DeadlineExceeded)
		} else {
			slot.arrived <- arrival{}
		}
	})
	return slot
}

// giveBack is for a slot whose answers have come, and whose context nobody else will end. If the time is
// over the slot's timer may still be at work.
func (s *Server) giveBack(slot *waitSlot) {
	if slot.timer.Stop() && cap(slot.arrived) == 2 {
		slot.context = nil
		s.slots.Put(slot)
	}
}

// await notes the answers to commands, until all have come or ctx or the time has ended.
func (s *Server) await(ctx context.Context, slot *waitSlot, ds []dispatch) {
	var missing, why error = nil, context.Canceled
	for range ds {
		select {
		case a := <-slot.arrived:
			if a.dispatch != nil {
				a.dispatch.answer, a.progress = a.answer, answered
				continue
			}
			missing, why = ErrNoAnswer, context.DeadlineExceeded
		case <-ctx.Done():
			missing = Ended(ctx)
		}
		break
	}
	ds[0].context.end(why)
	if missing == nil {
		s.giveBack(slot)
		return
	}
	slot.timer.Stop()
	for i := range ds {
		if ds[i].progress == awaited {
			ds[i].answer = answer{err: missing}
		}
	}
}
