package conn

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// pipelineAfter is how many requests to one server are in flight before others
	// share a round trip; farAfter where the server is as far away as farAway: then what a
	// request costs is less than waiting for another to come back.
	pipelineAfter = 2
	farAfter      = 16
	farAway       = 400 * time.Microsecond
	// roundTripFor is for how long a round trip is remembered.
	roundTripFor = time.Second
	// pipelineStall is how long those may hold up others.
	pipelineStall = 5 * time.Millisecond
	// maxPipeline bounds the commands of one round trip, so that a slow reply holds up
	// few of them.
	maxPipeline = 512
)

// pipeline lets commands to one server share round trips: a command that finds few others
// in flight goes at once, those that come while these are in flight go together
// when one of them is back. So a lone command waits for nobody, and the more there
// are, the more of them go together.
type pipeline struct {
	server  *Server
	client  redis.UniversalClient // of one server, as far as is known
	bounded bool                  // client obeys the deadline of a context
	alone   int                   // requests that go by themselves to a server far away
	probe   probe

	mu       sync.Mutex
	busy     int // round trips in flight
	waiting  []*Queued
	stalled  *time.Timer
	shortest time.Duration // round trip since then, and before
	since    time.Time
	before   time.Duration
}

func (s *Server) pipelineTo(client redis.UniversalClient) *pipeline {
	if p, ok := s.pipelines.Load(client); ok {
		return p.(*pipeline)
	}
	p := &pipeline{server: s, client: client, alone: farAfter}
	// A node of a cluster lacks the hooks of the cluster's client.
	single, ok := client.(*redis.Client)
	if ok {
		p.alone = min(farAfter, single.Options().PoolSize)
	}
	p.bounded = ok && client == s.client && single.Options().ContextTimeoutEnabled
	kept, _ := s.pipelines.LoadOrStore(client, p)
	return kept.(*pipeline)
}

// enter reports whether the command may go by itself; then leave must follow. If
// not, it will be sent with others, unless nil.
func (p *pipeline) enter(q *Queued) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mayGo() {
		p.busy++
		return true
	}
	if q != nil {
		p.add(q)
	}
	return false
}

// mayGo says that so few round trips are in flight that one more may be. mu is held.
func (p *pipeline) mayGo() bool {
	return p.busy < pipelineAfter || p.busy < p.alone && p.before > farAway
}

// add has commands go with others. mu is held.
func (p *pipeline) add(qs ...*Queued) {
	if len(p.waiting) == 0 {
		if p.stalled == nil {
			p.stalled = time.AfterFunc(pipelineStall, p.hurry)
		} else {
			p.stalled.Reset(pipelineStall)
		}
	}
	p.waiting = append(p.waiting, qs...)
}

// sendDirectly sends one command on the caller's goroutine, and returns by then: no other
// has to be woken, which is most of what a lone command costs. A deadline of ctx it keeps.
// When ctx is cancelled meanwhile it waits nevertheless: for an answer that comes at
// once, or in vain, when Redis has just fallen silent.
func (p *pipeline) sendDirectly(ctx context.Context, d *dispatch, a *attempt, end time.Time) answer {
	a.begin(ctx, d, end)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(end) {
		a.deadline = deadline
	}
	var stop func() bool
	if ctx.Done() != nil {
		stop = context.AfterFunc(ctx, a.wait.cancel)
	}
	sent := time.Now()
	defer func() {
		if stop == nil || stop() {
			a.finish()
		}
		if p.leave(sent) {
			p.server.config.Workers.Start(p.drain)
		}
	}()
	value, err := process(a, p.client, d, &a.cmd)
	if err != nil && a.deadline.Before(end) && !time.Now().Before(a.deadline) && isTimeout(err) {
		<-a.over // the timer of ctx is a moment behind that of the connection
	}
	if err != nil && ctx.Err() != nil && !isRefusal(err) {
		p.server.heard(context.Canceled) // it says nothing about Redis
		return answer{err: Ended(ctx), over: true}
	}
	p.server.heard(err)
	return answer{value: value, err: err}.by(end)
}

// took notes how long a round trip was. What counts is the shortest of a second: others are
// long because the machine is busy. mu is held.
func (p *pipeline) took(d time.Duration) {
	now := time.Now()
	switch {
	case p.since.IsZero():
		p.before, p.shortest, p.since = d, d, now
	case now.Sub(p.since) > roundTripFor:
		p.before, p.shortest, p.since = p.shortest, d, now
	}
	p.shortest, p.before = min(p.shortest, d), min(p.before, d)
}

// leave ends the round trip of a single command, which was sent at a time. If others wait
// they take its place: drain must follow.
func (p *pipeline) leave(sent time.Time) (others bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took(time.Since(sent))
	if others = len(p.waiting) > 0; !others {
		p.busy--
	}
	return others
}

// hurry sends what has waited for too long for round trips that do not come back.
func (p *pipeline) hurry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) > 0 {
		p.busy++
		p.server.config.Workers.Start(p.drain)
	}
}

// drain sends what waits until nothing does.
func (p *pipeline) drain() {
	for {
		p.mu.Lock()
		n := min(len(p.waiting), maxPipeline)
		if n == 0 {
			p.busy--
			p.waiting = nil
			p.mu.Unlock()
			return
		}
		qs := p.waiting[:n:n]
		p.waiting = p.waiting[n:]
		if len(p.waiting) > 0 {
			p.stalled.Reset(pipelineStall)
		} else {
			p.stalled.Stop()
		}
		p.mu.Unlock()
		p.send(qs)
		if n > 1 {
			runtime.Gosched() // those that have their answers may have more to send
		}
		clear(qs)
	}
}

// send is for commands that somebody waits for, as long as he does.
func (p *pipeline) send(qs []*Queued) {
	timeout := time.Duration(0)
	for _, q := range qs {
		timeout = max(timeout, q.Timeout)
	}
	qs = slices.DeleteFunc(qs, func(q *Queued) bool { return !q.dispatch.wanted() })
	if len(qs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	sent := time.Now()
	answers := p.roundTrip(ctx, qs, false)
	p.server.heard(answers[0].err)
	for i, q := range qs {
		q.report(answers[i], sent)
	}
}

// roundTrip sends commands to the server. What that does not do, because its script
// cache is empty, the slot has moved or the node is gone, goes once more, by a way that
// follows redirections, with the text of the script; what a merged script has left goes by itself. replicated: replicas must have
// what they write.
func (p *pipeline) roundTrip(ctx context.Context, qs []*Queued, replicated bool) []answer {
	s, way := p.server, p
	answers := make([]answer, len(qs))
	batches := pack(qs, len(qs) > 1 && p.merges())
	for len(batches) > 0 {
		wait := way.exec(ctx, batches, replicated)
		var next []*batch
		for _, b := range batches {
			err := b.cmd.Err()
			switch redirected := p.redirected(err); {
			case b.divides():
				next = append(next, b.divide()...)
			case !b.again && redirected && replicated:
				a := &answers[b.places[0]]
				a.value, a.err = s.runReplicated(ctx, b.calls[0].Command, b.calls[0].dispatch)
			case !b.again && (redirected || isUnknownScript(err)):
				next = append(next, &batch{calls: b.calls, places: b.places, again: true})
			default:
				next = append(next, b.read(answers)...)
				for _, place := range b.places {
					if a := &answers[place]; replicated && a.err == nil {
						a.err = s.verify(qs[place].Command, a.value, wait)
					}
				}
			}
		}
		batches = next
		if !replicated { // WAIT has to go where the scripts go
			way = s.pipelineTo(s.client)
		}
	}
	return answers
}

// redirected says that another way may do what the server has not done.
func (p *pipeline) redirected(err error) bool {
	if IsClosed(err) {
		return p.client != p.server.client
	}
	return err != nil && (redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK"))
}

// exec sends batches in one pipeline of go-redis. With replicated, its result is that of
// WAIT.
func (p *pipeline) exec(ctx context.Context, batches []*batch, replicated bool) (wait *redis.Cmd) {
	for _, b := range batches {
		b.cmd.set(ctx, b.line(), b)
	}
	if len(batches) == 1 && !replicated {
		_ = p.client.Process(ctx, &batches[0].cmd) // which keeps its error
		return nil
	}
	pipe := p.client.Pipeline()
	for _, b := range batches {
		_ = pipe.Process(ctx, &b.cmd)
	}
	if replicated {
		wait = p.server.queueWait(ctx, pipe)
	}
	_, err := pipe.Exec(ctx)
	for _, b := range batches {
		if cmd := &b.cmd; err != nil && cmd.Err() == nil && cmd.Val() == nil {
			cmd.SetErr(err) // a hook of the client's has stopped the pipeline, and told nobody
		}
	}
	return wait
}
