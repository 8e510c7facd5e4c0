package conn

import (
	"context"
	"fmt"
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
	server     *Server
	client     redis.UniversalClient // of one server, as far as is known
	direct     atomic.Bool           // a command may go on its caller's goroutine: client keeps deadlines, as far as is seen
	replicated *pipeline             // for commands that replicas must have; itself if it is that
	alone      int                   // requests that go by themselves to a server far away
	probe      *probe

	mu      sync.Mutex
	busy    int           // round trips in flight
	away    time.Duration // how long one takes by itself
	waiting []*Queued
	room    []*Queued // for the next sender
	last    int       // so many went together
	stalled *time.Timer
}

// pipelineTo returns the pipeline to the server of a client.
func (s *Server) pipelineTo(client redis.UniversalClient) *pipeline {
	if p, ok := s.pipelines.Load(client); ok {
		return p.(*pipeline)
	}
	p := s.newPipeline(client, farAlone, new(probe))
	if single, ok := client.(*redis.Client); ok {
		p.alone = min(farAlone, single.Options().PoolSize)
		// A node of a cluster lacks the hooks of the cluster's client. So does what WithTimeout would return,
		// which might be told to keep deadlines.
		p.direct.Store(client == s.client && keepsDeadlines(single.Options()))
	}
	p.replicated = s.newPipeline(client, math.MaxInt, p.probe)
	p.replicated.replicated = p.replicated
	kept, _ := s.pipelines.LoadOrStore(client, p)
	return kept.(*pipeline)
}

// keepsDeadlines says that a client has nothing of its user's that may block on the goroutine that sends a
// command. Dialers do so on others. Hooks cannot be seen, nor what connections do.
func keepsDeadlines(o *redis.Options) bool {
	return o.ContextTimeoutEnabled && o.ReadTimeout >= 0 && o.WriteTimeout >= 0 && o.Limiter == nil && o.OnConnect == nil &&
		o.CredentialsProvider == nil && o.CredentialsProviderContext == nil && o.StreamingCredentialsProvider == nil
}

func (s *Server) newPipeline(client redis.UniversalClient, alone int, probe *probe) *pipeline {
	p := &pipeline{server: s, client: client, alone: alone, probe: probe}
	p.stalled = time.AfterFunc(pipelineStall, p.hurry)
	return p
}

// pipelineFor returns the pipeline for a command.
func (s *Server) pipelineFor(c *Command) *pipeline {
	p := s.pipelineTo(s.ClientFor(c.key()))
	if s.replicates(c) {
		return p.replicated
	}
	return p
}

// replicates says whether replicas must have what its commands write.
func (p *pipeline) replicates() bool { return p == p.replicated }

// enter reports whether a command may go by itself; then leave must follow.
func (p *pipeline) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begins()
}

// begins begins a round trip if so few are in flight that one more may be. mu is held.
func (p *pipeline) begins() bool {
	most := maxInFlight
	if p.away > farAway || p.replicates() {
		most = p.alone
	}
	begins := p.busy < most
	if begins {
		p.busy++
	}
	return begins
}

// goesOn says that a round trip that is back is followed by another. mu is held.
func (p *pipeline) goesOn() bool {
	if len(p.waiting) > 0 {
		return true
	}
	p.busy--
	return false
}

// add has commands go together: at once, unless enough are in flight.
func (p *pipeline) add(qs ...*Queued) {
	p.mu.Lock()
	defer p.mu.Unlock()
	begins := p.begins()
	if begins && len(qs) == 1 {
		p.server.config.Workers.Begin(qs[0].dispatch())
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
// waits nevertheless: for an answer that comes at once, or in vain, when Redis has just fallen silent. A hook
// of the client's that panics is a failure like others: whoever would recover from the panic above could not
// know what became of the command.
func (p *pipeline) sendDirectly(ctx context.Context, d *dispatch, sent, end time.Time) (got answer) {
	own, early := ctx.Deadline()
	if early = early && own.Before(end); early {
		d.attempt.deadline = own
	}
	t := p.server.ticketFor(1, d.attempt, end.Sub(sent))
	var stop func() bool
	if ctx.Done() != nil {
		stop = context.AfterFunc(ctx, t.cancel)
	}
	defer func() {
		if hook := recover(); hook != nil {
			got = answer{err: fmt.Errorf("a hook of the client's has panicked: %v", hook)}
		}
		if stop == nil || stop() {
			p.server.giveBack(t)
		}
		d.attempt.end(false)
		p.leave(sent, d.attempt)
	}()
	value, err := d.process(p.client)
	if early && isTimeout(err) && !time.Now().Before(own) {
		<-d.attempt.Done() // the timer of ctx is a moment behind that of the connection
	}
	if err != nil && ctx.Err() != nil && !isRefusal(err) {
		p.server.heard(context.Canceled) // it says nothing about Redis
		d.over = true
		return answer{err: Ended(ctx)}
	}
	p.server.heard(err)
	return p.ended(d, answer{value, err}, end)
}

// took notes how long the round trip of a single command was. The shortest of hundreds counts: others are
// long because the machine is busy. One that was back too late shows that something in the client blocks: no
// other caller lends it his goroutine. mu is held.
func (p *pipeline) took(sent time.Time, a *attempt) {
	d := time.Since(sent)
	if min(d, sent.Add(d).Sub(a.deadline)) > overrun {
		p.direct.Store(false)
	}
	if p.away == 0 {
		p.away = d
	}
	p.away = min(d, p.away+p.away/256)
}

// leave ends the round trip of a single command, which was sent at a time. If others wait, a sender takes its
// place.
func (p *pipeline) leave(sent time.Time, a *attempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took(sent, a)
	if p.goesOn() {
		p.server.config.Workers.Begin(p)
	}
}

// hurry sends what has waited for too long for round trips that do not come back.
func (p *pipeline) hurry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) > 0 {
		p.busy++
		p.server.config.Workers.Begin(p)
	}
}

// Run is a sender: it sends what waits until nothing does.
func (p *pipeline) Run() { p.sendOn(nil) }

// sendOn is Run after it has sent some.
func (p *pipeline) sendOn(qs []*Queued) {
	for {
		p.send(qs)
		if !p.enough() {
			runtime.Gosched() // those that have their answers may have more to send: a batch costs little more than a command
		}
		if qs = p.take(qs); len(qs) == 0 {
			return
		}
	}
}

// enough says that as many wait as went last.
func (p *pipeline) enough() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting) >= p.last
}

// take returns what goes next, in the memory of what a sender has sent; none: it must end.
func (p *pipeline) take(room []*Queued) []*Queued {
	clear(room)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.goesOn() {
		p.room = room[:0]
		return nil
	}
	if room == nil {
		room, p.room = p.room, nil
	}
	n := min(len(p.waiting), maxPipeline)
	room = append(room[:0], p.waiting[:n]...)
	p.waiting, p.last = slices.Delete(p.waiting, 0, n), n
	if len(p.waiting) > 0 {
		p.stalled.Reset(pipelineStall)
	} else {
		p.stalled.Stop()
	}
	return room
}

// send is for commands that somebody waits for, as long as he does.
func (p *pipeline) send(qs []*Queued) {
	qs = slices.DeleteFunc(qs, func(q *Queued) bool { return q.dispatch().unwanted() })
	switch sent := time.Now(); {
	case len(qs) == 0:
	case len(qs) == 1 && !p.replicates():
		d := qs[0].dispatch()
		value, err := d.process(p.server.client) // a cluster's, which follows redirections, and has hooks
		p.mu.Lock()
		p.took(sent, d.attempt)
		p.mu.Unlock()
		p.server.heard(err)
		d.Receive(Reply{Value: value}, err)
	default:
		var ctx context.Context = qs[0].dispatch().attempt
		if len(qs) > 1 {
			longest, cancel := context.WithTimeout(context.Background(), slices.MaxFunc(qs, byTimeout).Timeout)
			defer cancel()
			ctx = longest
		}
		for i, a := range p.roundTrip(ctx, qs) {
			qs[i].report(a, sent)
		}
	}
}
