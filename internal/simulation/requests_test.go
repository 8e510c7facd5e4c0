//go:build go1.25

package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

const (
	requests   = 16
	requesters = 3 // that send one
	answerKept = 5 * time.Minute

	requestSeeds = 10
)

// request is an idempotent one, or a call of core.Once, and what has become of it.
type request struct {
	w      *world
	key    string
	digest string // empty: of core.Once

	mu       sync.Mutex
	attempts []*attempt
	answer   string // that somebody has got; empty: nobody
}

type attempt struct {
	number  int
	lock    *core.Lock
	over    bool // its process has begun to release it
	aborted bool
	answer  string
}

// began notes an attempt whose call began at a time when there was an answer, or not.
func (r *request) began(k *core.Lock, answered bool) *attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &attempt{number: adapter.AttemptOf(k), lock: k}
	if answered {
		r.w.complain("%s: attempt %d after somebody has got the answer", r.key, a.number)
	}
	for _, other := range r.attempts {
		if !other.over && other.lock.Context().Err() == nil {
			r.w.complain("%s: attempts %d and %d at once", r.key, other.number, a.number)
		}
		if a.number == 1 && !other.aborted {
			r.w.complain("%s: a first attempt, and nothing is known of another one, %d, that was not aborted", r.key, other.number)
		}
	}
	r.attempts = append(r.attempts, a)
	return a
}

func (r *request) ends(a *attempt, how func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a.over = true
	how()
}

func (r *request) isAnswered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answer != ""
}

func (r *request) got(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.answer != "" && r.answer != text:
		r.w.complain("%s: two answers, %s and %s", r.key, r.answer, text)
	case !slices.ContainsFunc(r.attempts, func(a *attempt) bool { return a.answer == text }):
		r.w.complain("%s: the answer %s is of no attempt", r.key, text)
	}
	r.answer = text
}

// call calls core.Once, and reports whether there is an answer.
func (r *request) call(ctx context.Context, p *process, random *rand.Rand) bool {
	answered, ran := r.isAnswered(), false
	defer func() {
		if err := recover(); err != nil && err != errFailed {
			panic(err)
		}
	}()
	options := []core.Option{core.KeepFor(answerKept), core.Wait(between(random, time.Millisecond, r.w.lease))}
	if random.IntN(5) == 0 { // then nobody knows what its run has done, if that takes longer
		options = append(options, core.MaxHold(r.w.lease/4))
	}
	text, err := core.Once(ctx, p.locker, r.key, func(ctx context.Context) (text string, err error) {
		k, _ := core.FromContext(ctx)
		a := r.began(k, answered)
		if n := core.AttemptOf(ctx); n != a.number {
			r.w.complain("%s: attempt %d, and its function is told %d", r.key, a.number, n)
		}
		ran = true
		p.sleep(ctx, between(random, 0, r.w.lease/2))
		n := random.IntN(10)
		switch {
		case p.life.Err() != nil:
			return "", p.life.Err()
		case n < 4:
			r.ends(a, func() { a.aborted = true })
			err = errFailed
		default:
			text = r.w.nextID()
			r.ends(a, func() { a.answer = text })
		}
		if n == 0 {
			panic(err)
		}
		return text, err
	}, options...)
	switch {
	case ran: // others may get another answer, if this one is not kept
		return false
	case err == nil:
		r.got(text)
		return true
	}
	p.sleep(ctx, between(random, r.w.lease/100, r.w.lease/4))
	return false
}

// send sends the request until there is an answer.
func (r *request) send(ctx context.Context, p *process, random *rand.Rand) {
	lease := r.w.lease
	for ctx.Err() == nil {
		if r.digest == "" {
			if r.call(ctx, p, random) {
				return
			}
			continue
		}
		answered := r.isAnswered()
		k, err := p.locker.Lock(ctx, r.key, adapter.Attempt(r.digest, answerKept, false), core.Wait(between(random, time.Millisecond, lease)))
		if text, ok := adapter.AnswerOf(err); ok {
			r.got(string(text))
			return
		}
		if errors.Is(err, adapter.ErrReused) || errors.Is(err, adapter.ErrOutcomeUnknown) {
			r.w.complain("%s: %v", r.key, err)
		}
		if err != nil {
			p.sleep(ctx, between(random, lease/100, lease/4))
			continue
		}
		a := r.began(k, answered)
		p.sleep(k.Context(), between(random, 0, lease/2))
		switch n := random.IntN(10); {
		case p.life.Err() != nil:
			return
		case n < 2:
			r.ends(a, func() { a.aborted = true })
			_ = k.Abort(ctx)
		case n < 4:
			r.ends(a, func() {})
			_ = k.Unlock(ctx)
		default:
			text := r.w.nextID()
			r.ends(a, func() { a.answer = text })
			_ = adapter.Answer(ctx, k, []byte(text), answerKept)
		}
	}
}

var errNoAnswer = errors.New("there is no answer")

// once is send by core.Once. Who has made the attempt asks again, for its own answer may not be stored yet.
func (r *request) once(ctx context.Context, p *process, random *rand.Rand) {
	lease := r.w.lease
	for ctx.Err() == nil {
		answered, ran := r.isAnswered(), false
		text, err := core.Once(ctx, p.locker, r.key, func(inner context.Context) (text string, err error) {
			ran = true
			k, _ := core.FromContext(inner)
			a := r.began(k, answered)
			p.sleep(inner, between(random, 0, lease/2))
			switch n := random.IntN(10); {
			case p.life.Err() != nil || n < 2: // nobody knows
				r.ends(a, func() {})
				_ = k.Unlock(ctx)
			case n < 4:
				r.ends(a, func() { a.aborted = true })
			default:
				text = r.w.nextID()
				r.ends(a, func() { a.answer = text })
				return text, nil
			}
			return "", errNoAnswer
		}, core.KeepFor(answerKept), core.Wait(between(random, time.Millisecond, lease)))
		if err == nil && !ran {
			r.got(text)
			return
		}
		if errors.Is(err, core.ErrOutcomeUnknown) {
			r.w.complain("%s: %v", r.key, err)
		}
		p.sleep(ctx, between(random, lease/100, lease/4))
	}
}

// lossless are the faults after which Redis has all that it has confirmed, and its clock is right.
var lossless = []string{
	"noise", "silence", "requests stopped", "replies stopped", "connections reset", "dials refused", "dials hanging",
	"Redis restarted", "scripts flushed", "Redis overloaded", "clock at another speed", "process paused",
}

// Whatever becomes of processes and of what is on its way between them and Redis, all who send a
// request, or call core.Once, get one answer in the end, no attempt is made beside another or after the answer, and
// none takes itself for the first that is not.
func TestRequestsCountOnce(t *testing.T) {
	eachSeed(t, requestSeeds, func(t *testing.T, seed uint64) {
		w := newWorld(seed)
		made := 0
		synctest.Test(t, func(t *testing.T) { made = w.sendRequests() })
		t.Logf("%v; %d attempts at %d requests", w, made, requests)
		w.failOn(t)
	})
}

func (w *world) sendRequests() (attempts int) {
	w.server = startServer()
	for i := range w.hearing {
		w.processes = append(w.processes, w.newProcess(i))
	}
	over, end := context.WithCancel(context.Background())
	defer end()
	var all []*request
	for i := range requests {
		r := &request{w: w, key: fmt.Sprint("request ", i)}
		if i%2 == 0 {
			r.digest = fmt.Sprintf("%016x", i)
		}
		all = append(all, r)
		send := r.send
		if i%2 == 0 {
			send = r.once
		}
		for j := range requesters {
			p, random := w.processes[(i+j)%len(w.processes)], rand.New(rand.NewPCG(w.seed, uint64(requesters*i+j)))
			p.actors.Go(func() {
				ctx, cancel := context.WithCancel(p.life)
				defer cancel()
				defer context.AfterFunc(over, cancel)()
				p.sleep(ctx, between(random, 0, 4*w.lease))
				send(ctx, p, random)
			})
		}
	}
	w.rageLossless(10, w.lease, func(i int) {
		if i != 5 {
			return
		}
		victim := w.random.IntN(len(w.processes))
		w.tell("%v killed", w.processes[victim])
		w.processes[victim].kill()
		w.processes = slices.Delete(w.processes, victim, victim+1)
	})
	time.Sleep(10*w.lease + time.Minute)
	for _, r := range all {
		if !r.isAnswered() {
			w.complain("%s: nobody has got an answer", r.key)
		}
	}
	end()
	w.rest()
	for _, r := range all {
		attempts += len(r.attempts)
	}
	for _, p := range w.processes {
		p.leave(time.Second)
	}
	w.onlyTokens()
	w.server.Close()
	return attempts
}

// rageLossless injects lossless faults for a while each, calls each before every one, and heals all.
func (w *world) rageLossless(times int, pace time.Duration, each func(i int)) {
	n := &nemesis{world: w}
	var heal []func()
	for i := range times {
		each(i)
		f := faults[w.random.IntN(len(faults))]
		if !slices.Contains(lossless, f.name) {
			continue
		}
		w.tell("%s", f.name)
		if end := f.begin(n); end != nil {
			heal = append(heal, end)
		}
		n.pass(between(w.random, 0, pace))
		if len(heal) == 2 {
			heal[0]()
			heal = heal[1:]
		}
	}
	for _, end := range heal {
		end()
	}
	for _, p := range w.processes {
		p.network.heal()
	}
	w.buried.Wait()
}
