package faults

import (
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Faults that hit chosen requests and replies.

const (
	// settled is how soon an outcome that got lost must be settled in a long run: a
	// second, and time for the processes of the test.
	settled = 2500 * time.Millisecond
	// renewLease lets a lock that a late renewal brings back be noticed in a long run.
	// It is renewed in time for a long hold to meet it.
	renewLease = 3 * time.Second
	// meeting bounds the wait for further requests that a fault can hit.
	meeting = 5 * time.Second
)

// longLease lets a lock that nobody withdraws be noticed: it is out of reach for
// longer than a run is ready to wait.
func longLease() time.Duration { return pick(5*time.Second, 5*patience) }

// dropReply has Redis execute what the script does while nobody hears of it, and
// dropRequest keeps it from Redis: for so long that a call gives up on it.
func dropReply(on where, script string) fault {
	return chosen("reply of "+script+" dropped", on, script, func(p *redistest.Proxy, m redistest.Match) *redistest.Fault {
		return p.DropReply(m, redistest.Always())
	}, nil)
}

func dropRequest(on where, script string) fault {
	return chosen("request to "+script+" dropped", on, script, func(p *redistest.Proxy, m redistest.Match) *redistest.Fault {
		return p.DropRequest(m, redistest.Always())
	}, nil)
}

// deliverLate keeps requests back until whoever sent them has given up. A release
// then meets the next holder; what could take a lock for nobody meets a free one,
// while the crew rests.
func deliverLate(on where, script string) fault {
	var f fault
	f = chosen("request to "+script+" late", on, script, func(p *redistest.Proxy, m redistest.Match) *redistest.Fault {
		return p.HoldRequest(m)
	}, func(n *nemesis, held []*redistest.Fault) {
		n.pause(longestHold * 6 / 10)
		if script != "release" {
			n.crew.rest()
			defer n.crew.do(work(f))
		}
		for _, h := range held {
			h.Release()
		}
	})
	if script == "renew" {
		f.lease, f.within = renewLease, settled
	}
	return f
}

// chosen arms a fault on each link, for a script, or several with " or " between them. It ends it when a
// call has had time to give up and about one for each worker has happened.
func chosen(name string, on where, script string,
	arm func(*redistest.Proxy, redistest.Match) *redistest.Fault, heal func(*nemesis, []*redistest.Fault)) fault {
	f := fault{name: name}
	if script == "renew" {
		f.long = 4 * many
	} else {
		f.lease, f.within = longLease(), settled
	}
	f.inject = func(n *nemesis) int {
		var digests []string
		for _, name := range strings.Split(script, " or ") {
			more, err := redistest.Digests(name)
			if err != nil {
				n.tb.Fatal(err)
			}
			digests = append(digests, more...)
		}
		var armed []*redistest.Fault
		for _, p := range on(n) {
			armed = append(armed, arm(p, redistest.Script(digests...)))
		}
		met := func() (met int) {
			for _, a := range armed {
				met += a.Count()
			}
			return met
		}
		n.pause(lease / 2)
		for _, wait := range []struct {
			met    int
			atMost time.Duration
		}{{1, atMost(meeting)}, {workers, meeting}} {
			awaitNone(wait.atMost, func() []string {
				if met() < min(len(armed), wait.met) {
					return []string{"more are to come"}
				}
				return nil
			})
		}
		for _, a := range armed {
			a.Disarm()
		}
		if heal != nil {
			heal(n, armed)
		}
		return met()
	}
	return f
}
