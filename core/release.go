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
	r := k.releaseAs(failed, l.process(s.name()))
	r.Until = end.Add(s.length)
	again := false // it may have been done already
	for {
		released, err := l.store.Release(ctx, r, time.Until(end))
		switch {
		case err == nil && !released.Found && !again:
			return true, s.vanished()
		case err == nil:
			return l.isFree(s.name(), released, r.Process), nil
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
func (k *Lock) releaseAs(failed bool, p store.Process) store.Release {
	s := k.lease
	s.mu.Lock()
	sole := !s.entered && !s.fixed && s.keepFor == 0 && s.owner == store.OwnerOf(k.hold)
	s.mu.Unlock()
	return store.Release{
		Name: s.name(), Owner: s.owner, Hold: k.hold, Failed: failed, Process: p, Doubled: k.copies.Doubled(),
		Token: s.redisToken, Last: s.token, Lease: s.length, Sole: sole,
	}
}

// giveBack releases holds in the background.
func (s *lease) giveBack(handles []*Lock) {
	for _, k := range handles {
		r := k.releaseAs(true, store.Away)
		r.Until = time.Now().Add(s.length)
		s.locker.store.ReleaseLater(r)
	}
}

// process says whether calls of this process still wait for a lock that is about to be
// released. They get a position in the queue of processes if they would be notified.
func (l *Locker) process(n store.Name) store.Process {
	switch {
	case l.store.IsQuorum() || !l.listener.Listens() || !l.listener.Hears(n.Channel()):
		return store.Away
	case l.queues.Waits(n.Lock()):
		return store.Waiting
	default:
		return store.Listening
	}
}

// isFree takes the answer to a release. It is false when the calls of this process are to
// wait until it is theirs again.
func (l *Locker) isFree(n store.Name, r store.Released, p store.Process) bool {
	if r.Next == store.Nobody && (r.Heard > 1 || r.Heard == 1 && p == store.Away) && !l.store.IsQuorum() {
		l.queues.Yield(n.Lock())
	}
	return r.Next != store.AnotherProcess || p != store.Waiting
}

// reserved has the calls that wait for a lock take it, which is reserved for this process,
// after letting others go first for so long.
func (l *Locker) reserved(lock string, yield time.Duration) {
	if !l.queues.Granted(lock, yield) {
		l.store.LeaveQueue(store.NameOf(l.prefix, lock))
	}
}
