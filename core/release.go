package core

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// handOffFor is how long a process may hand the lock off from call to call before others have
// their chance.
const handOffFor = 10 * time.Millisecond

// handOff gives the lock to the call of this process that waits first, in memory: the process keeps its
// hold in Redis. That is lock cohorting (Dice, Marathe and Shavit, PPoPP 2012). h was the last handle:
// of several that leave at once, one is. It is false when the lock has to be released.
func (s *lease) handOff(h *handle) bool {
	w := s.engine.queues.Choose(s.name.Lock(), s.suits)
	if w == nil {
		return false
	}
	s.mu.Lock()
	g := grant{acquisition: s.acquisition, times: s.times, token: s.token + 1, hold: h.id, resends: h.resends}
	s.mu.Unlock()
	s.endReleased()
	w.HandOff(g)
	return true
}

// canBeHandedOff says that Redis need not know of the next holder: nothing but its token differs. Tokens
// stay below what the clock of Redis would give, should the lock end without its release; where they
// are ahead of it, nothing is handed off.
func (s *lease) canBeHandedOff() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := schedule.Now()
	kept := now.Sub(s.heldSince)
	return s.Ordinary() && s.handles == nil && s.err == nil && now < s.times.deadline &&
		!s.shared.Load() && !s.ahead && !s.overdue && kept < handOffFor && s.token-s.redisToken < kept.Microseconds() &&
		s.engine.store.Can.PassOn && !s.engine.isClosing()
}

// suits says that a call wants just such a lock, and can have it.
func (s *lease) suits(w *want, _ *entry) bool {
	return w.isOrdinaryIn(s.Form) && w.settings.Lease == s.Lease && s.canBeHandedOff()
}

// release ends the hold of a handle that has left, and was not handed off. It is sent until it is
// confirmed, or Timeout is over, and goes on in the background then.
func (s *lease) release(ctx context.Context, h *handle, last bool, work store.Work) error {
	r := s.releasing(h, last, work)
	free, err := r.send(ctx)
	s.retire(free, err)
	return err
}

// releasing is a release that is under way.
type releasing struct {
	lease   *lease
	request store.Release
	carries *entry    // of calls of this process that go on waiting
	over    time.Time // when it goes on in the background
}

// releaseOf is the release of a hold. s.mu is held.
func (s *lease) releaseOf(h *handle, work store.Work) store.Release {
	r := store.Release{
		Holding: s.holding(h), Terms: s.Terms, Token: s.redisToken, Last: s.token, Entered: s.entered,
		Work: work, MayArrive: h.resends.MayArriveTwice(),
	}
	if s.unrenewed {
		r.Lease = 0
	}
	if r.Work == store.Done {
		r.Answer = s.answer
	}
	return r
}

func (s *lease) holding(h *handle) store.Holding {
	return store.Holding{Name: s.name, Owner: s.owner, Hold: h.id}
}

func (s *lease) releasing(h *handle, last bool, work store.Work) releasing {
	r := releasing{lease: s, over: time.Now().Add(s.engine.timeout)}
	s.mu.Lock()
	r.request = s.releaseOf(h, max(work, s.work))
	s.mu.Unlock()
	r.request.Until = r.over.Add(s.Lease)
	if last && s.Form.Alone() && r.request.Answer == nil {
		r.carries = s.engine.carriedBy(s.name)
	}
	if r.carries != nil {
		r.request.Waits = r.carries.Place
	}
	return r
}

func (r *releasing) send(ctx context.Context) (free bool, err error) {
	e := r.lease.engine
	released, err := e.store.Release(ctx, r.request, e.timeout)
	return r.confirm(ctx, released, err)
}

// confirm takes the answer, and sends the release again while there is none. free is false when the
// queue of the lock is next, in which the calls of this process have an entry.
func (r *releasing) confirm(ctx context.Context, released store.Released, err error) (free bool, failure error) {
	s, e := r.lease, r.lease.engine
	again := false // it may have been done already
	for ; err != nil; released, err = e.store.Release(ctx, r.request, time.Until(r.over)) {
		if conn.OutcomeOf(err) == conn.Refused && !conn.Passes(err) || time.Until(r.over) <= compensateDelay || conn.Pause(ctx, compensateDelay) != nil {
			e.store.ReleaseLater(r.request)
			return true, unavailableError("releasing", s.name.Key(), err)
		}
		again = again || conn.OutcomeOf(err) == conn.Unknown
	}
	if r.carries != nil {
		r.carries.carried(released.Clock)
	}
	if !released.Found && !again {
		return true, s.vanished(true)
	}
	if released.Heard > 0 && e.queues.Watch(s.name.Lock()) {
		e.listener.Watch(s.name.Lock(), s.name.Channel())
	}
	// Of several that leave, the last to arrive would carry an entry that has the lock by now. So
	// the head of such a queue has asked, or is about to.
	notified := r.carries != nil || !s.Form.Alone() && e.hears(s.name)
	return !released.Passed || !notified, nil
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

// canEndLater says that nobody depends on when the release of a handle is done: the owner has no
// other hold, which might end first and leave the lock to this one.
func (s *lease) canEndLater(last bool) bool { return last && !s.shared.Load() }

// reportRelease logs that a release has failed of which nobody else hears.
func (e *engine) reportRelease(err error, args ...any) {
	if err != nil && !errors.Is(err, ErrNotHeld) {
		e.report.warn("a release failed after the work was done", append(args, "error", err)...)
	}
}

const (
	compensateDelay    = 20 * time.Millisecond
	compensateDelayMax = 500 * time.Millisecond
)

// compensation repeats a release until Redis has confirmed it, or until there is
// nothing left to release.
type compensation struct {
	schedule.Entry
	*store.Compensation
	engine *engine
	delay  time.Duration // after the next failure; 0: it was not sent yet
}

// compensate sends a release in the background until Redis confirms it, for which Close waits, or until
// it is too late and the lease ends it. It is called under locks of the queues, too, and notifies nobody itself.
func (e *engine) compensate(c *store.Compensation) {
	e.unconfirmed.Begin()
	e.givingUp.begin(c.Name.Lock(), time.Now().Add(e.timeout))
	e.scheduler.Set(&compensation{Compensation: c, engine: e}, schedule.Now())
}

// Due sends it.
func (c *compensation) Due(now schedule.Time) {
	if c.delay == 0 {
		c.delay = compensateDelay
		c.notify(EventCompensating)
	}
	if now > schedule.At(c.Until) {
		c.engine.report.warn("giving back a lock was never confirmed; if it was taken it ended with its lease", "key", c.Name.Key())
		c.over()
		return
	}
	c.Send(c)
}

// Receive takes the outcome.
func (c *compensation) Receive(_ conn.Reply, err error) {
	e := c.engine
	switch {
	case err == nil:
		c.over()
	case conn.IsClosed(err):
		e.report.warn("giving back a lock was never confirmed, for the Redis client is closed; if it was taken it ends with its lease", "key", c.Name.Key())
		c.over()
	default:
		e.report.warn("giving back a lock failed and is repeated", "key", c.Name.Key(), "error", err)
		delay := c.delay
		c.delay = min(2*c.delay, compensateDelayMax)
		e.scheduler.Set(c, schedule.Now().Add(delay))
	}
}

func (c *compensation) notify(kind EventKind) {
	c.engine.notify(context.Background(), Event{Kind: kind, Key: c.Name.Key()})
}

func (c *compensation) over() {
	c.engine.givingUp.end(c.Name.Lock())
	c.notify(EventCompensated) // before Close returns
	c.engine.unconfirmed.End()
}
