//go:build go1.25

package faults

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// nemesis injects the faults of a run.
type nemesis struct {
	tb     testing.TB
	top    *topology
	crew   *crew
	random *rand.Rand
	found  []string // that is wrong, and that no visit shows
}

// pause lets a fault last.
func (n *nemesis) pause(d time.Duration) { time.Sleep(d) }

// key is one of the keys that the crew contends for.
func (n *nemesis) key() string { return keys[n.random.IntN(len(keys))] }

// index is the place of a server among those of the topology.
func (top *topology) index(s *redistest.Server) int { return slices.Index(top.servers, s) }

// Where a fault strikes may change from one time to the next.
type (
	where     func(*nemesis) links
	whichever func(*nemesis) *redistest.Server
)

// many long holds, in per cent, where a fault is for them.
const many = 8

// nothing is the control.
func nothing() fault {
	return fault{name: "none", calm: true, long: 4 * many, inject: func(n *nemesis) int {
		n.pause(lease * 15 / 10)
		return 1
	}}
}

func killConnections(on where) fault {
	return fault{name: "connections killed", inject: func(n *nemesis) (killed int) {
		for i, end := 0, time.Now().Add(patience); i < 5 || killed == 0 && time.Now().Before(end); i++ {
			killed += on(n).kill()
			n.pause(60 * time.Millisecond)
		}
		return killed
	}}
}

func blackHole(name string, on where, d time.Duration) fault {
	return fault{name: name, long: many, inject: func(n *nemesis) int {
		l := on(n)
		n.crew.holder()
		l.blackHole(true)
		n.pause(d)
		l.blackHole(false)
		return len(l)
	}}
}

func latency(on where) fault {
	return fault{name: "latency", inject: func(n *nemesis) int {
		l := on(n)
		l.latency(time.Duration(10+n.random.IntN(50)) * time.Millisecond)
		n.pause(700 * time.Millisecond)
		l.latency(0)
		return len(l)
	}}
}

func stopServer(name string, which whichever, d time.Duration) fault {
	return fault{name: name, long: many, inject: func(n *nemesis) int {
		s := which(n)
		n.crew.holder()
		s.Stop(n.tb)
		n.pause(d)
		s.Cont(n.tb)
		return 1
	}}
}

func restart(name string, which whichever) fault {
	return fault{name: name, inject: func(n *nemesis) int {
		s := which(n)
		s.Kill(n.tb)
		n.pause(time.Duration(n.random.Int64N(int64(lease))))
		s.Restart(n.tb)
		return 1
	}}
}

// overload asks a server for more than it can do: each command of the others waits for some of 2 ms, for a while.
func overload(which whichever) fault {
	const atOnce = 16
	return fault{name: "overload", long: many, inject: func(n *nemesis) int {
		client := which(n).Client(n.tb)
		ctx, cancel := context.WithTimeout(context.Background(), 2*lease)
		defer cancel()
		var all sync.WaitGroup
		for range atOnce {
			all.Go(func() {
				for ctx.Err() == nil {
					client.Eval(ctx, busyScript, nil, 2000)
				}
			})
		}
		all.Wait()
		return atOnce
	}}
}

// busyScript keeps Redis busy for so many µs.
const busyScript = `
	local function now()
		local t = redis.call('TIME')
		return t[1] * 1000000 + t[2]
	end
	local ends = now() + ARGV[1]
	repeat until now() > ends`

func flushScripts(name string, which whichever) fault {
	return fault{name: name, inject: func(n *nemesis) int {
		for range 3 {
			which(n).FlushScripts(n.tb)
			n.pause(50 * time.Millisecond)
		}
		return 3
	}}
}
