package conn

import (
	"math"
	"sync"
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
	// pipelineStall is how long a round trip may hold up others, at the least.
	pipelineStall = 5 * time.Millisecond
	// maxPipeline bounds the commands of one round trip, so that a slow reply holds up few of them.
	maxPipeline = 512
)

// pipeline lets commands to one server share round trips: one that finds few in flight goes at once, those
// that come meanwhile go together when it is back. So a lone command waits for nobody, and the more there
// are, the more of them go together.
type pipeline struct {
	server     *Server
	client     redis.UniversalClient // of one server, as far as is known
	direct     *direct
	replicated *pipeline // for commands that replicas must have; itself if it is that
	farLimit   int       // of round trips in flight to a server far away
	probe      *probe
	newPipe    func() (pipe redis.Pipeliner, done func())

	mu       sync.Mutex
	inFlight int // so many round trips are
	meter    meter
	window   window
	waiting  waiting
	spare    []*Queued // memory for the next sender
	stalled  *time.Timer
	stalls   int  // since a round trip has come back
	mayProbe bool // one command may go where there is no room
	connects bool // an answer was there since a round trip has opened a connection

	known sync.Map // each [*Script] that the server has run

	background background
}

func (s *Server) pipelineTo(client redis.UniversalClient) *pipeline {
	if p, ok := s.pipelines.Load(client); ok {
		return p.(*pipeline)
	}
	p := s.newPipeline(client, farAlone, new(probe))
	single, isSingle := client.(*redis.Client)
	if isSingle {
		p.farLimit = min(farAlone, single.Options().PoolSize)
		if client == s.client { // a node of a cluster lacks the hooks of the cluster's client
			p.direct = newDirect(single)
		}
	}
	p.replicated = s.newPipeline(client, math.MaxInt, p.probe)
	p.replicated.replicated = p.replicated
	kept, present := s.pipelines.LoadOrStore(client, p)
	if s.isStopped.Load() {
		p.stop()
		p.replicated.stop()
	}
	if !present && isSingle && client == s.client && s.WaitsForReplicas() {
		s.config.Workers.Start(func() { s.compareClocks(single) })
	}
	return kept.(*pipeline)
}

func (s *Server) newPipeline(client redis.UniversalClient, farLimit int, probe *probe) *pipeline {
	p := &pipeline{server: s, client: client, farLimit: farLimit, probe: probe, newPipe: pipesByOnePool(client), window: newWindow(s.late())}
	p.background.size = 1
	p.meter = meter{mu: &p.mu, server: serverOf(client), window: &p.window, waiting: p.waiting.size, tell: s.config.Loaded}
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

// tryBegin begins a round trip if so few are in flight that one more may be. mu is held.
func (p *pipeline) tryBegin(now time.Time) bool {
	most := maxInFlight
	if p.window.distance > farAway || p.replicates() {
		most = p.farLimit
	}
	if p.inFlight >= most || p.inFlight >= maxInFlight && !p.mayConnect(now) {
		return false
	}
	p.inFlight++
	return true
}

// mayConnect says that a round trip needs no new connection, as far as is known, or may open one: after each prompt answer one
// may, for that costs the server more than the command. mu is held.
func (p *pipeline) mayConnect(now time.Time) bool {
	_, isSingle := p.client.(*redis.Client)
	if idle(p.client) > 0 || !isSingle {
		return true
	}
	may := p.connects && p.window.isPrompt(now)
	p.connects = false
	return may
}

// enqueue has commands go together: at once, unless enough are in flight.
func (p *pipeline) enqueue(qs ...*Queued) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	room := p.window.room(now)
	if p.waiting.size() == 0 {
		p.stalled.Reset(p.stallTime(room))
	}
	p.waiting.add(qs)
	if room > 0 && p.tryBegin(now) {
		p.server.config.Workers.Begin(p)
	}
}

// stallTime is how long round trips may hold up others: twice as long as they usually take, four times as long after each that
// did not come back, and longer where there is no room. mu is held.
func (p *pipeline) stallTime(room int) time.Duration {
	stall := max(pipelineStall, 2*p.window.expected()) << min(2*p.stalls, 10)
	if room == 0 && p.window.inFlight > maxInFlight {
		stall = max(stall, p.window.late)
	}
	return min(stall, p.server.config.Timeout)
}

// refuse is why a command was never sent.
func (p *pipeline) refuse() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.meter.refuse()
}

// endTrip takes how a round trip has ended. mu is held.
func (p *pipeline) endTrip(t trip) {
	p.window.end(t)
	if t.ending == endedOtherwise {
		return
	}
	p.meter.note(t.sent.Add(t.took))
	if t.ending == endedByAnswer {
		p.stalls, p.connects = 0, true
		p.background.serverAnswers()
	}
}

// stop forgets what is to be repeated, and ends what is told of the load.
func (p *pipeline) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.background.state, p.background.waiting = backgroundStopped, nil
	p.meter.isStopped = true
}
