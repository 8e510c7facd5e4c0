package core

import (
	"time"

	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// What an event of its life entails for a lease.

// afterwards is what is to be done without the mutex of the lease.
type afterwards struct {
	life.Effects
	stands   life.State
	handles  []*handle    // whose contexts end
	observed *observation // of whom has to be told
}

// follow does what an event of its life entails, and returns why the lease is lost, or nil. s.mu is held, and follow
// unlocks it.
func (s *lease) follow(e life.Effects) error {
	after := s.followLocked(e)
	s.mu.Unlock()
	return s.followUnlocked(after)
}

// followLocked is what of it s.mu guards. followUnlocked must come next, without it.
func (s *lease) followLocked(e life.Effects) afterwards {
	after := afterwards{Effects: e, stands: s.life.State(), observed: s.observed}
	if e.Next == life.Never {
		s.engine.scheduler.Remove(s)
	} else if e.Next != 0 {
		s.engine.scheduler.Set(s, e.Next)
	}
	if e.Renew {
		s.engine.store.Renew(s.renewal(), s.renewalTimeout(), s)
	}
	if e.Overdue || e.Ended.IsLost() {
		after.handles = s.all()
	}
	if e.Ended != 0 {
		s.observed = nil
	}
	return after
}

// followUnlocked is the rest of it.
func (s *lease) followUnlocked(after afterwards) error {
	loss := s.loss(after.stands)
	if after.Overdue {
		why := maxHoldError(s.name.Key())
		after.observed.held(EventOverdue, "", why)
		for _, h := range after.handles {
			h.under.end(why)
		}
		s.engine.report.warn(s.ctx, "a lock is held longer than MaxHold permits", "key", s.name.Key())
	}
	switch {
	case after.Ended == 0:
	case after.Ended.IsLost():
		s.lose(after, loss)
	default:
		after.observed.released()
		s.engine.unregister(s)
	}
	return loss
}

// lose ends the contexts of all handles, and gives back what may be left in Redis: the lock, unless its time is over
// there, or a minority of a quorum has it at most; and of each hold a copy of its acquisition that may still arrive.
func (s *lease) lose(after afterwards, why error) {
	e := s.engine
	for _, h := range after.handles {
		h.under.end(why)
	}
	s.mu.Lock()
	isOver := after.Ended == life.FixedOver && !s.refreshed
	s.mu.Unlock()
	left := !isOver && (!after.Gone || e.store.MinorityMayKeep())
	for _, h := range after.handles {
		s.giveBack(h, left)
	}
	after.observed.lost(why, after.Ended.IsTimeOver())
	tell := e.report.problem
	if after.Ended == life.Closed {
		tell = e.report.warn
	}
	tell(s.ctx, "a lock was lost while held", "key", s.name.Key(), "error", why)
	e.unregister(s)
	e.queues.Signal(s.name.Lock(), 0)
}

// giveBack releases a hold in the background, if it may be left in Redis, or may yet arrive there.
func (s *lease) giveBack(h *handle, left bool) {
	s.mu.Lock()
	work := max(store.Failed, s.work)
	if s.attempt > 0 {
		work = store.Done // or not: nobody knows
	}
	r := s.releaseOf(h, work)
	s.mu.Unlock()
	r.Until = time.Now().Add(s.Lease)
	if left || r.MayArrive {
		s.engine.store.ReleaseLater(r)
	}
}

// loss is why a lease is lost that stands there; nil: it is not.
func (s *lease) loss(stands life.State) error {
	if !stands.IsLost() {
		return nil
	}
	reason, cause := "it was deleted, or somebody else has taken it", error(nil)
	switch stands {
	case life.Expired:
		reason = "it could not be renewed in time"
	case life.FixedOver:
		reason = "its fixed lease is over"
	case life.HeldTooLong:
		reason, cause = "its last lease is over", ErrMaxHold
	case life.ParkedTooLong:
		reason = "handing it over took too long"
	case life.Closed:
		return closedError("holding", s.name.Key())
	}
	return lostError(s.name.Key(), reason, cause)
}
