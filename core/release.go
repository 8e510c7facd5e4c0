package core

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// release sends the release of a hold until it is confirmed, or Timeout is over. free is
// false when the lock goes to another process, and this one has a position behind it.
func (k *Lock) release(ctx context.Context, failed bool) (free bool, err error) {
	s := k.lease
	l := s.locker
	end := time.Now().Add(l.timeout)
	listens, waits := l.process(s.name())
	r := k.releaseAs(failed)
	r.Listens = listens
	if waits != nil {
		r.Waits = waits.member
	}
	r.Until = end.Add(s.length)
	again := false // it may have been done already
	for {
		released, err := l.store.Release(ctx, r, time.Until(end))
		switch {
		case err == nil && !released.Found && !again:
			return true, s.vanished()
		case err == nil:
			waits.heard(released.Clock)
			return l.isFree(s.name(), released, r), nil
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
	sole := !s.entered && !s.fixed && s.keepFor == 0 && s.owner == store.OwnerOf(k.hold)
	s.mu.Unlock()
	return store.Release{
		Name: s.name(), Owner: s.owner, Hold: k.hold, Failed: failed, Doubled: k.copies.Doubled(),
		Token: s.redisToken, Last: s.token, Lease: s.length, Sole: sole,
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

// process says whether this process is notified of a lock that is about to be released,
// and, if so, by what position calls go on waiting for it: nil when none do.
func (l *Locker) process(n store.Name) (listens bool, waits *position) {
	if l.store.IsQuorum() || !l.listener.Listens() || !l.listener.Hears(n.Channel()) {
		return false, nil
	}
	waits, old := l.queues.Waits(n.Lock(), (*request).waitBy)
	l.leaveQueue(n, old)
	return true, waits
}

// isFree takes the answer to a release. It is false when the calls of this process are to
// wait until it is theirs again, or for others that go first.
func (l *Locker) isFree(n store.Name, got store.Released, r store.Release) bool {
	if got.Next == store.Nobody && (got.Heard > 1 || got.Heard == 1 && !r.Listens) && !l.store.IsQuorum() {
		l.queues.Yield(n.Lock())
	}
	if got.Yield > 0 {
		l.queues.Reserved(n.Lock(), got.Yield)
		return false
	}
	return got.Next != store.AnotherProcess || r.Waits == ""
}
