package simulation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/checker"
)

// visit is what a process knows of one attempt at a lock.
type visit struct {
	checker.Visit
	Plan   plan
	Calm   bool          // nothing went wrong meanwhile, nor shortly before
	Kept   bool          // the work was done: a dedup window follows
	Window time.Duration // that window, as the lock tells it: of the outermost hold only
	Ended  int64         // its wait was cancelled
	Killed bool
}

func (v visit) String() string {
	p := v.Plan
	return fmt.Sprintf("%v with a lease of %v (fixed: %v), a wait of %v, KeepFor %v, MaxHold %v, Owner %q, %d re-entries, abort: %v, Do: %v, calm: %v",
		v.Visit, p.Lease, p.Fixed, p.Wait, p.KeepFor, p.MaxHold, p.Owner, p.Depth, p.Abort, p.Do, v.Calm)
}

// record is a visit while it goes on.
type record struct {
	process *process

	mu      sync.Mutex
	visit   visit
	doubt   bool  // Redis has not confirmed every step
	gone    int64 // when its caller had gone away: it hears of no loss after that
	leaving bool  // nobody waits for a loss any more
	closed  bool
}

func (p *process) open(plan plan) *record {
	w := p.world
	r := &record{process: p}
	r.visit.ID, r.visit.Worker, r.visit.Key, r.visit.Form, r.visit.Plan = w.nextID(), p.id, plan.Key, plan.Form, plan
	r.visit.Called, r.visit.Deadline = now(), math.MaxInt64
	r.visit.Calm = w.isCalm()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.records[r] = true
	r.closed = p.dead
	return r
}

func (r *record) update(change func(*visit)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		change(&r.visit)
	}
}

// close ends the record and files the visit.
func (r *record) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.file()
}

// file hands the visit over, once. r.mu is held.
func (r *record) file() {
	if r.closed {
		return
	}
	r.closed = true
	r.visit.Calm = r.visit.Calm && r.process.world.isCalm()
	r.process.world.file(r.visit)
}

// died ends the record of a process that was killed. Its lock lasts for as long as the process
// could have believed in it.
func (r *record) died() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.visit.Killed = true
	r.visit.Deadline = now()
	held := false
	for _, h := range r.process.locker.Snapshot(r.visit.Key).Held {
		if h.Token == r.visit.Token {
			held, r.visit.Deadline = true, max(r.visit.Deadline, now()+int64(h.TTL))
		}
	}
	if !held && r.visit.Told == 0 {
		r.visit.Told = r.gone // it may have been lost at any time since
	}
	r.file()
}

// returned enters the outcome of Lock, and watches for a loss.
func (r *record) returned(k *core.Lock, err error) {
	at := now()
	if err != nil {
		r.update(func(v *visit) {
			v.Returned, v.Refusal = at, kindOf(err)
			kinds := []error{core.ErrNotAcquired, core.ErrUnavailable}
			if r.process.leaves.Load() {
				kinds = append(kinds, core.ErrClosed)
			}
			v.Expect(err, kinds...)
		})
		r.close()
		return
	}
	r.update(func(v *visit) {
		v.Returned, v.Token, v.Window = at, k.Token(), k.Window()
		if v.Owner = "visit " + v.ID; v.Plan.Known || v.Plan.Owner != "" {
			v.Owner = k.ShareOwner() // from now on it is not passed on
		}
	})
	context.AfterFunc(k.Context(), func() { r.look(k) })
}

func (r *record) owner() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.visit.Owner
}

// look enters that the holder is told to stop.
func (r *record) look(k *core.Lock) {
	at := now()
	cause := context.Cause(k.Context())
	if errors.Is(cause, errGivenUp) {
		r.update(func(*visit) {
			if r.gone == 0 {
				r.gone = at
			}
		})
	}
	if !errors.Is(cause, core.ErrLost) && !errors.Is(cause, core.ErrMaxHold) && !errors.Is(cause, core.ErrClosed) {
		return // it was unlocked
	}
	r.update(func(v *visit) {
		if v.Told != 0 || r.leaving {
			return
		}
		v.Told = at
		if errors.Is(cause, core.ErrLost) && v.Calm && r.process.world.isCalm() && !v.Plan.Fixed && v.Plan.MaxHold == 0 {
			v.Broken = fmt.Sprintf("lost without a reason (%v)", cause)
		}
	})
}

// reentered enters the outcome of a Lock inside of k.
func (r *record) reentered(k, inner *core.Lock, err error) {
	if err != nil {
		r.mu.Lock()
		r.doubt = true
		r.mu.Unlock()
		ended := k.Context().Err() != nil
		r.update(func(v *visit) {
			if errors.Is(err, core.ErrNotAcquired) && ended {
				return
			}
			v.Expect(err, core.ErrLost, core.ErrUnavailable, core.ErrMaxHold, core.ErrClosed)
		})
		return
	}
	if inner.Token() != k.Token() {
		r.update(func(v *visit) { v.Broken = fmt.Sprintf("a re-entry has token %d", inner.Token()) })
	}
	context.AfterFunc(inner.Context(), func() { r.look(inner) })
}

// upgraded enters the outcome of a Lock inside of k that wants to have it alone.
func (r *record) upgraded(k *core.Lock, err error) {
	over := k.Context().Err() != nil
	r.update(func(v *visit) {
		if err == nil {
			v.Broken = "it has the lock alone, beside others"
		} else if !over {
			v.Expect(err, core.ErrUpgrade, core.ErrLost, core.ErrClosed)
		}
	})
}

// downgraded enters the outcome of Downgrade.
func (r *record) downgraded(k *core.Lock, err error) {
	at, over := now(), k.Context().Err() != nil
	if err == nil {
		r.process.world.count("downgraded")
	}
	r.update(func(v *visit) {
		switch {
		case err == nil:
			v.Sharing = at
		case over: // whatever it says
		case v.Calm && r.process.world.isCalm():
			v.Broken = fmt.Sprintf("not downgraded, without a reason (%v)", err)
		default:
			v.Expect(err, core.ErrUnavailable, core.ErrLost, core.ErrClosed, core.ErrMaxHold)
		}
	})
}

// releases is called before a handle is unlocked; last says that it is the last one.
func (r *record) releases(h *core.Lock, last bool) {
	r.look(h)
	if last {
		at := now()
		r.update(func(v *visit) { v.Released, r.leaving = at, true })
	}
}

// released enters the outcome of that.
func (r *record) released(err error, last, kept bool, took time.Duration) {
	at := now()
	r.mu.Lock()
	r.doubt = r.doubt || err != nil
	doubt := r.doubt
	r.mu.Unlock()
	r.update(func(v *visit) {
		v.Expect(err, core.ErrLost, core.ErrUnavailable, core.ErrClosed)
		if took > r.process.world.timeout+slack {
			v.Broken = fmt.Sprintf("Unlock took %v, with a Timeout of %v", took, r.process.world.timeout)
		}
		if err != nil && v.Calm && r.process.world.isCalm() {
			v.Broken = fmt.Sprintf("unlocked in vain, without a reason (%v)", err)
		}
		v.Kept = v.Kept || kept
		if last {
			v.Done = at
			v.Outcome = kindOf(err)
			if !doubt {
				v.Outcome = checker.Confirmed
			} else if v.Told == 0 {
				v.Told = r.gone
			}
		}
	})
	if last {
		r.close()
	}
}

// slack is what a bound in fake time may be missed by: messages under way, and
// coincidences.
const slack = 50 * time.Millisecond

// kindOf is the word for an error.
func kindOf(err error) string {
	if err == nil {
		return "ok"
	}
	for _, k := range []struct {
		kind error
		word string
	}{
		{core.ErrNotAcquired, "busy"}, {core.ErrUnavailable, "unavailable"}, {core.ErrLost, "lost"},
		{core.ErrClosed, "closed"}, {core.ErrMaxHold, "overdue"},
	} {
		if errors.Is(err, k.kind) {
			return k.word
		}
	}
	return err.Error()
}
