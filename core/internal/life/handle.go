package life

import "github.com/latchkey-go/latchkey/core/internal/schedule"

// Handle is the state of one handle of a lease, which the loss of the lease does not change.
type Handle uint8

const (
	Out       Handle = iota // it has not entered yet, or has left
	Entering                // Redis has not confirmed its re-entry: it has nothing yet
	In                      // it has the lock
	Passing                 // it is handing the lock over, which nobody can use meanwhile
	Abandoned               // it was unlocked while it was passing
	Passed                  // it has handed the lock over
)

// Join lets a handle begin to re-enter, or with nil one that only Redis counts, while the lease is [Held].
func (l *Life) Join(now schedule.Time, h *Handle) (joins bool, e Effects) {
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
func (l *Life) Entered(now schedule.Time, h *Handle, t Times) Effects {
	*h = In
	l.entering--
	l.in++
	if l.state.IsEnd() {
		return Effects{}
	}
	l.state = Held
	if l.renewAt != 0 {
		l.extend(t)
	}
	return l.look(l.Check(now))
}

// Leave lets a handle leave that is unlocked, or whose re-entry was refused. Unless it has left before, or the lease is
// lost, its release is to be sent, and [Life.Left] or [Life.HandOff] to follow. The effects are to be followed before it
// is taken out of a list of handles: its context ends with the lease.
func (l *Life) Leave(now schedule.Time, h *Handle) (leaves bool, e Effects) {
	e = l.Check(now)
	switch *h {
	case In:
		l.in--
	case Entering:
		l.entering--
	case Passing:
		*h = Abandoned
		return false, e
	default:
		return false, e
	}
	*h = Out
	switch l.leaving++; {
	case l.state.IsEnd() || l.in > 0:
		return true, e
	case l.entering > 0:
		l.state = PerhapsFree
	default:
		l.state = Leaving
	}
	return true, Effects{Next: Never}
}

// Left says that a release is answered or given up, or that there was none to send.
func (l *Life) Left() Effects {
	if l.leaving--; l.state == Leaving && l.leaving == 0 {
		return l.end(Released)
	}
	return Effects{}
}

// HandOff says that the next call of this process was chosen, which gets the lock although it was deleted meanwhile.
func (l *Life) HandOff() Effects {
	if l.state != Leaving {
		return Effects{}
	}
	return l.end(HandedOff)
}

// Park lets a handle begin to hand the lock over, until then at the latest, if no other one is in, or entering.
func (l *Life) Park(now schedule.Time, h *Handle, until schedule.Time) (parks bool, e Effects) {
	if e = l.Check(now); *h != In || l.state != Held || l.Holds() > 1 {
		return false, e
	}
	*h, l.state = Passing, Parked
	return true, l.ParkUntil(min(until, l.ends))
}

// ParkUntil says that Redis has parked the lock for so long.
func (l *Life) ParkUntil(until schedule.Time) Effects {
	l.parkedUntil = until
	return l.look(Effects{})
}

// Unpark says that the lock was not handed over: the handle has it as before. One that was abandoned is to leave now.
func (l *Life) Unpark(now schedule.Time, h *Handle) (abandoned bool, e Effects) {
	abandoned = *h == Abandoned
	*h, l.parkedUntil = In, now
	if l.state == Parked {
		l.state = Held
	}
	return abandoned, l.look(Effects{})
}

// HandOver says that whoever gets the lock was told. The context of the handle ends after that: an Unlock that sees its
// end finds the handle passed. Releases of inner handles that are not answered yet end the lease.
func (l *Life) HandOver(h *Handle) Effects {
	*h = Passed
	if l.state != Parked {
		return Effects{}
	}
	l.in = 0
	if l.leaving > 0 {
		l.state = Leaving
		return Effects{Next: Never}
	}
	return l.end(HandedOver)
}
