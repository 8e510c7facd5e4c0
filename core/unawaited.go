package core

import (
	"context"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
)

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

// takeOver takes the lock if this process has released it, and the release is not on its way yet, as by a hand-off in memory. It returns
// nothing where that cannot be, and where others wait for the lock here.
func (c *lockCall) takeOver() (*Lock, error) {
	e, lock := c.engine, c.name.Lock()
	found := e.givingUp.of(lock)
	if found == nil || found.last == nil {
		return nil, nil
	}
	isOther := func(head waitqueue.Head[*want, *entry]) bool { return head.Request != &c.want }
	u := found.last
	if u.enqueues != nil || slices.ContainsFunc(e.queues.Find(lock), isOther) || !u.lease.mayHandOffTo(&c.want) || !(u.sent.Withdraw() && u.late.Stop()) {
		return nil, nil
	}
	e.givingUp.end(lock)
	return c.lockGivenInMemory(u.lease.grantInMemory(u.lock))
}
