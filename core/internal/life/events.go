package life

import "github.com/latchkey-go/latchkey/core/internal/schedule"

// These events come with time, from Redis, and from Close. None changes the state of a lease that has ended.

// New is the life of a lease with its first handle.
func New(first *HandleState, t Times, overdueAt schedule.Time) Life {
	*first = In
	return Life{times: t, overdueAt: overdueAt, in: 1, state: Held}
}

// Check asks whether the lease is lost by now, which nobody may have noticed.
func (l *Life) Check(now schedule.Time) Effects {
	switch {
	case !l.state.IsReliedOn() || now < l.StopAt():
		return Effects{}
	case l.state == BeingHandedOver:
		return l.end(HandoverTooLong)
	case l.times.RenewAt == 0:
		return l.end(FixedOver)
	case l.overdue:
		return l.end(HeldTooLong)
	default:
		return l.end(Expired)
	}
}

// Due says that the time of [Life.NextDue] has come.
func (l *Life) Due(now schedule.Time) Effects {
	e := l.Check(now)
	if l.state.IsReliedOn() {
		e.Overdue = l.becomesOverdue() && now >= l.overdueAt
		l.overdue = l.overdue || e.Overdue
		e.Renew = l.isRenewable() && now >= l.times.RenewAt
		l.renewing = l.renewing || e.Renew
	}
	return e
}

// RenewalAnswered says that a renewal is not under way any more. What came of it is an event of its own.
func (l *Life) RenewalAnswered() { l.renewing = false }

// Doubted says that Redis may have forgotten the lease: it is renewed by then.
func (l *Life) Doubted(by schedule.Time) { l.times.RenewAt = min(l.times.RenewAt, by) }

// Renewed says that Redis has started the lease anew, for good.
func (l *Life) Renewed(t Times) {
	l.times.Granted = false
	if l.state.IsReliedOn() {
		l.extend(t)
	}
}

// NotRenewed says that nobody knows whether Redis has renewed it: the renewal is repeated, and it ends as before.
func (l *Life) NotRenewed(again schedule.Time) {
	if l.state.IsReliedOn() {
		l.extend(Times{RenewAt: again})
	}
}

// LeaseNotFound says that Redis was asked, and does not know the lease. Where nobody relies on it, it may have been
// released since.
func (l *Life) LeaseNotFound(now schedule.Time) Effects {
	if !l.state.IsReliedOn() {
		return Effects{}
	}
	e := l.HoldNotFound(now)
	e.NoHoldLeft = true
	return e
}

// HoldNotFound says that Redis did not know the hold of a handle that has left, when its release arrived.
func (l *Life) HoldNotFound(now schedule.Time) Effects {
	switch {
	case l.state.IsEnd():
		return Effects{}
	case now >= l.StopAt():
		return l.end(ExpiredInRedis)
	default:
		return l.end(Deleted)
	}
}

// Close takes it away from its handles. From one that is being released there is nothing to take.
func (l *Life) Close() Effects {
	if !l.state.HasHandles() {
		return Effects{}
	}
	return l.end(Closed)
}

func (l *Life) end(as State) Effects {
	l.state = as
	return Effects{Ended: as}
}

// extend starts the lease anew. No answer shortens it, and none makes a fixed one renewable.
func (l *Life) extend(t Times) {
	l.times.Ends = max(l.times.Ends, t.Ends)
	if l.times.RenewAt != 0 {
		l.times.RenewAt = t.RenewAt
	}
}

// These events come from handles.

// Join lets a handle begin to re-enter, or with nil one that only Redis counts, while the lease is [Held].
func (l *Life) Join(now schedule.Time, h *HandleState) (joins bool, e Effects) {
	if e = l.Check(now); l.state != Held {
		return false, e
	}
	if h != nil {
		*h = Entering
		l.entering++
	}
	return true, e
}

// Entered says that Redis has confirmed the re-entry, and started the lease anew, unless it is fixed. What was granted
// is still to be renewed.
func (l *Life) Entered(now schedule.Time, h *HandleState, t Times) Effects {
	*h = In
	l.entering--
	l.in++
	if l.state.IsEnd() {
		return Effects{}
	}
	l.state = Held
	if l.times.RenewAt != 0 {
		l.extend(t)
	}
	return l.Check(now)
}

// Leave lets a handle leave that is unlocked, or whose re-entry was refused. Unless it has left before, or the lease is
// lost, its release is to be sent, and [Life.Left] or [Life.HandOffInMemory] to follow. If it is lost, the handle stays
// among those whose contexts end with it.
func (l *Life) Leave(now schedule.Time, h *HandleState) (leaves bool, e Effects) {
	e = l.Check(now)
	switch *h {
	case In:
		l.in--
	case Entering:
		l.entering--
	case HandingOver:
		*h = Abandoned
		return false, e
	default:
		return false, e
	}
	*h = Out
	switch l.leaving++; {
	case l.state.IsEnd() || l.in > 0:
	case l.entering > 0:
		l.state = PerhapsFree
	default:
		l.state = Leaving
	}
	return true, e
}

// Left says that a release is answered or given up, or that there was none to send.
func (l *Life) Left() Effects {
	if l.leaving--; l.state == Leaving && l.leaving == 0 {
		return l.end(Released)
	}
	return Effects{}
}

// HandOffInMemory says that the next call of this process was chosen, which gets the lock although it was deleted
// meanwhile.
func (l *Life) HandOffInMemory() Effects {
	if l.state != Leaving {
		return Effects{}
	}
	return l.end(HandedOffInMemory)
}

// BeginHandover lets a handle begin to hand the lock over, until then at the latest, if no other one is in, or entering.
func (l *Life) BeginHandover(now schedule.Time, h *HandleState, until schedule.Time) (begins bool, e Effects) {
	if e = l.Check(now); *h != In || l.state != Held || l.Holds() > 1 {
		return false, e
	}
	*h, l.state, l.handoverUntil = HandingOver, BeingHandedOver, min(until, l.times.Ends)
	return true, e
}

// HandoverEndsBy says until when Redis has the lock parked.
func (l *Life) HandoverEndsBy(until schedule.Time) { l.handoverUntil = until }

// CancelHandover says that the lock was not handed over: the handle has it as before. One that was abandoned is to leave now.
func (l *Life) CancelHandover(now schedule.Time, h *HandleState) (abandoned bool) {
	abandoned = *h == Abandoned
	*h, l.handoverUntil = In, now
	if l.state == BeingHandedOver {
		l.state = Held
	}
	return abandoned
}

// HandOverByTicket says that whoever gets the lock was told. The context of the handle ends after that: an Unlock that
// sees its end finds that the handle has handed it over. Releases of inner handles that are not answered yet end the lease.
func (l *Life) HandOverByTicket(h *HandleState) Effects {
	*h = HandedOver
	if l.state != BeingHandedOver {
		return Effects{}
	}
	l.in = 0
	if l.leaving > 0 {
		l.state = Leaving
		return Effects{}
	}
	return l.end(HandedOverByTicket)
}
