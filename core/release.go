package core

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// releasing is the release of a handle that has left, and is not handed off.
type releasing struct {
	lease    *lease
	handle   *handle
	last     bool // no other handle has the lease
	request  store.Release
	enqueues *entry    // of calls of this process that go on waiting; nil: none
	over     time.Time // when it goes on in the background
}

// leave takes a handle out, and returns its release. With the last one the renewal stops. retire must follow, unless the
// lock is handed off, or leave fails: the handle has left before, is lost, or, with ErrHandedOver itself, handed over.
func (s *lease) leave(h *handle) (r releasing, err error) {
	s.mu.Lock()
	leaves, e := s.life.Leave(schedule.Now(), &h.state)
	passed := h.state == life.Passed
	if leaves && !s.life.State().IsLost() {
		s.takeOut(h)
		r = releasing{lease: s, handle: h, request: s.releaseOf(h, s.work), last: s.handles == nil}
	}
	switch loss := s.unlockAfter(e); {
	case passed:
		return r, ErrHandedOver
	case !leaves:
		return r, notHeldError(s.name.Key())
	default:
		return r, loss
	}
}

// retire ends what leave has begun; err is that of the release. The last one ends the lease. Waiting
// calls are signalled if the lock is free.
func (s *lease) retire(signal signalling, err error) {
	s.mu.Lock()
	e, state := s.life.Left(), s.life.State()
	left := !state.HasHandles() && !state.IsLost()
	if left && err != nil && s.observed != nil {
		s.observed.unconfirmed = err
	}
	if _ = s.unlockAfter(e); left && signal == signalQueue {
		s.engine.queues.Signal(s.name.Lock(), 0)
	}
}

// start is called before the release is sent, which is confirmed, or goes on in the background, within Timeout.
func (r *releasing) start(work store.Work) {
	s := r.lease
	r.over = time.Now().Add(s.engine.timeout)
	r.request.Until = r.over.Add(s.Lease)
	r.request.MayArrive = r.request.MayArrive || r.handle.resends.MayArriveTwice() // as was found out since it has left
	if r.request.Work = max(r.request.Work, work); r.request.Work != store.Done {
		r.request.Answer = nil
	}
	if r.last && s.Form.Alone() && r.request.Answer == nil {
		r.enqueues = s.engine.entryToEnqueue(s.name)
	}
	if r.enqueues != nil {
		r.request.Waits = r.enqueues.Place
	}
}

// releaseAndRetire releases the hold. It is sent until it is confirmed, or Timeout is over, and goes on in the background then.
func (r *releasing) releaseAndRetire(ctx context.Context, work store.Work) error {
	signal, err := r.send(ctx, work)
	r.lease.retire(signal, err)
	return err
}

func (r *releasing) send(ctx context.Context, work store.Work) (signalling, error) {
	e := r.lease.engine
	r.start(work)
	released, err := e.store.Release(ctx, r.request, e.timeout)
	return r.confirm(ctx, released, err)
}

// signalling says whether calls of this process that wait for a lock are to ask for it, when a hold of it has ended.
type signalling bool

const (
	signalQueue  signalling = true  // the lock may be free
	awaitMessage signalling = false // Redis has granted it to the first in its queue; if that is here, a message says so
)

// confirm takes the answer to the release, and sends it again while there is none.
func (r *releasing) confirm(ctx context.Context, released store.Released, err error) (signalling, error) {
	s, e := r.lease, r.lease.engine
	mayBeDone := false // by a copy that was not answered
	for ; err != nil; released, err = e.store.Release(ctx, r.request, time.Until(r.over)) {
		isRefused := conn.OutcomeOf(err) == conn.Refused && !conn.Passes(err) // for good
		if isRefused || time.Until(r.over) <= compensateDelay || conn.Pause(ctx, compensateDelay) != nil {
			e.store.ReleaseLater(r.request)
			return signalQueue, unavailableError("releasing", s.name.Key(), err)
		}
		mayBeDone = mayBeDone || conn.OutcomeOf(err) == conn.Unknown
	}
	if r.enqueues != nil {
		r.enqueues.releaseAnswered(released.Clock)
	}
	if !released.Found && !mayBeDone {
		s.mu.Lock()
		loss := s.unlockAfter(s.life.HoldNotFound(schedule.Now()))
		return signalQueue, cmp.Or(loss, s.loss(life.Deleted)) // it may have been handed off in memory
	}
	if released.Heard > 0 && e.queues.Watch(s.name.Lock()) {
		e.listener.Watch(s.name.Lock(), s.name.Channel())
	}
	// Where several hold the lock no release enqueues an entry: the last to arrive would enqueue one that has the lock by
	// now. The head of such a queue has asked, or is about to.
	if released.Passed && (r.enqueues != nil || !s.Form.Alone() && e.isNotified(s.name)) {
		return awaitMessage, nil
	}
	return signalQueue, nil
}

// canEndLater says that nobody depends on when the release of a handle is done: the owner has no
// other hold, which might end first and leave the lock to this one.
func (r *releasing) canEndLater() bool { return r.last && !r.lease.ownerKnown.Load() }

// reportRelease logs that a release has failed of which nobody else hears. The function that it was for may have unlocked
// by itself.
func (e *engine) reportRelease(ctx context.Context, err error, keys ...string) {
	if err == nil || errors.Is(err, ErrNotHeld) {
		return
	}
	for _, key := range keys {
		e.report.warn(ctx, "a release failed after the work was done", "key", key, "error", err)
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
		c.engine.report.warn(c.Context, "giving back a lock was never confirmed; if it was taken it ended with its lease", "key", c.Name.Key())
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
		e.report.warn(c.Context, "giving back a lock was never confirmed, for the Redis client is closed; "+
			"if it was taken it ends with its lease", "key", c.Name.Key())
		c.over()
	default:
		e.report.warn(c.Context, "giving back a lock failed and is repeated", "key", c.Name.Key(), "error", err)
		c.Context = context.Background() // an outage lasts, and what has failed in it is not to keep its requests
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
