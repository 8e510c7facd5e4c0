package simulation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/latchkey-go/latchkey/internal/checker"
)

// decideWithin bounds the search for a linearization of one cycle of one key.
const decideWithin = 10 * time.Second

// verdict is what a world has come to.
type verdict struct {
	found                      []string
	grants, windows, undecided int
	shared, permits, heavy     int           // of the grants: heavy ones took several permits
	held                       time.Duration // by all together
	idle                       time.Duration // the longest that a free lock was waited for, in calm times
	late                       time.Duration // the longest that a call outlasted its end
}

// judge checks everything that the processes of a world saw.
func (w *world) judge() verdict {
	v := verdict{found: append(w.broken, w.store.FaultsFound()...)}
	last := map[string]int64{}
	for _, c := range w.cycles {
		v.cycle(w, c, last)
	}
	return v
}

func (v *verdict) complain(format string, args ...any) {
	v.found = append(v.found, fmt.Sprintf(format, args...))
}

func (v *verdict) cycle(w *world, c *cycle, last map[string]int64) {
	for i := range c.visits {
		c.visits[i].allow(c.moves)
		v.bounds(w, &c.visits[i])
	}
	v.repeated(c)
	plain := sessions(c.visits)
	v.found = append(v.found, checker.Overlaps(plain)...)
	v.found = append(v.found, checker.BrokenPromises(plain, 0)...)
	byKey := map[string][]checker.Visit{}
	for _, o := range plain {
		byKey[o.Key] = append(byKey[o.Key], o)
		if o.Granted() {
			v.grants++
			if o.Form.Shared {
				v.shared++
			} else if o.Form.Permits > 0 {
				v.permits++
				v.heavy += min(o.Form.Taken()-1, 1)
			}
			if end := max(o.Done, o.Told); end > 0 {
				v.held += time.Duration(end - o.Returned)
			}
		}
	}
	for key, own := range byKey {
		switch checker.Linearizable(own, last[key], decideWithin) {
		case porcupine.Illegal:
			v.complain("the history of %s is not that of a lock: %v", key, checker.FirstWrong(own, last[key], decideWithin))
		case porcupine.Unknown:
			v.undecided++
		}
		for _, o := range own {
			last[key] = max(last[key], o.Token)
		}
		v.unreached(c, key, pollBound+8*w.latency)
	}
}

// allow excuses a holder from what happened to its lock from outside: until then it
// held the lock, afterwards it may or may not.
func (v *visit) allow(moves []move) {
	for _, m := range moves {
		if v.Granted() && (m.key == "" || m.key == v.Key) && v.Called <= m.to && v.End() >= m.from {
			v.Deadline = min(v.Deadline, max(m.from, v.Called))
			v.Outcome = "moved"
		}
	}
}

// sessions joins the visits that shared a lock by sharing its owner.
func sessions(visits []visit) []checker.Visit {
	type session struct {
		key, owner string
		token      int64
	}
	var out []checker.Visit
	joined := map[session]int{}
	for _, v := range visits {
		id := session{v.Key, v.Owner, v.Token}
		i, known := joined[id]
		if v.Plan.Owner == "" || !v.Granted() || !known {
			joined[id] = len(out)
			out = append(out, v.Visit)
			continue
		}
		o := &out[i]
		o.Deadline = max(o.End(), v.End())
		o.Called, o.Returned = min(o.Called, v.Called), min(o.Returned, v.Returned)
		o.Released, o.Done, o.Told = max(o.Released, v.Released), max(o.Done, v.Done), 0
		if v.Outcome != checker.Confirmed {
			o.Outcome = v.Outcome
		}
		o.Broken = cmp.Or(o.Broken, v.Broken)
	}
	return out
}

// bounds complains of a call that outlasted the end of its wait.
func (v *verdict) bounds(w *world, o *visit) {
	if o.Returned == 0 {
		if !o.Killed {
			v.complain("never returned: %v", *o)
		}
		return
	}
	due, allowed := int64(math.MaxInt64), time.Duration(0)
	if o.Plan.Wait >= 0 {
		due, allowed = o.Called+int64(o.Plan.Wait), 2*w.timeout
	}
	if o.Ended != 0 && o.Ended < due {
		due, allowed = o.Ended, w.timeout // a command may be on the caller's goroutine, which cannot leave before the answer
	}
	if due == math.MaxInt64 {
		return
	}
	late := time.Duration(o.Returned - due)
	v.late = max(v.late, late)
	if late > allowed+slack {
		v.complain("Lock returned %v after its time was over: %v", late, *o)
	}
}

// repeated complains of work that was done twice in one dedup window.
func (v *verdict) repeated(c *cycle) {
	doubtful := map[int64]bool{} // tokens of locks that may have ended otherwise
	for _, o := range c.visits {
		if o.Outcome != checker.Confirmed || o.Told != 0 {
			doubtful[o.Token] = true
		}
	}
	for _, o := range c.visits {
		if !o.Kept || o.Window == 0 || doubtful[o.Token] {
			continue
		}
		v.windows++
		end := o.Called + int64(o.Window-time.Millisecond)*98/100 // Redis counts in whole ms
		if slices.ContainsFunc(c.lost, func(at int64) bool { return at < end && at > o.Called }) {
			continue
		}
		for _, m := range c.moves {
			switch {
			case m.to < o.Called || m.from > end:
			case m.key == o.Key:
				end = min(end, m.from)
			case m.key == "":
				end -= int64(m.by)
			}
		}
		for _, other := range c.visits {
			if other.Key == o.Key && other.Token > o.Token && other.Returned > o.Returned && other.Returned < end {
				v.complain("done again %v before the end of the window: %v after %v", time.Duration(end-other.Returned), other, o)
			}
		}
	}
}

// pollBound is how long a free lock may be waited for, but for what messages take: a poll, by
// which a process finds out that has not heard of it, or a grant of which nobody has.
const pollBound = time.Second + 2*slack

// crowd counts those who have a lock, or wait for it, by form.
type crowd struct {
	alone, sharing, permitted int
	permits                   int              // that they take
	leaving                   [mostPermits]int // those who leave so many for others
}

func (c *crowd) add(f checker.Form, n int) {
	switch {
	case f.Shared:
		c.sharing += n
	case f.Permits > 0:
		c.permitted += n
		c.permits += n * f.Taken()
		c.leaving[f.Permits-f.Taken()] += n
	default:
		c.alone += n
	}
}

// open says whether somebody who waits could have the lock at once, whoever came first.
func open(holding, waiting crowd) bool {
	switch none := (crowd{}); {
	case waiting == none:
		return false
	case holding == none:
		return true
	case holding.alone > 0 || waiting.alone > 0:
		return false
	}
	return holding.permitted+waiting.permitted == 0 ||
		holding.sharing+waiting.sharing == 0 && holding.permits <= slices.IndexFunc(waiting.leaving[:], func(n int) bool { return n > 0 })
}

// unreached complains of a lock that was free, or had room, while somebody waited for it
// and nothing was wrong.
func (v *verdict) unreached(c *cycle, key string, bound time.Duration) {
	type change struct {
		at             int64
		form           checker.Form
		holding, waits int
	}
	var changes []change
	add := func(form checker.Form, from, to int64, holding, waits int) {
		if to > from {
			changes = append(changes, change{from, form, holding, waits}, change{to, form, -holding, -waits})
		}
	}
	for _, o := range c.visits {
		if o.Key != key {
			continue
		}
		if o.Plan.Wait != 0 && o.Returned > c.settled {
			add(o.Form, max(o.Called, c.settled), o.Returned, 0, 1)
		}
		if !o.Granted() {
			continue
		}
		end := max(o.Done, o.Released)
		if o.Plan.KeepFor > 0 && !o.Plan.Abort {
			from := o.Returned
			if c.setBack {
				from = max(from, c.asked)
			}
			end = max(end, from+int64(o.Plan.KeepFor*102/100))
		}
		if o.Sharing > 0 {
			add(o.Form, o.Returned, o.Sharing, 1, 0)
			add(checker.Form{Shared: true}, o.Sharing, end, 1, 0)
		} else {
			add(o.Form, o.Returned, end, 1, 0)
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	var holding, waiting crowd
	since := int64(0)
	for _, ch := range changes {
		was := open(holding, waiting)
		if was && since > 0 {
			idle := time.Duration(ch.at - since)
			v.idle = max(v.idle, idle)
			if idle > bound {
				v.complain("%s was free and waited for, but not taken, for %v until %v", key, idle, time.Duration(ch.at-c.settled))
			}
		}
		holding.add(ch.form, ch.holding)
		waiting.add(ch.form, ch.waits)
		switch is := open(holding, waiting); {
		case is && (!was || ch.holding > 0):
			since = ch.at
		case !is:
			since = 0
		}
	}
}
