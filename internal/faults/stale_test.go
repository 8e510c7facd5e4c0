//go:build go1.25

package faults

import (
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

const (
	pooled              = 120    // connections of a worker, at most
	leastIdle, mostIdle = 60, 80 // a call gets past that many within its Timeout
)

// deadConnections are faults that end all connections of the workers, many of which are idle: as Redis
// does it, or as the network does. go-redis, which does not see through the workers' connections, finds
// out with each one when it uses it: when calls come, or when a lock is renewed and nobody calls.
func deadConnections(which whichever) []fault {
	busy := fault{name: "connections in the pool dead", answers: true, lease: renewLease, long: 4 * many}
	busy.inject = func(n *nemesis) (killed int) {
		for range pick(3, 1) {
			killed += n.endIdle(which(n))
			n.pause(lease)
		}
		return killed
	}
	quiet := fault{name: "connections in the pool dead, and nobody calls", answers: true}
	quiet.inject = func(n *nemesis) int {
		n.crew.rest()
		defer n.crew.do(work(quiet))
		for i, p := range n.crew.members {
			hold := order{Do: "hold", Key: fmt.Sprint("of worker ", i), Lease: renewLease}
			for p.send(hold); p.next(n.tb, "holding") != "holding"; p.send(hold) {
				if strict() { // a busy machine may take longer than Timeout
					n.tb.Fatalf("worker %d could not take a lock", i)
				}
			}
		}
		killed := n.endIdle(which(n))
		n.pause(renewLease * 14 / 10)
		for i, p := range n.crew.members {
			p.send(order{Do: "unlock"})
			if got := p.next(n.tb, "unlocked"); got != "unlocked" {
				n.found = append(n.found, fmt.Sprintf("worker %d alone used its lock and its Redis, and now: %s", i, got))
			}
		}
		return killed
	}
	return []fault{busy, quiet}
}

// endIdle has many connections of all workers end.
func (n *nemesis) endIdle(s *redistest.Server) (ended int) {
	idle := leastIdle + n.random.IntN(mostIdle-leastIdle)
	for _, p := range n.crew.members {
		p.send(order{Do: "connect", Times: idle})
	}
	for _, p := range n.crew.members {
		p.await(n.tb, "connected")
	}
	if n.random.IntN(2) == 0 {
		return n.top.wires.all().kill()
	}
	client := admin(s)
	defer client.Close()
	killed, err := client.ClientKillByFilter(background, "TYPE", "normal").Result()
	if err != nil {
		n.tb.Error(err)
	}
	return int(killed)
}

// connectOften leaves so many idle connections in the pool.
func (w *worker) connectOften(idle int) {
	var conns []*redis.Conn
	var all sync.WaitGroup
	for range idle {
		conn := w.clients[0].(*redis.Client).Conn()
		conns = append(conns, conn)
		all.Go(func() { _ = conn.Ping(background).Err() }) // a dead one gives way to another
	}
	all.Wait()
	for _, conn := range conns {
		_ = conn.Close()
	}
}

// failures are the calls that have failed for Redis's sake, and the losses, since a time.
func failures(visits []visit, since int64) (found []string) {
	for _, v := range visits {
		switch {
		case v.Returned >= since && v.Refusal == "unavailable":
			found = append(found, fmt.Sprintf("a call has failed beside a Redis that answers: %v", v))
		case v.Told >= since:
			found = append(found, fmt.Sprintf("lost beside a Redis that answers: %v", v))
		case v.Done >= since && v.Outcome == "unavailable":
			found = append(found, fmt.Sprintf("an Unlock has failed beside a Redis that answers: %v", v))
		}
	}
	return found
}
