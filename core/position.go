package core

import (
	"sync/atomic"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// position is by what this process waits for a lock in the queue of processes.
type position struct {
	member string
	// hold is that of all claims for the lock, so that Redis can grant it. Empty: the
	// process waits as such, and the lock is reserved for it.
	hold   string
	copies conn.Copies

	spent atomic.Bool                 // the hold must not be used any more: it is given back. Only the call that claims by it says so
	clock atomic.Pointer[store.Clock] // of Redis, when it answered last
}

// heard takes the clock of Redis from an answer about the lock. The call at the head may be
// asking meanwhile.
func (p *position) heard(c store.Clock) {
	if p != nil && p.hold != "" && c.Redis != 0 {
		clock := c
		p.clock.Store(&clock)
	}
}

// busy takes the answer to a claim that the lock is busy. A copy that was not answered was
// compensated, which ends the hold.
func (p *position) busy(b *store.Busy) {
	p.heard(b.Clock)
	if p != nil && p.copies.Doubled() {
		p.spend()
	}
}

func (p *position) isSpent() bool { return p != nil && p.spent.Load() }

// failed takes an error of a claim. One that may have had an effect was compensated,
// which ends the hold.
func (p *position) failed(err error) {
	if o := conn.OutcomeOf(err); p != nil && (o != conn.NotSent && o != conn.Refused || p.copies.Doubled()) {
		p.spend()
	}
}

func (p *position) spend() {
	if p != nil {
		p.spent.Store(true)
	}
}

// position returns that by which the head of a queue asks for the lock, nil in a quorum.
func (r *request) position(w *waiter) *position {
	if r.locker.store.IsQuorum() {
		return nil
	}
	p, old := w.WaitBy((*request).waitBy)
	r.locker.leaveQueue(r.name, old)
	return p
}

// waitBy returns the position to wait by: the present one, if it will do.
func (r *request) waitBy(now *position) *position {
	l := r.locker
	switch {
	case !r.canBeGranted():
		return l.alone
	case now != nil && now.hold != "" && !now.isSpent():
		return now
	case schedule.Now() < schedule.Time(l.deafUntil.Load()):
		return l.alone
	default:
		hold := l.store.NewHold()
		return &position{member: hold, hold: hold}
	}
}

// leaveQueue gives up a position. Another of this process may be the next.
func (l *Locker) leaveQueue(n store.Name, p *position) {
	if p != nil {
		l.store.LeaveQueue(n, p.hold, p.copies.Doubled(), l.queues.Reserved)
	}
}
