package core

import "time"

// Processes that wait for a lock stand in a line of their own, in Redis. A release
// tells only the first of them, which then has the lock to itself for a moment: what
// a hand-over between processes costs does not depend on how many of them wait.
//
// Calls outside the line, those of a Redisson client, hear of a lock that is free
// for all. A process that could go on for ever lets them go first so often:
const (
	restEvery = 50 * time.Millisecond
	restTime  = 3 * time.Millisecond
)

// inLine says whether this process stands in line, as far as is known. ls.mu is held.
func (ls *lines) inLine(lock string) bool {
	for _, ln := range ls.byLock[lock] {
		if ln.inLine {
			return true
		}
	}
	return false
}

// arrived notes that a call of this process has got the lock, and with it the place
// in line. ls.mu is held.
func (ls *lines) arrived(lock string) {
	for _, ln := range ls.byLock[lock] {
		ln.inLine = false
	}
}

// presence is what a release tells about the process that sends it.
type presence any

var (
	away      presence = "0"
	listening presence = "1" // it hears wake-ups
	staying   presence = "2" // and has calls that wait for the lock
)

// presence says whether calls of this process still wait for a lock that is about to
// be released. They are put in line if they would hear of their turn.
func (l *Locker) presence(n names) presence {
	if !l.queues || !l.wakeups.listening(n) {
		return away
	}
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	for _, ln := range l.lines.byLock[n.lock] {
		if ln.watched { // or it would not be for long
			ln.inLine = true
			return staying
		}
	}
	return listening
}

// released takes the answer to a release. free is false when the calls of this
// process are to wait for their turn.
func (l *Locker) released(n names, values []any, p presence) (free bool) {
	if !l.queues || len(values) < 3 {
		return true
	}
	switch number(values[2]) {
	case 0:
		if heard := number(values[3]); heard > 1 || heard == 1 && p == away {
			l.lines.rest(n.lock)
		}
	case 1:
		return p != staying
	}
	return true
}

// rest lets others go first, if that was not long ago.
func (ls *lines) rest(lock string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, ln := range ls.byLock[lock] {
		if now := time.Now(); now.Sub(ln.restUntil) >= restEvery {
			ln.restUntil = now.Add(restTime)
		}
	}
}

// resting is for how long the head has to let others go first.
func (ln *line) resting() time.Duration {
	ln.lines.mu.Lock()
	defer ln.lines.mu.Unlock()
	if ln.restUntil.IsZero() {
		return 0
	}
	return max(time.Until(ln.restUntil), 0)
}

// turn tells the calls that wait for a lock that it is reserved for them, to be
// taken after a pause.
func (l *Locker) turn(n names, pause time.Duration) {
	ls := &l.lines
	ls.mu.Lock()
	lines := ls.byLock[n.lock]
	for _, ln := range lines {
		if pause > 0 {
			ln.restUntil = time.Now().Add(pause)
		}
		ln.wake()
	}
	ls.mu.Unlock()
	if len(lines) == 0 {
		l.leaveLine(n)
	}
}

// leaveLine gives up the place of this process in the line, or its turn. It does
// not block. If it fails, others lose the time for which the turn is reserved.
func (l *Locker) leaveLine(n names) {
	l.backend.post(&delivery{
		call:    l.leaveCall(n),
		timeout: l.timeout,
	})
	l.backend.flush()
}
