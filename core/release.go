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
	s := k.lease
	l := s.locker
	end := time.Now().Add(l.timeout)
	r := k.releaseAs(failed)
	r.Until = end.Add(s.length)
	var waits *position
	if last {
		waits = l.waits(s.name)
	}
	if waits != nil {
		r.Waits = waits.Place
	}
	again := false // it may have been done already
	for {
		released, err := l.store.Release(ctx, r, time.Until(end))
		if err == nil {
			if waits != nil {
				waits.arrived(released.Clock)
			}
			if !released.Found && !again {
				return true, s.vanished()
			}
			if released.Heard > 0 && l.queues.Watch(s.name.Lock()) {
				l.listener.Watch(s.name.Lock(), s.name.Channel())
			}
			return !released.Passed || waits == nil, nil
		}
		migrating := conn.IsMigrating(err)
		if (conn.OutcomeOf(err) != conn.Refused || migrating) && time.Until(end) > compensateDelay && conn.Pause(ctx, compensateDelay) == nil {
			again = again || conn.OutcomeOf(err) == conn.Unknown
			continue
		}
		l.store.ReleaseLater(r)
		return true, unavailable("releasing", k.key, err)
	}
}

// releaseAs is the request that ends the hold.
func (k *Lock) releaseAs(failed bool) store.Release {
	s := k.lease
	s.mu.Lock()
	sole := s.form == store.Exclusive && !s.entered && !s.fixed && s.keepFor == 0 && s.owner == k.hold
	lease := s.length
	if s.times.unrenewed {
		lease = 0
	}
	s.mu.Unlock()
	return store.Release{
		Name: s.name, Owner: s.owner, Hold: k.hold, Form: s.form, Failed: failed, MayArrive: k.resends.MayArriveTwice(),
		Token: s.redisToken, Last: s.token, Lease: lease, Sole: sole,
	}
}

// giveBack releases holds in the background.
func (s *lease) giveBack(handles []*Lock) {
	for _, k := range handles {
		r := k.releaseAs(true)
		r.Until = time.Now().Add(s.length)
		s.locker.store.ReleaseLater(r)
	}
}

// waits returns the position by which calls of this process go on waiting for a lock that
// is about to be released; nil when none do, or no message would tell them.
func (l *Locker) waits(n store.Name) *position {
	if !l.store.Can.Grant || !l.listener.Listens() || l.isDeaf(schedule.Now()) || !l.listener.Hears(n.Channel()) {
		return nil
	}
	return l.queues.Waits(n.Lock(), (*call).carry)
}
