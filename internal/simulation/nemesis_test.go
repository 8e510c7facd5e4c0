//go:build go1.25

package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/internal/checker"
)

// nemesis makes things go wrong for a while.
type nemesis struct {
	world *world
	cycle *cycle
	shift *shift
}

// fault begins something that goes wrong, and returns what ends it; nil when it is over
// at once.
type fault struct {
	name  string
	begin func(n *nemesis) (end func())
}

var faults = []fault{
	{"noise", (*nemesis).noise},
	{"noise", (*nemesis).noise},
	{"silence", (*nemesis).silence},
	{"requests stopped", (*nemesis).mute},
	{"replies stopped", (*nemesis).deafen},
	{"connections reset", (*nemesis).reset},
	{"dials refused", (*nemesis).refuse},
	{"dials hanging", (*nemesis).hang},
	{"Redis restarted", (*nemesis).restart},
	{"Redis restarted empty", (*nemesis).restartEmpty},
	{"scripts flushed", (*nemesis).flushScripts},
	{"Redis overloaded", (*nemesis).overload},
	{"clock set forwards", (*nemesis).stepForwards},
	{"clock set back", (*nemesis).stepBack},
	{"clock at another speed", (*nemesis).drift},
	{"process paused", (*nemesis).pause},
	{"process killed", (*nemesis).kill},
	{"process replaced", (*nemesis).replace},
	{"unlocked by force", (*nemesis).force},
}

// crowds are all that happens in some worlds: it takes several, and little else, to do harm.
var crowds = []fault{{"crowd died", (*nemesis).crowd}}

// rage injects faults one after the other, two at a time, and heals all.
func (n *nemesis) rage() {
	w := n.world
	var active []func()
	end := func() {
		w.tell("the oldest fault ends")
		active[0]()
		active = active[1:]
	}
	n.pass(w.lease / 4)
	if w.random.IntN(2) == 0 {
		o := w.randomNoise()
		w.usual = o
		for _, p := range w.processes {
			p.network.set(func() { p.network.noise, p.network.usual = o, o })
		}
		w.tell("noise for all")
	}
	for range 4 + w.random.IntN(8) {
		f := w.faults[w.random.IntN(len(w.faults))]
		w.count(f.name)
		w.tell("%s", f.name)
		if stop := f.begin(n); stop != nil {
			active = append(active, stop)
		}
		n.pass(between(w.random, 0, w.lease))
		if len(active) == 2 {
			end()
		}
	}
	for len(active) > 0 {
		end()
		n.pass(between(w.random, 0, w.lease/2))
	}
	w.usual = noise{}
	for _, p := range w.processes {
		p.network.heal()
	}
	w.buried.Wait()
}

func (n *nemesis) pass(d time.Duration) { time.Sleep(d) }

func (n *nemesis) any() *process {
	return n.world.processes[n.world.random.IntN(len(n.world.processes))]
}

// some are one, or all.
func (n *nemesis) some() []*process {
	if n.world.random.IntN(2) == 0 {
		return n.world.processes
	}
	return []*process{n.any()}
}

// on changes the networks of some processes, and changes them back.
func (n *nemesis) on(begin, end func(*network)) func() {
	some := append([]*process(nil), n.some()...)
	for _, p := range some {
		n.world.tell("  … for %v", p)
		p.network.set(func() { begin(p.network) })
	}
	return func() {
		for _, p := range some {
			p.network.set(func() { end(p.network) })
		}
	}
}

func (n *nemesis) noise() func() {
	o := n.world.randomNoise()
	return n.on(func(n *network) { n.noise = o }, func(n *network) { n.noise = n.usual })
}

// randomNoise makes some mishaps more probable than others.
func (w *world) randomNoise() noise {
	p := func() float64 {
		if w.random.IntN(2) == 0 {
			return 0
		}
		return w.random.Float64() * 0.1
	}
	return noise{p(), p(), p(), p(), p(), p(), p(), p(), p()}
}

func (n *nemesis) silence() func() {
	return n.on(func(n *network) { n.mute, n.deaf = true, true }, func(n *network) { n.mute, n.deaf = false, false })
}

func (n *nemesis) mute() func() {
	return n.on(func(n *network) { n.mute = true }, func(n *network) { n.mute = false })
}

func (n *nemesis) deafen() func() {
	return n.on(func(n *network) { n.deaf = true }, func(n *network) { n.deaf = false })
}

func (n *nemesis) reset() func() {
	some := n.some()
	for range 1 + n.world.random.IntN(4) {
		for _, p := range some {
			p.network.resetAll()
		}
		n.pass(between(n.world.random, 0, n.world.lease/10))
	}
	return nil
}

func (n *nemesis) refuse() func() {
	end := n.on(func(n *network) { n.refused = true }, func(n *network) { n.refused = false })
	n.reset()
	return end
}

func (n *nemesis) hang() func() {
	end := n.on(func(n *network) { n.hanging = true }, func(n *network) { n.hanging = false })
	n.reset()
	return end
}

func (n *nemesis) restart() func() {
	n.world.server.stop()
	return n.world.server.start
}

// restartEmpty restarts Redis without its data. Whoever does that must wait until the
// last lease is over, and see to it that the clock shows no time once more.
func (n *nemesis) restartEmpty() func() {
	w := n.world
	w.server.stop()
	w.server.FlushAll()
	w.server.step(w.behind)
	w.behind = 0
	n.cycle.lost = append(n.cycle.lost, now())
	n.pass(w.lease + w.lease/50 + time.Second)
	w.server.start()
	return nil
}

// overload has scripts take so long that Redis cannot do, or only just, what it is asked for.
func (n *nemesis) overload() func() {
	n.world.server.setCost(between(n.world.random, time.Millisecond, min(n.world.lease/20, 20*time.Millisecond)))
	n.pass(between(n.world.random, 0, n.world.lease))
	return func() { n.world.server.setCost(0) }
}

func (n *nemesis) flushScripts() func() {
	n.world.server.flushScripts()
	return nil
}

func (n *nemesis) pause() func() {
	p := n.any()
	n.world.tell("  … for %v", p)
	p.pause()
	n.pass(between(n.world.random, 0, 2*n.world.lease))
	return p.resume
}

func (n *nemesis) kill() func() {
	p := n.any()
	n.world.tell("  … for %v", p)
	p.kill()
	n.succeed(p)
	return nil
}

func (n *nemesis) replace() func() {
	p := n.any()
	n.world.tell("  … for %v", p)
	patience := between(n.world.random, 0, n.world.lease)
	n.world.buried.Go(func() { p.leave(patience) })
	n.succeed(p)
	return nil
}

// succeed starts another process in the place of one.
func (n *nemesis) succeed(p *process) {
	w := n.world
	w.collect(p)
	w.processes[p.place] = w.newProcess(p.place)
	w.processes[p.place].work(n.shift)
}

func (n *nemesis) force() func() {
	w := n.world
	m := move{from: now(), key: keys[w.random.IntN(len(keys))]}
	if _, err := w.inspector.ForceUnlock(context.Background(), m.key); err != nil {
		w.complain("ForceUnlock: %v", err)
	}
	m.to = now()
	n.cycle.moves = append(n.cycle.moves, m)
	return nil
}

// crowd has a process die for whose calls many wait in Redis, each of an owner of its own: behind
// a reader, and before readers of one process, after whom a writer comes.
func (n *nemesis) crowd() func() {
	w := n.world
	visit := func(p *process, v plan) {
		a := &actor{w, p, rand.New(rand.NewPCG(w.random.Uint64(), 0)), n.shift}
		p.actors.Go(func() { a.visit(v) })
	}
	write := plan{Key: readAndWritten, Lease: w.lease, Wait: w.lease + 3*time.Second}
	read := write
	read.Form, read.Length = checker.Form{Shared: true}, 1500*time.Millisecond+40*w.latency
	visit(n.any(), read)
	n.pass(20 * w.latency)
	dies := w.newProcess(n.any().place)
	dies.network.hearing = hears // nobody knows of one that polls that it is dead: each has the lock for a second
	for i := range 200 + w.random.IntN(100) {
		waits := write
		waits.Owner, waits.Wait = fmt.Sprint("of a crowd ", i), -1
		visit(dies, waits)
	}
	n.pass(200*time.Millisecond + 40*w.latency)
	dies.kill()
	lives := n.any()
	for range 3 {
		read.Fixed, read.Length = w.random.IntN(2) == 0, between(w.random, 0, w.lease>>(5*w.random.IntN(2)))
		visit(lives, read)
	}
	n.pass(2 * time.Second)
	visit(n.any(), write)
	return nil
}
