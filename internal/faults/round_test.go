package faults

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/latchkey-go/latchkey/internal/checker"
)

// result is what a fault has come to, in one round or in all of them.
type result struct {
	times, grants, violations, stuck             int
	shared, permits, heavy, downgraded, attempts int // of the grants: heavy ones took several permits
	again                                        int // answers
	runs, handed                                 int // of core.Once: those of its function, and results of others
	triggers, dropped, owed                      int // tasks of KeepOne; owed at once, when nothing is wrong
	undecided, decided                           int // histories
	recovery, late                               time.Duration
}

func (r *result) add(o result) {
	r.times += o.times
	r.grants += o.grants
	r.shared += o.shared
	r.permits += o.permits
	r.heavy += o.heavy
	r.downgraded += o.downgraded
	r.attempts += o.attempts
	r.again += o.again
	r.runs += o.runs
	r.handed += o.handed
	r.triggers += o.triggers
	r.dropped += o.dropped
	r.owed = max(r.owed, o.owed)
	r.violations += o.violations
	r.stuck += o.stuck
	r.undecided += o.undecided
	r.decided += o.decided
	r.recovery = max(r.recovery, o.recovery)
	r.late = max(r.late, o.late)
}

// round has the crew work, injects one fault, heals it, waits until every key was
// taken again, has the crew rest, and checks what it saw.
func (r *run) round(f fault) (res result) {
	if r.top.tasks {
		return r.roundOfTasks(f)
	}
	tb := r.nemesis.tb
	tb.Helper()
	within := cmp.Or(f.within, lease+stuckAfter)
	started := now()
	r.crew.do(work(f))
	r.awaitGrants(now(), warmUp)
	began := now()
	res.times = f.inject(r.nemesis)
	healed := now()
	if res.times == 0 {
		tb.Errorf("%s: nothing was there to hit", f.name)
	}
	r.nemesis.pause(aftermath)
	r.crew.do(order{Do: "hurry"}) // a key that is held for long is not stuck
	r.awaitGrants(healed, patience)
	r.crew.rest()

	visits := r.crew.history.take()
	found := r.violations(visits, &res)
	for _, key := range keys {
		asked, next, taken := recovery(visits, key, healed)
		idle := between(r.stalls, asked, next)
		if !taken || idle > atMost(within) {
			res.stuck++
			found = append(found, fmt.Sprintf("%s was out of reach for %v", key, idle))
		}
		res.recovery = max(res.recovery, idle)
	}
	for _, v := range visits {
		if v.Granted() && v.Returned >= began {
			res.grants++
			switch {
			case isCall(v.Key):
				res.runs++
			case v.Request != nil:
				res.attempts++
			case v.Form.Shared:
				res.shared++
			case v.Form.Permits > 0:
				res.permits++
				res.heavy += min(v.Form.Taken()-1, 1)
			case v.Sharing != 0:
				res.downgraded++
			}
		}
		switch again := v.Request != nil && v.Request.Again; {
		case again && isCall(v.Key):
			res.handed++
		case again:
			res.again++
		}
		res.late = max(res.late, v.Late)
	}
	if strict() && f.answers {
		failed := append(failures(visits, began), r.nemesis.found...)
		res.violations += len(failed)
		found = append(found, failed...)
	}
	r.nemesis.found = nil
	if lost, of := losses(visits); strict() && f.calm && 2*lost > of {
		res.violations++
		found = append(found, fmt.Sprintf("%d of %d long holds were lost for no reason", lost, of))
	}
	if unsure, of := unsure(visits); strict() && f.calm && 2*unsure > of {
		res.violations++
		found = append(found, fmt.Sprintf("after %d of %d attempts that have failed the next one did not know that", unsure, of))
	}
	left := awaitNone(atMost(cmp.Or(f.lease, lease)+time.Second), func() []string { return r.top.leftovers(tb) })
	res.violations += len(left)
	found = append(found, left...)
	tb.Logf("%s: %d times, %d operations, injected in %v, recovered after %v, done after %v", f.name, res.times, res.grants,
		time.Duration(healed-began).Round(time.Millisecond), res.recovery.Round(time.Millisecond), time.Duration(now()-started).Round(time.Millisecond))
	for _, text := range found[:min(len(found), mostShown)] {
		tb.Errorf("%s: %s", f.name, text)
	}
	return res
}

const (
	longestHold = 2500 * time.Millisecond
	mostShown   = 5
	warmUp      = 400 * time.Millisecond
	aftermath   = 200 * time.Millisecond // for what a fault leaves behind
)

// work is the order to work during a fault.
func work(f fault) order {
	return order{Do: "work", Lease: cmp.Or(f.lease, lease), Long: cmp.Or(f.long, 3)}
}

// awaitGrants waits until every key was taken after a time, at most for d.
func (r *run) awaitGrants(since int64, d time.Duration) {
	awaitNone(d, func() (missing []string) {
		for _, key := range keys {
			if !r.crew.history.grantedSince(key, since) {
				missing = append(missing, key)
			}
		}
		return missing
	})
}

// violations are all broken promises in the visits of a round.
func (r *run) violations(visits []visit, res *result) []string {
	found := append(checker.Overlaps(visits), checker.BrokenPromises(visits, lateLimit)...)
	found = append(found, checker.Once(visits)...)
	found = append(found, r.crew.store.FaultsFound()...)
	byKey := map[string][]visit{}
	for _, v := range visits {
		byKey[v.Key] = append(byKey[v.Key], v)
	}
	for key, own := range byKey {
		switch checker.Linearizable(own, r.lastToken[key], decideWithin) {
		case porcupine.Illegal:
			found = append(found, fmt.Sprintf("the history of %s is not that of a lock, after token %d: %v", key, r.lastToken[key], checker.FirstWrong(own, r.lastToken[key], decideWithin)))
			res.decided++
		case porcupine.Unknown:
			res.undecided++
		default:
			res.decided++
		}
		for _, v := range own {
			r.lastToken[key] = max(r.lastToken[key], v.Token)
		}
	}
	res.violations += len(found)
	return found
}

// losses counts the holds that lasted about a lease or more, and those of them that
// were lost.
func losses(visits []visit) (lost, of int) {
	for _, v := range visits {
		if v.Granted() && max(v.Told, v.Released)-v.Returned > int64(lease*8/10) {
			of++
			if v.Told != 0 {
				lost++
			}
		}
	}
	return lost, of
}

// recovery is since when a key was asked for in vain after a time, and when it was
// taken again. What held it meanwhile and was unlocked in order is no reason for
// complaint. It is false when nobody has taken it.
func recovery(visits []visit, key string, healed int64) (asked, next int64, taken bool) {
	next = math.MaxInt64
	free := healed
	for _, v := range visits {
		switch {
		case v.Key != key || !v.Granted():
		case v.Returned > healed:
			next = min(next, v.Returned)
		case v.Outcome == confirmed:
			free = max(free, v.Done)
		}
	}
	if next == math.MaxInt64 {
		return free, now(), false
	}
	asked = next
	for _, v := range visits {
		if v.Key == key && (v.Returned > free || v.Returned == 0) {
			asked = min(asked, max(v.Called, free))
		}
	}
	return asked, next, true
}
