package core

import (
	"slices"
	"time"
)

const (
	// tombstoneLife is for how long an acquisition that was given up is refused. TCP may
	// bring it later still: then it takes the lock for nobody, until its lease ends. But
	// where calls are cancelled by the thousand, each leaves a key for so long.
	tombstoneLife = time.Minute

	settleTimeout  = 500 * time.Millisecond
	settleDelay    = 20 * time.Millisecond
	settleDelayMax = 500 * time.Millisecond
)

// settlement repeats a release until Redis has confirmed it, or until there is
// nothing left to release.
type settlement struct {
	appointment
	locker *Locker
	node   *node
	call   *call
	until  moment
	delay  time.Duration
}

// settle sends a release in the background until Redis confirms it. Before
// Close waits, or it is too late and the lease ends it.
func (l *Locker) settle(n *node, c *call, until time.Time) {
	l.mu.Lock()
	l.unsettled++
	l.mu.Unlock()
	l.agenda.set(&settlement{locker: l, node: n, call: c, until: momentOf(until), delay: settleDelay}, thisMoment())
}

// settleAll settles a release with every Redis.
func (l *Locker) settleAll(c *call, until time.Time) {
	for _, n := range l.backend.members() {
		l.settle(n, c, until)
	}
}

// withdraw settles an acquisition whose outcome nobody awaits any more: what it
// took is released, and should it arrive later, it is refused.
func (l *Locker) withdraw(from []*node, n names, owner, hold string, lease time.Duration) {
	c := l.withdrawCall(n, owner, hold)
	for _, node := range from {
		l.settle(node, c, time.Now().Add(lease+tombstoneLife))
	}
}

func (s *settlement) due(now moment) {
	if now > s.until {
		s.locker.report.warn("a release was never confirmed; the lock ended with its lease", "lock", s.call.lock)
		s.end()
		return
	}
	s.node.outbox.add(&delivery{
		call:    s.call,
		timeout: min(settleTimeout, s.locker.timeout),
		to:      s,
	})
}

func (s *settlement) receive(_ []any, err error, _ time.Time) {
	switch {
	case err == nil:
		s.end()
		s.locker.lines.signal(s.call.lock)
		return
	case isClosed(err):
		s.locker.report.warn("a release was never confirmed, for the Redis client is closed; the lock ends with its lease", "lock", s.call.lock)
		s.end()
		return
	}
	s.locker.report.warn("a release failed and is repeated", "lock", s.call.lock, "error", err)
	delay := s.delay
	s.delay = min(2*s.delay, settleDelayMax)
	s.locker.agenda.set(s, thisMoment().add(delay))
}

func (s *settlement) end() {
	l := s.locker
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsettled--
	if l.unsettled == 0 && l.settled != nil {
		close(l.settled)
		l.settled = nil
	}
}

// releaseCall ends one hold that was surely taken. failed, of the outermost,
// drops the dedup window.
func (l *Locker) releaseCall(n names, owner, hold string, failed bool, p presence) *call {
	return releaseScript.call(2, n.lock, n.line(), l.publish, l.self, l.hears, channels, owner, hold, flag(failed), noTime, p)
}

// releaseOf is the release of a lock. If a copy of its acquisition may still arrive, it
// leaves a tombstone, or that copy would take the lock for nobody.
func (l *Locker) releaseOf(k *Lock, failed bool, p presence) *call {
	s := k.lease
	n := s.names()
	if !k.doubled() {
		return l.releaseCall(n, s.owner, k.hold, failed, p)
	}
	return releaseScript.call(3, n.lock, n.line(), n.tombstone(k.hold), l.publish, l.self, l.hears, channels, s.owner, k.hold, flag(failed), voidKept, p)
}

// lateRelease is a release that is repeated in the background. The lock must not last
// longer for it: who holds it otherwise has perhaps ended as well.
func lateRelease(c *call) *call {
	if c.n > 2 {
		return c // one with a tombstone never does that
	}
	late := *c
	late.words = slices.Clone(c.words)
	late.args()[3] = isLate
	return &late
}

// withdrawCall ends a hold that may never have been taken, and leaves a tombstone.
func (l *Locker) withdrawCall(n names, owner, hold string) *call {
	return releaseScript.call(3, n.lock, n.line(), n.tombstone(hold), l.publish, l.self, l.hears, channels, owner, hold, yes, voidKept, away)
}

// leaveCall gives up the place of this process in the line.
func (l *Locker) leaveCall(n names) *call {
	return releaseScript.call(2, n.lock, n.line(), l.publish, l.self, l.hears, channels, "", "", no, noTime, away)
}
