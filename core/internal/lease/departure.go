package lease

import (
	"cmp"
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// How a hold ends.

// Departure is a handle that has left its lease, or whose lease is lost, while its hold is in Redis: its lock is handed off in memory by
// HandOff, or the hold is released by ReleaseCommand, and then Retire follows.
type Departure struct {
	*Handle
	IsLast bool // no other handle has the lease
}

// Outcome is what has come of the release of a hold.
type Outcome struct {
	MayBeFree bool // calls that wait are to ask; otherwise Redis has granted the lock to the first in its queue
	NotFound  bool // Redis did not know the hold
	Mode      option.ReleaseMode
	Err       error // why Redis has not confirmed it
}

// Release ends the hold: see Releaser.
func (h *Handle) Release(ctx context.Context, work store.Work, mode option.ReleaseMode) error {
	return h.lease.registry.releaser.Release(ctx, h, work, mode)
}

// Fail notes what became of the work; a worse one stays.
func (h *Handle) Fail(work store.Work) {
	s := h.lease
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work = max(s.work, work)
}

func (h *Handle) hasFailed() bool {
	s := h.lease
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.work != store.Done
}

// Window is the dedup window that a success leaves; 0: none, for its holder has said that it failed.
func (h *Handle) Window() time.Duration {
	if h.hasFailed() {
		return 0
	}
	return h.lease.Window
}

// EarnsWindow says that the work has not failed so far, and the lease is not lost.
func (h *Handle) EarnsWindow() bool { return !h.hasFailed() && h.lease.check() == nil }

// EndContext ends the context of the handle, as the Unlock does.
func (h *Handle) EndContext() { h.under.end(nil) }

// Leave takes the handle out. After the last one the renewal stops. It does not leave when it was handed over, or, as the error says, has
// left before, or is lost.
func (h *Handle) Leave() (left Departure, leaves bool, err error) {
	s := h.lease
	s.mu.Lock()
	left.Handle = h
	leaves, e := s.life.Leave(schedule.Now(), &h.state)
	isHandedOver := h.state == life.HandedOver
	if leaves && !s.life.State().IsLost() {
		s.takeOut(h)
		left.IsLast = s.handles == nil
	}
	loss := s.applyAndUnlock(e)
	switch {
	case isHandedOver:
		return left, false, nil
	case !leaves:
		return left, false, s.registry.errors.NotHeld(s.Name.Key())
	}
	return left, loss == nil, loss
}

// IsAlone says that nobody depends on when the release is done: the owner has no other hold, which might end first and leave the lock to
// this one.
func (l Departure) IsAlone() bool { return l.IsLast && !l.lease.ownerKnown }

// HandOffFor is how long a process may hand the lock off from call to call before others have their chance.
const HandOffFor = 10 * time.Millisecond

// MayBeHandedOff says that a call of this process that wants such terms may have the lock while Redis knows of the present holder only.
func (l Departure) MayBeHandedOff(to store.Terms) bool {
	s := l.lease
	s.mu.Lock()
	defer s.mu.Unlock()
	now := schedule.Now()
	// The next holder gets the owner, and may share it: nobody else may have that, in this lock or in another one.
	hasOwnerAlone := !s.ownerKnown && !s.sharesOwner
	// The next token must be below what Redis would give by its clock, should the lock end without its release.
	held := now.Sub(s.HeldSince)
	hasToken := !s.Ahead && s.Token-s.RedisToken < held.Microseconds()
	return s.life.MayBeHandedOffInMemory(now) && to == s.Terms && hasOwnerAlone && hasToken && held < HandOffFor && !s.registry.IsClosing()
}

// HandOff ends the lease, of which the handle was the last, and has give give the next call what it gets.
func (l Departure) HandOff(give func(AcquiredLock)) {
	s := l.lease
	s.mu.Lock()
	observed := s.observed
	s.observed = nil
	g := AcquiredLock{Acquisition: s.Acquisition, Times: s.life.Times(), Hold: l.hold, Resends: l.resends}
	g.Token++
	_ = s.applyAndUnlock(s.life.HandOffInMemory())
	give(g)
	if observed != nil {
		observed.Released() // by Observers that may block
	}
}

// ReleaseCommand is the release of the hold, after such work or worse.
func (l Departure) ReleaseCommand(work store.Work) store.Release {
	s := l.lease
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.releaseOf(l.Handle, max(s.work, work))
}

// Retire ends what Leave has begun, and returns the error of the outcome, or the loss. The last one ends the lease.
func (l Departure) Retire(o Outcome) error {
	s := l.lease
	if o.NotFound {
		s.mu.Lock()
		o.Err = cmp.Or(s.applyAndUnlock(s.life.HoldNotFound(schedule.Now())), s.loss(life.Deleted)) // it may have been handed off in memory
	}
	s.mu.Lock()
	e, state := s.life.Left(), s.life.State()
	hasLeft := !state.HasHandles() && !state.IsLost()
	if hasLeft && s.observed != nil {
		s.observed.Releasing(o.Mode, o.Err)
	}
	if _ = s.applyAndUnlock(e); hasLeft && o.MayBeFree {
		s.registry.releaser.MayBeFree(s.Name.Lock())
	}
	return o.Err
}

// Compensate releases in the background what may be left in Redis of the hold.
func (h *Handle) Compensate() { h.lease.compensate(h, holdRemains) }
