package life

import "github.com/latchkey-go/latchkey/core/internal/schedule"

// These events come with time, from Redis, and from Close. None changes a lease that has ended.

// New is the life of a lease with its first handle.
func New(first *Handle, t Times, overdueAt schedule.Time) Life {
	*first = In
	return Life{state: Held, ends: t.Ends, renewAt: t.RenewAt, granted: t.Granted, overdueAt: overdueAt, in: 1}
}

// Begin says that the lease is registered, and may be closed by now.
func (l *Life) Begin() Effects { return l.look(Effects{}) }

// Check asks whether the lease is lost by now, which nobody may have noticed.
func (l *Life) Check(now schedule.Time) Effects {
	switch {
	case !l.state.IsHeld() || now < l.StopAt():
		return Effects{}
	case l.state == Parked:
		return l.end(ParkedTooLong)
	case l.renewAt == 0:
		return l.end(FixedOver)
	case l.overdue:
		return l.end(HeldTooLong)
	default:
		return l.end(Expired)
	}
}

// Due says that the time of [Effects.Next] has come.
func (l *Life) Due(now schedule.Time) Effects {
	e := l.Check(now)
	if l.state.IsHeld() {
		e.Overdue = l.becomesOverdue() && now >= l.overdueAt
		l.overdue = l.overdue || e.Overdue
		e.Renew = l.isRenewable() && now >= l.renewAt
		l.renewing = l.renewing || e.Renew
	}
	return l.look(e)
}

// RenewalAnswered says that a renewal is not under way any more. What came of it is an event of its own.
func (l *Life) RenewalAnswered() { l.renewing = false }

// Renewed says that Redis has started the lease anew, for good.
func (l *Life) Renewed(t Times) Effects {
	l.granted = false
	if l.state.IsHeld() {
		l.extend(t)
	}
	return l.look(Effects{})
}

// NotRenewed says that nobody knows whether Redis has renewed it: the renewal is repeated.
func (l *Life) NotRenewed(again schedule.Time) Effects {
	if l.state.IsHeld() {
		l.extend(Times{RenewAt: again}) // it ends as before
	}
	return l.look(Effects{})
}

// NotFound says that Redis was asked, and does not know it. Where nobody relies on it, it may have been released since.
func (l *Life) NotFound(now schedule.Time) Effects {
	if !l.state.IsHeld() {
		return Effects{}
	}
	e := l.NotFoundByRelease(now)
	e.Gone = true
	return e
}

// NotFoundByRelease says that Redis did not know it, or the hold of a handle that has left, when its release arrived.
func (l *Life) NotFoundByRelease(now schedule.Time) Effects {
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
	return Effects{Ended: as, Next: Never}
}

// extend starts the lease anew. No answer shortens it, and none makes a fixed one renewable.
func (l *Life) extend(t Times) {
	l.ends = max(l.ends, t.Ends)
	if l.renewAt != 0 {
		l.renewAt = t.RenewAt
	}
}

// look has [Life.Due] called when something happens next to a lease that is held.
func (l *Life) look(e Effects) Effects {
	if !l.state.IsHeld() {
		return e
	}
	e.Next = l.StopAt()
	if l.becomesOverdue() {
		e.Next = min(e.Next, l.overdueAt)
	}
	if l.isRenewable() {
		e.Next = min(e.Next, l.renewAt)
	}
	return e
}

func (l *Life) becomesOverdue() bool { return l.overdueAt != 0 && !l.overdue }

// isRenewable says that a renewal can be sent. What was granted gets its lease, at least.
func (l *Life) isRenewable() bool {
	return l.renewAt != 0 && l.state != Parked && !l.renewing && (!l.overdue || l.granted)
}
