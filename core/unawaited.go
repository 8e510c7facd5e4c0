package core

import (
	"context"
	"slices"

	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
)

// unawaited is a release that nobody waits for. Until it is on its way the next call of this process can have the lock.
type unawaited struct {
	releasing
	sent store.Unawaited
}

// releaseLater releases holds, and does not wait. They are on the heap, which others need not be.
func (e *engine) releaseLater(work store.Work, all ...releasing) {
	us, sent := make([]unawaited, len(all)), make([]*store.Unawaited, len(all))
	for i := range us {
		u := &us[i]
		u.releasing = all[i]
		u.start(work)
		u.sent.Release, u.sent.Answered, sent[i] = &u.request, u.answered, &u.sent
		e.givingUp.begin(u.lease.name.Lock(), u.over, u)
	}
	e.store.BeginRelease(e.timeout, sent...)
}

// answered takes the answer. One that failed is sent again by a goroutine of its own.
func (u *unawaited) answered(released store.Released, err error) {
	e := u.lease.engine
	end := func() {
		signal, err := u.confirm(context.Background(), released, err)
		e.givingUp.end(u.lease.name.Lock())
		u.lease.retire(signal, err)
		u.lock.reportFailure(err)
	}
	if err != nil {
		e.requests.Start(end)
	} else {
		end()
	}
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
	if u.enqueues != nil || slices.ContainsFunc(e.queues.Find(lock), isOther) || !u.lease.mayHandOffTo(&c.want) || !u.sent.Withdraw() {
		return nil, nil
	}
	e.givingUp.end(lock)
	return c.lockGivenInMemory(u.lease.grantInMemory(u.lock))
}
