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
	g := grant{acquisition: s.acquisition, Times: s.life.Times(), token: s.token + 1, hold: h.id, resends: h.resends}
	_ = s.follow(s.life.HandOff())
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
	return s.Ordinary() && s.life.MayBeHandedOff(now) && !s.shared.Load() && !s.ahead && kept < handOffFor &&
		s.token-s.redisToken < kept.Microseconds() && !s.engine.isClosing()
}

// suits says that a call wants just such a lock, and can have it.
func (s *lease) suits(w *want, _ *entry) bool {
	return s.engine.mayHandOff(w, s.Form) && w.settings.Lease == s.Lease && s.canBeHandedOff()
}

// releasing is the release of a handle that has left, and is not handed off.
type releasing struct {
	lease   *lease
	handle  *handle
	last    bool // no other handle has the lease
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
	if s.life.IsGranted() {
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

// releasing is the release of a handle that leaves. s.mu is held.
func (s *lease) releasing(h *handle) releasing {
	return releasing{lease: s, handle: h, request: s.releaseOf(h, s.work)}
}

// start is called before the release is sent, which is confirmed, or goes on in the background, within Timeout.
func (r *releasing) start(work store.Work) {
	s := r.lease
	r.over = time.Now().Add(s.engine.timeout)
	r.request.Until = r.over.Add(s.Lease)
	if r.request.Work = max(r.request.Work, work); r.request.Work != store.Done {
		r.request.Answer = nil
	}
	if r.last && s.Form.Alone() && r.request.Answer == nil {
		r.carries = s.engine.carriedBy(s.name)
	}
	if r.carries != nil {
		r.request.Waits = r.carries.Place
	}
}

// run releases the hold. It is sent until it is confirmed, or Timeout is over, and goes on in the background then.
func (r *releasing) run(ctx context.Context, work store.Work) error {
	r.start(work)
	free, err := r.send(ctx)
	r.lease.retire(free, err)
	return err
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
		return true, s.notFoundByRelease()
	}
	if released.Heard > 0 && e.queues.Watch(s.name.Lock()) {
		e.listener.Watch(s.name.Lock(), s.name.Channel())
	}
	// Of several that leave, the last to arrive would carry an entry that has the lock by now. So
	// the head of such a queue has asked, or is about to.
	notified := r.carries != nil || !s.Form.Alone() && e.hears(s.name)
	return !released.Passed || !notified, nil
}

// canEndLater says that nobody depends on when the release of a handle is done: the owner has no
// other hold, which might end first and leave the lock to this one.
func (r *releasing) canEndLater() bool { return r.last && !r.lease.shared.Load() }

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
