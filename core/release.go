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

// Unlock ends the hold; the last one of nested holds frees the lock and wakes who waits for it,
// anywhere. The handle's Context is done before anybody else can have the lock.
//
// It works on a context that is cancelled, or nil, and ignores its deadline, but blocks for [Timeout]
// at most. When Redis has not confirmed by then it returns [ErrUnavailable] and goes on in the
// background, until the lease ends. It returns [ErrNotHeld] when called again, [ErrLost] when the lock
// was lost before, and [ErrClosed] when the Locker took it away. It may hide a loss since the last
// renewal: when the first answer is lost on its way, so that the release is repeated, and when the
// lock is handed off to another call of this process, which learns of it with its next renewal.
func (k *Lock) Unlock(ctx context.Context) error { return k.finish(ctx, store.Done, false) }

// Abort is Unlock after a failure: it opens no [KeepFor] window, so the work can be tried again.
func (k *Lock) Abort(ctx context.Context) error { return k.finish(ctx, store.Failed, false) }

// finish ends the hold. With later, Redis may be asked in the background: then the error is what is
// known before.
func (k *Lock) finish(ctx context.Context, work store.Work, later bool) error {
	if k == nil {
		return notHeldError("")
	}
	s := k.lease
	last, err := s.leave(k)
	if err == ErrHandedOver {
		return nil
	}
	k.under.end(nil)
	if err != nil || last && s.handOffInMemory(k) {
		return err
	}
	r := releasing{lease: s, lock: k, last: last}
	if later && r.canEndLater() {
		r.releaseLater(work)
		return nil
	}
	return r.releaseAndRetire(lasting(ctx), work)
}

func (k *Lock) reportFailure(err error) { k.lease.engine.reportRelease(k.ctx, err, k.Key()) }

// lasting is for a release, which goes on when its caller gives up. The values stay, for the
// client's hooks.
func lasting(ctx context.Context) context.Context {
	switch {
	case ctx == nil:
		return context.Background()
	case ctx.Done() == nil:
		return ctx
	default:
		return context.WithoutCancel(ctx)
	}
}

// releasing is the release of a handle that has left, and is not handed off.
type releasing struct {
	lease    *lease
	lock     *Lock
	last     bool          // no other handle has the lease
	request  store.Release // from start on
	enqueues *entry        // of calls of this process that go on waiting; nil: none
	over     time.Time     // when it goes on in the background
}

// leave takes the handle of a lock out: last says that there is no other. Then the renewal stops. retire must follow, unless the
// lock is handed off, or leave fails: the handle has left before, is lost, or, with ErrHandedOver itself, handed over.
func (s *lease) leave(k *Lock) (last bool, err error) {
	s.mu.Lock()
	leaves, e := s.life.Leave(schedule.Now(), &k.state)
	passed := k.state == life.Passed
	if leaves && !s.life.State().IsLost() {
		s.takeOut(&k.handle)
		last = s.handles == nil
	}
	switch loss := s.unlockAfter(e); {
	case passed:
		return last, ErrHandedOver
	case !leaves:
		return last, notHeldError(s.name.Key())
	default:
		return last, loss
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
	s.mu.Lock()
	r.request = s.releaseOf(&r.lock.handle, max(s.work, work))
	s.mu.Unlock()
	r.over = time.Now().Add(s.engine.timeout)
	r.request.Until = r.over.Add(s.Lease)
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

// unawaited is a release that nobody waits for. Until it is on its way the next call of this process can have the lock.
type unawaited struct {
	releasing
	sent *store.Unawaited
	late *time.Timer // when it counts as not answered
}

// releaseLater releases a hold, and does not wait.
func (r releasing) releaseLater(work store.Work) {
	u, e := &unawaited{releasing: r}, r.lease.engine
	u.start(work)
	u.sent = e.store.Unawaited(u.request, u)
	e.givingUp.begin(u.lease.name.Lock(), u.over, u)
	if e.store.MinorityMayKeep() { // the members of a quorum vote, for which somebody has to wait
		e.requests.Start(func() { u.end(e.store.Release(context.Background(), u.request, e.timeout)) })
		return
	}
	u.late = time.AfterFunc(e.timeout, func() { e.requests.Start(func() { u.end(store.Released{}, conn.ErrNoAnswer) }) })
	u.sent.Begin()
}

// Answered takes the answer. Without one the release is sent again, by a goroutine of its own.
func (u *unawaited) Answered(released store.Released, err error) {
	switch {
	case !u.late.Stop():
	case err == nil:
		u.end(released, nil)
	default:
		u.lease.engine.requests.Start(func() { u.end(released, err) })
	}
}

func (u *unawaited) end(released store.Released, err error) {
	signal, err := u.confirm(context.Background(), released, err)
	u.lease.engine.givingUp.end(u.lease.name.Lock())
	u.lease.retire(signal, err)
	u.lock.reportFailure(err)
}

// canEndLater says that nobody depends on when the release of a handle is done: the owner has no
// other hold, which might end first and leave the lock to this one.
func (r *releasing) canEndLater() bool { return r.last && !r.lease.ownerKnown }

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
