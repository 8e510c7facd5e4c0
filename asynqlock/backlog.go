package asynqlock

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// minRetryInterval and maxRetryInterval bound the time between two retries of one key
	// that this process arranges.
	minRetryInterval = 10 * time.Millisecond
	maxRetryInterval = time.Second
	// immediateRetries is how many tasks of a key may come back at asynq's next check. It
	// is a few more than can wait, because asynq knows whole seconds only: otherwise a
	// key with many short tasks would lie idle between seconds.
	immediateRetries = 16
	// maxRetryDelay bounds the delay of a task, however many there are.
	maxRetryDelay = time.Minute
	// freshKeyDelay is how long a task may be put off even if the key has just become busy.
	// Otherwise a few tasks of some seconds each would be tried all the time.
	freshKeyDelay = 5 * time.Second
	// keysPerGeneration is how many keys are remembered in each of two generations.
	keysPerGeneration = 4096
)

// backlogs spread the retries of tasks whose keys are busy, where they are not parked: without an
// Inspector, and of tasks whose deadline is near. With a constant delay 10,000 tasks of a key cost
// ten times as many commands. They remember keys for as long as tasks are due because of them, and
// a bounded number: a forgotten key is one that has just become busy. They are safe for concurrent
// use.
type backlogs struct {
	seed maphash.Seed

	mu         sync.Mutex
	young, old map[uint64]*backlog // by hash: keys that collide slow each other down, no more
}

// backlog is what is known about a busy key. Its times say up to when the tasks that were put off
// have the key.
type backlog struct {
	pace           pace
	immediateUntil time.Time // those that come back at once
	pacedUntil     time.Time // the others
	crowdUntil     time.Time // the others, if they come as quickly as they may
	lastDue        time.Time // when the last of all comes back
}

func newBacklogs() *backlogs {
	return &backlogs{seed: maphash.MakeSeed(), young: map[uint64]*backlog{}}
}

// nextRetry returns when a task is due again whose key is busy.
func (b *backlogs) nextRetry(key string) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	return now.Add(b.find(maphash.String(b.seed, key), now).nextDelay(now))
}

// acquired notes that a task has got a key. Tasks that are put off cannot be called back, but
// their bookings are no reason to put off the next ones for as long.
func (b *backlogs) acquired(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	hash := maphash.String(b.seed, key)
	for _, generation := range []map[uint64]*backlog{b.young, b.old} {
		if k := generation[hash]; k != nil {
			k.acquired(time.Now())
		}
	}
}

// find returns what is known about a key, from now on in the young generation.
func (b *backlogs) find(hash uint64, now time.Time) *backlog {
	k := b.young[hash]
	if k == nil {
		k = b.old[hash]
		delete(b.old, hash)
		if len(b.young) >= keysPerGeneration {
			b.old, b.young = b.young, map[uint64]*backlog{}
		}
		if k == nil {
			k = &backlog{pace: pace{lastAcquired: now}}
		}
		b.young[hash] = k
	}
	if now.Sub(k.lastDue) > 5*time.Second {
		// All tasks have come back, and none was refused: the key is busy anew.
		*k = backlog{pace: pace{lastAcquired: now}}
	}
	return k
}

func (b *backlog) acquired(now time.Time) {
	b.pace.acquired(now)
	if end := now.Add(immediateRetries * b.pace.interval); b.pacedUntil.After(end) {
		b.pacedUntil = end
	}
}

// nextDelay is for one more task.
func (b *backlog) nextDelay(now time.Time) time.Duration {
	busy := now.Sub(b.pace.lastAcquired)
	interval := min(max(busy/2, minRetryInterval), maxRetryInterval)
	var d time.Duration
	if until := latest(b.immediateUntil, now).Add(interval); until.Sub(now) <= immediateRetries*interval {
		b.immediateUntil = until
	} else {
		// The key may become free while these tasks sleep. So they sleep for a small
		// part of the time that they have waited, or for what the tasks before them need.
		// Only a crowd sleeps longer.
		enough := min(max(busy/8, freshKeyDelay, immediateRetries*b.pace.interval), maxRetryDelay)
		b.pacedUntil = latest(b.pacedUntil, now).Add(interval)
		if d = b.pacedUntil.Sub(now); d > enough {
			b.pacedUntil = now.Add(enough)
			d = spread(enough)
		}
		b.crowdUntil = latest(b.crowdUntil, now).Add(minRetryInterval)
		d = max(d, b.crowdUntil.Sub(now))
	}
	// A task comes too late by an eighth of its wait at most.
	d = max(d, spread(busy/8))
	if d > maxRetryDelay {
		b.crowdUntil = now.Add(maxRetryDelay)
		d = spread(maxRetryDelay)
	}
	b.lastDue = latest(b.lastDue, now.Add(d))
	return d
}

// spread returns a duration at random between half of d and d.
func spread(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
