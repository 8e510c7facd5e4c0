package asynqlock

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// quickest and slowest bound the time between two retries of one key that this
	// process arranges.
	quickest = 10 * time.Millisecond
	slowest  = time.Second
	// atOnce is how many tasks of a key may come back when asynq next looks. It is a few
	// more than can wait, because asynq knows whole seconds only: otherwise a key
	// with many short tasks would lie idle between seconds.
	atOnce = 16
	// longest bounds the delay of a task, however many there are.
	longest = time.Minute
	// calm is how long a task may be put off even if the key has just become busy.
	// Otherwise a few tasks of some seconds each would be tried all the time.
	calm = 5 * time.Second
	// rememberedKeys is how many keys are remembered in each of two generations.
	rememberedKeys = 4096
)

// backlogs spread the retries of tasks whose keys are busy. They remember keys for as
// long as tasks are due because of them, and a bounded number: a forgotten key is
// one that has just become busy. They are safe for concurrent use.
type backlogs struct {
	seed maphash.Seed

	mu       sync.Mutex
	now, old map[uint64]*backlog // by hash: keys that collide slow each other down, no more
}

// backlog is what is known about a busy key.
type backlog struct {
	pace  pace
	soon  time.Time // up to when the tasks that come back at once have it
	later time.Time // up to when the others have it
	most  time.Time // up to when they have it if they come as quickly as they may
	due   time.Time // when the last of them comes back
}

func newBacklogs() *backlogs {
	return &backlogs{seed: maphash.MakeSeed(), now: map[uint64]*backlog{}}
}

// refused returns how long a task is to be put off whose key is busy.
func (p *backlogs) refused(key string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	b := p.find(maphash.String(p.seed, key), now)
	return b.delay(now)
}

// acquired notes that a task has got a key. Tasks that are put off cannot be called back, but
// their bookings are no reason to put off the next ones for as long.
func (p *backlogs) acquired(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	hash := maphash.String(p.seed, key)
	for _, generation := range []map[uint64]*backlog{p.now, p.old} {
		if b := generation[hash]; b != nil {
			b.got(time.Now())
		}
	}
}

// find returns what is known about a key, from now on in the young generation.
func (p *backlogs) find(hash uint64, now time.Time) *backlog {
	b := p.now[hash]
	if b == nil {
		b = p.old[hash]
		delete(p.old, hash)
		if len(p.now) >= rememberedKeys {
			p.old, p.now = p.now, map[uint64]*backlog{}
		}
		if b == nil {
			b = &backlog{pace: pace{since: now}}
		}
		p.now[hash] = b
	}
	if now.Sub(b.due) > 5*time.Second {
		// All tasks have come back, and none was refused: the key is busy anew.
		*b = backlog{pace: pace{since: now}}
	}
	return b
}

func (b *backlog) got(now time.Time) {
	b.pace.acquired(now)
	if end := now.Add(atOnce * b.pace.each); b.later.After(end) {
		b.later = end
	}
}

// delay is for one more task.
func (b *backlog) delay(now time.Time) time.Duration {
	busy := now.Sub(b.pace.since)
	apart := min(max(busy/2, quickest), slowest)
	var d time.Duration
	if soon := later(b.soon, now).Add(apart); soon.Sub(now) <= atOnce*apart {
		b.soon = soon
	} else {
		// The key may become free while these tasks sleep. So they sleep for a small
		// part of the time that they have waited, or for what the tasks before them need.
		// Only a crowd sleeps longer.
		enough := min(max(busy/8, calm, atOnce*b.pace.each), longest)
		b.later = later(b.later, now).Add(apart)
		if d = b.later.Sub(now); d > enough {
			b.later = now.Add(enough)
			d = spread(enough)
		}
		b.most = later(b.most, now).Add(quickest)
		d = max(d, b.most.Sub(now))
	}
	// A task comes too late by an eighth of its wait at most.
	d = max(d, spread(busy/8))
	if d > longest {
		b.most = now.Add(longest)
		d = spread(longest)
	}
	b.due = later(b.due, now.Add(d))
	return d
}

// spread returns a duration at random between half of d and d.
func spread(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
