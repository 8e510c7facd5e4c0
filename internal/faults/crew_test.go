package faults

import (
	"math/rand/v2"
	"testing"
)

const (
	workers = 4
	actors  = 3
	// companions go along in a long run only: while all topologies are tested at
	// once, they would take the processor from the rest.
	companions = 8
)

// keys are what the crew contends for: few, so that they meet, and enough for
// progress while one is held for long.
var keys = []string{"a", "b", readAndWritten, permitted}

// One in which a lock is shared and one that has permits, where the topology knows such.
const readAndWritten, permitted = "c", "d"

// crew is the worker processes of a run. Each has its own way to Redis, so that one
// can be cut off while the others go on.
type crew struct {
	tb      testing.TB
	setups  []setup
	members []*process
	history *history
	store   *store
	started int
}

func startCrew(tb testing.TB, top *topology, seed uint64) *crew {
	tb.Helper()
	c := &crew{tb: tb, history: newHistory(), store: newStore()}
	company := 0
	if strict() {
		company = companions
	}
	for i, redis := range top.addresses {
		c.setups = append(c.setups, setup{
			Timeout: pick(0, lease/3),
			Worker:  i, Actors: actors, Company: company, Keys: keys, Seed: seed, Redis: redis, Members: top.members, Tasks: top.tasks,
		})
		c.members = append(c.members, nil)
		c.start(i)
	}
	return c
}

func (c *crew) start(i int) {
	c.tb.Helper()
	c.started++
	c.setups[i].Seed++
	c.setups[i].Beside = *beside != "" && i%2 == 1 // never all: the faults know the scripts of this version
	c.members[i] = startProcess(c.tb, c.setups[i], c.history, c.store)
}

// do gives an order to all: to work begins a round, to rest ends it.
func (c *crew) do(o order) {
	for _, p := range c.members {
		p.send(o)
	}
}

func (c *crew) rest() {
	c.tb.Helper()
	c.do(order{Do: "rest"})
	for _, p := range c.members {
		p.await(c.tb, "resting")
	}
}

// leave ends the crew and returns what it has leaked.
func (c *crew) leave() (leaked []string) {
	c.tb.Helper()
	for _, p := range c.members {
		if note := p.leave(c.tb); note != "" {
			leaked = append(leaked, note)
		}
	}
	return leaked
}

// holder returns a worker that has a lock and means to keep it for longer than its
// lease, so that what happens to the worker matters; or any one when there is none.
func (c *crew) holder() int {
	worker := rand.IntN(len(c.members))
	awaitNone(meeting, func() []string {
		if found := c.history.holder(now() + int64(lease*12/10)); found >= 0 {
			worker = found
			return nil
		}
		return []string{"nobody holds one for long"}
	})
	return worker
}
