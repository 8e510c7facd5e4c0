package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// record is a visit while it goes on, in a worker.
type record struct {
	worker *worker

	mu      sync.Mutex
	visit   visit
	doubt   bool // Redis has not confirmed every step
	leaving bool // nobody waits for a loss any more
	closed  bool
}

func (w *worker) open(key string, f form) *record {
	r := &record{worker: w}
	r.visit = visit{ID: w.nextID(), Worker: w.setup.Worker, Key: key, Form: f, Called: now()}
	w.report(r.visit)
	return r
}

// update changes the visit and reports it, until it is closed.
func (r *record) update(change func(*visit)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	change(&r.visit)
	r.worker.report(r.visit)
}

// returned enters the outcome of Lock, for a hold of some length, and watches for a
// loss.
func (r *record) returned(k *core.Lock, err error, length time.Duration) {
	at := now()
	if err != nil {
		r.update(func(v *visit) {
			v.Returned = at
			v.Refusal = r.excused(kindOf(err), v.Called, at)
			v.Expect(err, core.ErrNotAcquired, core.ErrUnavailable)
		})
		r.close()
		return
	}
	owner := k.Owner()
	r.update(func(v *visit) {
		v.Returned, v.Owner, v.Token = at, owner, k.Token()
		v.Planned = at + int64(length)
		if v.Deadline = r.worker.deadlines.follow(owner, r); v.Deadline == 0 {
			v.Broken, v.Deadline = "a lock that Redis, or its replicas, have not confirmed", at
		}
	})
	context.AfterFunc(k.Context(), func() { r.look(k) })
}

// extended enters that Redis keeps the lock for longer.
func (r *record) extended(deadline int64) {
	r.update(func(v *visit) { v.Deadline = max(v.Deadline, deadline) })
}

// look enters the loss when the holder is told of one.
func (r *record) look(k *core.Lock) {
	at := now()
	if !errors.Is(context.Cause(k.Context()), core.ErrLost) {
		return
	}
	r.update(func(v *visit) {
		if v.Told == 0 && !r.leaving {
			v.Told = at
			v.Late = r.worker.stalls.late(v.Deadline, at)
		}
	})
}

// leave is called before the first Unlock. From there on the context ends anyway.
func (r *record) leave(k *core.Lock) {
	r.look(k)
	at := now()
	// A context that its caller has cancelled can tell no more.
	deaf := k.Context().Err() != nil
	r.update(func(v *visit) {
		r.leaving = true
		if v.Told == 0 && !deaf {
			v.Late = max(0, r.worker.stalls.late(v.Deadline, at))
		}
	})
}

// reentered enters the outcome of a Lock inside of k.
func (r *record) reentered(k, inner *core.Lock, err error) {
	if err != nil {
		r.doubt = true
		// ErrNotAcquired only when the context of k was cancelled meanwhile.
		ended := k.Context().Err() != nil
		r.update(func(v *visit) {
			if errors.Is(err, core.ErrNotAcquired) && ended {
				return
			}
			v.Expect(err, core.ErrLost, core.ErrUnavailable)
		})
		return
	}
	if inner.Token() != k.Token() {
		r.update(func(v *visit) { v.Broken = fmt.Sprintf("a re-entry has token %d", inner.Token()) })
	}
}

// upgraded enters the outcome of a Lock inside of k that wants to have it alone.
func (r *record) upgraded(k *core.Lock, err error) {
	over := k.Context().Err() != nil
	r.update(func(v *visit) {
		if err == nil {
			v.Broken = "it has the lock alone, beside others"
		} else if !over {
			v.Expect(err, core.ErrUpgrade, core.ErrLost)
		}
	})
}

// downgrade downgrades k, which nobody else has, and enters what came of that.
func (r *record) downgrade(k *core.Lock) {
	asked := now()
	r.update(func(v *visit) { v.Downgraded = asked })
	err := k.Downgrade(context.Background())
	at, over := now(), k.Context().Err() != nil
	r.update(func(v *visit) {
		if err == nil {
			v.Sharing = at
			return
		}
		r.doubt = true
		if !over {
			v.Expect(err, core.ErrLost, core.ErrUnavailable)
		}
	})
}

// unlock unlocks, and enters it; last says that it frees the lock.
func (r *record) unlock(k *core.Lock, last bool) {
	if last {
		at := now()
		r.update(func(v *visit) { v.Released = at })
	}
	r.unlocked(k.Unlock(context.Background()), last)
}

// unlocked enters what came of that.
func (r *record) unlocked(err error, last bool) {
	at := now()
	r.update(func(v *visit) {
		v.Expect(err, core.ErrLost, core.ErrUnavailable)
		r.doubt = r.doubt || err != nil
		if last {
			v.Done = at
			if !r.doubt {
				v.Outcome = confirmed
			} else {
				v.Outcome = r.excused(kindOf(err), v.Released, at)
			}
		}
	})
	if last {
		r.close()
	}
}

func (r *record) close() {
	r.mu.Lock()
	owner := r.visit.Owner
	r.closed = true
	r.mu.Unlock()
	r.worker.deadlines.leave(owner, r)
}

// excused is the word for what a call came to on a machine that was busy with others: what the call waited for may not have run either.
func (r *record) excused(word string, from, to int64) string {
	if word == "unavailable" && r.worker.stalls.late(from, to) < time.Duration(to-from) {
		return "unavailable, beside stalls"
	}
	return word
}

// kindOf is the word for an error.
func kindOf(err error) string {
	if errors.Is(err, core.ErrOverloaded) {
		return "overloaded"
	}
	for kind, word := range map[error]string{
		core.ErrNotAcquired: "busy", core.ErrUnavailable: "unavailable", core.ErrLost: "lost", core.ErrClosed: "closed",
	} {
		if errors.Is(err, kind) {
			return word
		}
	}
	if err == nil {
		return "ok"
	}
	return err.Error()
}

// stalls knows when this process did not run: it was stopped, or the machine was
// busy with others.
type stalls struct {
	mu   sync.Mutex
	last int64
	gaps [][2]int64
}

const (
	beat      = 5 * time.Millisecond
	shortGap  = 4 * beat
	gapsKnown = 256
)

// watch keeps looking at the clock until ctx ends.
func (s *stalls) watch(ctx context.Context) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for ctx.Err() == nil {
		s.mu.Lock()
		at := now()
		if s.last != 0 && at-s.last > int64(shortGap) {
			s.gaps = append(s.gaps, [2]int64{s.last, at})
			s.gaps = s.gaps[max(0, len(s.gaps)-gapsKnown):]
		}
		s.last = at
		s.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// late is how long the process ran between two times.
func (s *stalls) late(from, to int64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	ran := to - from
	gaps := s.gaps
	if to-s.last > int64(shortGap) {
		gaps = append(gaps[:len(gaps):len(gaps)], [2]int64{s.last, to})
	}
	for _, g := range gaps {
		ran -= max(0, min(g[1], to)-max(g[0], from))
	}
	return time.Duration(ran)
}
