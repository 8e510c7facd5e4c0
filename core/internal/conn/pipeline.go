package conn

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// maxInFlight is how many round trips to a server are in flight: the server has the next one while the
	// answers to the last are taken. Where it is as far away as farAway there are farAlone: then what a request
	// costs is less than waiting for another to come back.
	maxInFlight = 2
	farAlone    = 16
	farAway     = 400 * time.Microsecond
	// pipelineStall is how long a round trip may hold up others.
	pipelineStall = 5 * time.Millisecond
	// overrun is how long after the end of its time a command may come back because the machine is busy.
	overrun = 100 * time.Millisecond
	// maxPipeline bounds the commands of one round trip, so that a slow reply holds up few of them.
	maxPipeline = 512
)

// pipeline lets commands to one server share round trips: one that finds few in flight goes at once, those
// that come meanwhile go together when it is back. So a lone command waits for nobody, and the more there
// are, the more of them go together.
type pipeline struct {
	server        *Server
	client        redis.UniversalClient    // of one server, as far as is known
	direct        atomic.Bool              // client, or withDeadlines, keeps deadlines, as far as is seen
	withDeadlines *redis.Client            // the copy of a client that does not
	options       *redis.Options           // of that client
	last          atomic.Pointer[lastHook] // of client, which has passed a command
	isHooked      atomic.Bool              // client was given a last hook
	replicated    *pipeline                // for commands that replicas must have; itself if it is that
	farLimit      int                      // of round trips in flight to a server far away
	probe         *probe

	mu       sync.Mutex
	inFlight int           // so many round trips are
	distance time.Duration // how long a lone command takes to the server and back
	waiting  []*Queued
	spare    []*Queued // memory for the next sender
	lastSize int       // so many commands went together
	stalled  *time.Timer
}

func (s *Server) pipelineTo(client redis.UniversalClient) *pipeline {
	if p, ok := s.pipelines.Load(client); ok {
		return p.(*pipeline)
	}
	p := s.newPipeline(client, farAlone, new(probe))
	single, isSingle := client.(*redis.Client)
	if isSingle {
		// A node of a cluster lacks the hooks of the cluster's client. So does what WithTimeout returns.
		o := single.Options()
		p.farLimit = min(farAlone, o.PoolSize)
		p.direct.Store(client == s.client && keepsDeadlines(o))
		if p.direct.Load() && !o.ContextTimeoutEnabled {
			p.options, p.withDeadlines = o, single.WithTimeout(o.ReadTimeout)
			p.withDeadlines.Options().WriteTimeout, p.withDeadlines.Options().ContextTimeoutEnabled = o.WriteTimeout, true
		}
	}
	p.replicated = s.newPipeline(client, math.MaxInt, p.probe)
	p.replicated.replicated = p.replicated
	kept, present := s.pipelines.LoadOrStore(client, p)
	if !present && isSingle && client == s.client && s.WaitsForReplicas() {
		s.config.Workers.Start(func() { s.compareClocks(single) })
	}
	return kept.(*pipeline)
}

// keepsDeadlines says that a client, or a copy, has nothing of its user's that may block on the goroutine that sends a
// command. Dialers do so on others. Hooks cannot be seen, nor what connections do.
func keepsDeadlines(o *redis.Options) bool {
	least := min(o.ReadTimeout, o.WriteTimeout)
	return (least > 0 || least == 0 && o.ContextTimeoutEnabled) && o.Limiter == nil && o.OnConnect == nil &&
		o.CredentialsProvider == nil && o.CredentialsProviderContext == nil && o.StreamingCredentialsProvider == nil
}

func (s *Server) newPipeline(client redis.UniversalClient, farLimit int, probe *probe) *pipeline {
	p := &pipeline{server: s, client: client, farLimit: farLimit, probe: probe}
	p.stalled = time.AfterFunc(pipelineStall, p.sendStalled)
	return p
}

func (s *Server) pipelineFor(c *Command) *pipeline {
	p := s.pipelineTo(s.ClientFor(c.key()))
	if s.WaitsForReplicas() && c.Script.Replicate {
		return p.replicated
	}
	return p
}

func (p *pipeline) replicates() bool { return p == p.replicated }

// tryEnter reports whether a command may go by itself; then leave must follow.
func (p *pipeline) tryEnter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tryBegin()
}

// tryBegin begins a round trip if so few are in flight that one more may be. mu is held.
func (p *pipeline) tryBegin() bool {
	most := maxInFlight
	if p.distance > farAway || p.replicates() {
		most = p.farLimit
	}
	if p.inFlight >= most {
		return false
	}
	p.inFlight++
	return true
}

// tryGoOn ends a round trip, unless another follows it because commands wait. mu is held.
func (p *pipeline) tryGoOn() bool {
	if len(p.waiting) > 0 {
		return true
	}
	p.inFlight--
	return false
}

// enqueue has commands go together: at once, unless enough are in flight.
func (p *pipeline) enqueue(qs ...*Queued) {
	p.mu.Lock()
	defer p.mu.Unlock()
	begins := p.tryBegin()
	if begins && len(qs) == 1 && qs[0].dispatch != nil {
		p.server.config.Workers.Begin(qs[0].dispatch)
		return
	}
	if len(p.waiting) == 0 {
		p.stalled.Reset(pipelineStall)
	}
	p.waiting = append(p.waiting, qs...)
	if begins {
		p.server.config.Workers.Begin(p)
	}
}

// sendDirectly sends one command on the caller's goroutine, and returns by then: no other has to be woken,
// which is most of what a lone command costs. A deadline of ctx it keeps. When ctx is cancelled meanwhile it
// waits nevertheless: for an answer that comes at once, or in vain, when Redis has just fallen silent.
func (p *pipeline) sendDirectly(ctx context.Context, d *dispatch, sent, end time.Time) answer {
	own, early := ctx.Deadline()
	if early = early && own.Before(end); early {
		d.context.deadline = own
	}
	slot := p.server.slotFor(1, d.context, end.Sub(sent))
	stop := func() bool { return true }
	if ctx.Done() != nil {
		stop = context.AfterFunc(ctx, slot.cancel)
	}
	defer func() {
		if stop() {
			p.server.giveBack(slot)
		}
		d.context.end(context.Canceled)
		p.leave(sent, d.context.deadline)
	}()
	d.progress = answered
	value, err := d.queued.process(d.context, p, p.client)
	if early && isTimeout(err) && !time.Now().Before(own) {
		<-d.context.Done() // the timer of ctx is a moment behind that of the connection
	}
	if err != nil && ctx.Err() != nil && !isRefusal(err) {
		p.server.noteOutcome(context.Canceled) // it says nothing about Redis
		d.progress = awaited
		return answer{err: Ended(ctx)}
	}
	p.server.noteOutcome(err)
	return answer{value, err}
}

// noteTime notes how long the round trip of a single command was. The shortest of hundreds counts: others are
// long because the machine is busy. One that was back too late shows that something in the client blocks: no
// other caller lends it his goroutine. mu is held.
func (p *pipeline) noteTime(sent, deadline time.Time) {
	took := time.Since(sent)
	if min(took, sent.Add(took).Sub(deadline)) > overrun && (p.withDeadlines == nil || p.last.Load() != nil) {
		p.direct.Store(false)
	}
	if p.distance == 0 {
		p.distance = took
	}
	p.distance = min(took, p.distance+p.distance/256)
}

// leave ends the round trip of a single command, which was sent at a time. If others wait, a sender takes its
// place.
func (p *pipeline) leave(sent, deadline time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noteTime(sent, deadline)
	if p.tryGoOn() {
		p.server.config.Workers.Begin(p)
	}
}

// sendStalled sends what has waited for too long for round trips that do not come back.
func (p *pipeline) sendStalled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) > 0 {
		p.inFlight++
		p.server.config.Workers.Begin(p)
	}
}

// Run is a sender: it sends what waits until nothing does.
func (p *pipeline) Run() { p.sendOn(nil) }

// sendOn is Run after it has sent some.
func (p *pipeline) sendOn(qs []*Queued) {
	for {
		p.send(qs)
		if qs = p.takeWaiting(qs); len(qs) == 0 {
			return
		}
	}
}

// takeWaiting returns what goes next, in the memory of what a sender has sent; none: it must end.
func (p *pipeline) takeWaiting(sent []*Queued) []*Queued {
	clear(sent)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) < p.lastSize {
		p.mu.Unlock()
		runtime.Gosched() // those that have their answers may have more to send: a batch costs little more than a command
		p.mu.Lock()
	}
	if !p.tryGoOn() {
		p.spare = sent[:0]
		return nil
	}
	if sent == nil {
		sent, p.spare = p.spare, nil
	}
	n := min(len(p.waiting), maxPipeline)
	sent = append(sent[:0], p.waiting[:n]...)
	p.waiting, p.lastSize = slices.Delete(p.waiting, 0, n), n
	if len(p.waiting) > 0 {
		p.stalled.Reset(pipelineStall)
	} else {
		p.stalled.Stop()
	}
	return sent
}

// send is for commands that somebody waits for, as long as he does, and for those that have begun.
func (p *pipeline) send(qs []*Queued) {
	qs = slices.DeleteFunc(qs, func(q *Queued) bool { return q.dispatch.is(abandoned) })
	switch sent := time.Now(); {
	case len(qs) == 0:
	case len(qs) == 1 && !p.replicates():
		q, ctx := qs[0], qs[0].context(sent)
		value, err := q.process(ctx, p, p.server.client) // a cluster's, which follows redirections, and has hooks
		// What nobody waits for has a context without an end, and may wait for a connection for as long as the client says.
		if q.dispatch != nil {
			p.addLastHook(q.dispatch)
			p.mu.Lock()
			p.noteTime(sent, ctx.deadline)
			p.mu.Unlock()
		}
		p.server.noteOutcome(err)
		q.receive(sent, answer{value, err})
	default:
		var ctx context.Context = qs[0].context(sent)
		if len(qs) > 1 {
			longest, cancel := context.WithTimeout(context.Background(), slices.MaxFunc(qs, byTimeout).Timeout)
			defer cancel()
			ctx = longest
		}
		for i, a := range p.roundTrip(ctx, qs) {
			qs[i].receive(sent, a)
		}
	}
}
