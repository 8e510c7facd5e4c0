package core

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// release sends the release of a hold until it is confirmed, or Timeout is over. free is
// false when the queue of the lock is next, in which the calls of this process have a place.
func (k *Lock) release(ctx context.Context, last, failed bool) (free bool, err error) {
	e := k.ending(last, failed)
	released, err := k.lease.locker.store.Release(ctx, e.request, time.Until(e.over))
	return e.follow(ctx, released, err)
}

// ending is the release of a hold.
type ending struct {
	lock    *Lock
	request store.Release
	waits   *position // by which calls of this process go on waiting
	over    time.Time // when it goes on in the background
}

func (k *Lock) ending(last, failed bool) ending {
	l := k.lease.locker
	e := ending{lock: k, request: k.releaseAs(failed), over: time.Now().Add(l.timeout)}
	e.request.Until = e.over.Add(k.lease.length)
	if last && k.lease.form == store.Exclusive && e.request.Answer == nil {
		e.waits = l.waits(k.lease.name)
	}
	if e.waits != nil {
		e.request.Waits = e.waits.Place
	}
	return e
}

// follow takes the answer, and sends the release again while there is none.
func (e *ending) follow(ctx context.Context, released store.Released, err error) (free bool, failure error) {
	s := e.lock.lease
	l := s.locker
	again := false // it may have been done already
	for ; err != nil; released, err = l.store.Release(ctx, e.request, time.Until(e.over)) {
		migrating := conn.IsMigrating(err)
		if conn.OutcomeOf(err) == conn.Refused && !migrating || time.Until(e.over) <= compensateDelay || conn.Pause(ctx, compensateDelay) != nil {
			l.store.ReleaseLater(e.request)
			return true, unavailable("releasing", e.lock.Key(), err)
		}
		again = again || conn.OutcomeOf(err) == conn.Unknown
	}
	if e.waits != nil {
		e.waits.arrived(released.Clock)
	}
	if !released.Found && !again {
		return true, s.vanished()
	}
	if released.Heard > 0 && l.queues.Watch(s.name.Lock()) {
		l.listener.Watch(s.name.Lock(), s.name.Channel())
	}
	// Of several that leave, the last to arrive would carry a position that has the lock by now. So
	// the head of such a queue has asked, or is about to.
	told := e.waits != nil || s.form != store.Exclusive && l.hears(s.name)
	return !released.Passed || !told, nil
}

// canEndLater says that nobody depends on when the release of a handle is done: the owner has no
// other hold, which might end first and leave the lock to this one.
func (s *lease) canEndLater(last bool) bool { return last && !s.shared.Load() }

// releaseAs is the request that ends the hold.
func (k *Lock) releaseAs(failed bool) store.Release {
	s := k.lease
	s.mu.Lock()
	sole := s.form == store.Exclusive && !s.entered && !s.fixed && s.keepFor == 0 && s.owner == k.hold
	lease := s.length
	if s.times.unrenewed {
		lease = 0
	}
	var answer *store.Answer
	if s.attempt != nil && !failed {
		answer = s.attempt.answer
	}
	s.mu.Unlock()
	return store.Release{
		Answer: answer,
		Name:   s.name, Owner: s.owner, Hold: k.hold, Form: s.form, Failed: failed, MayArrive: k.resends.MayArriveTwice(),
		Token: s.redisToken, Last: s.token, Lease: lease, Sole: sole,
	}
}

// giveBack releases holds in the background.
func (s *lease) giveBack(handles []*Lock) {
	for _, k := range handles {
		r := k.releaseAs(s.attempt == nil) // of an attempt nobody knows what it has done
		r.Until = time.Now().Add(s.length)
		s.locker.store.ReleaseLater(r)
	}
}

// waits returns the position by which calls of this process go on waiting for a lock that
// is about to be released; nil when none do, or no message would tell them.
func (l *Locker) waits(n store.Name) *position {
	if !l.hears(n) {
		return nil
	}
	return l.queues.Waits(n.Lock(), (*call).carry)
}

// hears says that messages tell this process when a lock is granted to it.
func (l *Locker) hears(n store.Name) bool {
	return l.store.Can.Grant && l.listener.Listens() && !l.isDeaf(schedule.Now()) && l.listener.Hears(n.Channel())
}
