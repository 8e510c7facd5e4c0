// Package conn brings scripts to a Redis and says what is known of their outcome. It knows nothing of what
// the scripts are for.
//
// A [Server] is one Redis: a single server, the master that Sentinel names, a cluster or a ring. A [Command] is a [Script] with its keys
// and arguments, which leaves by one of these:
//
//	Do, DoAll      when        at once
//	               who waits   the caller, for the reply of each
//	               again       a copy where it has Resends, until the timeout
//	Begin          when        at once, and Withdraw takes it back as long as it is in the pipeline's queue
//	               who waits   nobody: its Recipient is told the reply
//	               again       never
//	Queue, Flush   when        Queue collects; Flush sends all of them, each server's share in a pipeline: renewals
//	               who waits   nobody, as with Begin
//	               again       at once, after each connection that turns out to be dead
//	Repeat         when        behind all others, when Redis has answered the one before: compensations
//	               who waits   nobody, as with Begin
//	               again       by its Recipient, which calls Repeat
//
// [OutcomeOf] tells what is known of one that failed.
//
// go-redis never sends a command again by itself here. A command that may run twice is given [Resends], and what somebody waits for is
// then sent again when its connection breaks. One whose outcome nobody has heard of is compensated: see
// [Command].
//
// A command that finds few others in flight to its server goes by itself. Others share round trips, and where
// one server has all keys several of a kind become one command, a batch: see Merged of [Script].
package conn

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Config is what a Server needs to know; Replicas may be left out.
type Config struct {
	Prefix  string        // of the keys it writes to find out whether one server has all
	Timeout time.Duration // of one request; silence is measured by it
	Workers Workers
	// IsMember says that a [Gate] admits the calls of several servers. The window of each is for one that is slower then.
	IsMember bool
	// Loaded is told the load of the server, or of each node, once a second while it is asked, and when an overload begins and
	// ends. It does not block.
	Loaded func(Load)
	// Forgot is called when the server does not know a script any more that it has run: it may have started anew, with nothing of what
	// it knew. It does not block. nil: nobody wants to know.
	Forgot func()
	// Replicas that must have what certain scripts write. Check it first.
	Replicas Replicas
	// ReplicaClock is told, of each replica of a single master, by how much its clock is ahead, give or take the
	// doubt: once, in the background. Only a Server that waits for replicas needs it.
	ReplicaClock func(addr string, ahead, doubt time.Duration)
}

// Workers runs what a Server does in the background. Neither method blocks.
type Workers interface {
	Start(f func())
	Begin(task interface{ Run() })
}

// Server is one Redis, as a client reaches it. Its methods are safe for concurrent use.
type Server struct {
	client    redis.UniversalClient
	config    Config
	pipelines sync.Map // by client
	isStopped atomic.Bool
	slots     sync.Pool // holds each [*waitSlot] that nobody uses
	topology  topology
	silence   silence
	reload    interval

	mu    sync.Mutex
	queue []*Queued // that the next Flush sends
}

// New returns a Server. It does no network I/O and starts no goroutine. The client stays the caller's.
func New(client redis.UniversalClient, c Config) *Server {
	if c.Loaded == nil {
		c.Loaded = func(Load) {}
	}
	if c.Forgot == nil {
		c.Forgot = func() {}
	}
	return &Server{client: client, config: c}
}

func (s *Server) Client() redis.UniversalClient { return s.client }

// Stop ends what is repeated, and what is told of the load.
func (s *Server) Stop() {
	s.isStopped.Store(true)
	s.pipelines.Range(func(_, p any) bool {
		for _, p := range []*pipeline{p.(*pipeline), p.(*pipeline).replicated} {
			p.stop()
		}
		return true
	})
}

// late is by how much longer than the distance an answer may take.
func (s *Server) late() time.Duration {
	if s.config.IsMember {
		return min(2*lateMax, 2*s.config.Timeout/latePart)
	}
	return min(lateMax, s.config.Timeout/latePart)
}

// failoverAddr is the address that go-redis shows for every Sentinel client.
const failoverAddr = "FailoverClient"

// Same reports whether two clients surely speak to one Redis.
func Same(a, b redis.UniversalClient) bool {
	if a == b {
		return true
	}
	x, ok := a.(*redis.Client)
	y, also := b.(*redis.Client)
	return ok && also &&
		x.Options().Network == y.Options().Network &&
		x.Options().Addr == y.Options().Addr &&
		x.Options().DB == y.Options().DB &&
		x.Options().Addr != failoverAddr
}

// lately is how long ago an answer may be for the next one to be expected at once.
const lately = 100 * time.Millisecond

// silence knows for how long a Redis has been asked without an answer. A caller who gives up early learns
// from it whether that was his own haste.
type silence struct {
	mu     sync.Mutex
	since  time.Time // zero: it has answered
	asked  time.Time // last
	heard  time.Time // last
	failed bool      // a command has, since; else all of them were given up
	closed time.Time // when idle connections were, last
}

// ask notes that a command is about to be sent. One that was given up long ago may never have been sent: it
// says nothing. isPrompt: Redis has answered lately, so nobody has waited for longer.
func (s *silence) ask(now time.Time, timeout time.Duration) (isPrompt bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() || !s.failed && now.After(s.asked.Add(timeout)) {
		s.since, s.failed = now, false
	}
	s.asked = now
	return now.Sub(s.heard) < lately
}

// end notes how a command has ended. A refusal that passes is no answer: nobody knows whether a lock is busy.
func (s *silence) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil || isRefusal(err) && !IsTransient(err):
		s.since, s.failed, s.heard = time.Time{}, false, time.Now()
	case !errors.Is(err, context.Canceled):
		s.failed = true
	}
}

// IsSilent reports whether this Redis has been asked for d without an answer to anybody.
func (s *Server) IsSilent(d time.Duration) bool {
	s.silence.mu.Lock()
	defer s.silence.mu.Unlock()
	return !s.silence.since.IsZero() && time.Since(s.silence.since) >= d
}

// mayCloseConnections reports whether the silence lasts for d, and for twice as long as when it last said so: each time all idle
// connections are opened anew.
func (s *silence) mayCloseConnections(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.since.IsZero() || now.Sub(s.since) < max(d, 2*s.closed.Sub(s.since)) {
		return false
	}
	s.closed = now
	return true
}

// noteOutcome takes how a request has ended.
func (s *Server) noteOutcome(err error) {
	s.silence.end(err)
	if err != nil && (!isRefusal(err) || hasPrefix(err, notHere...)) {
		s.LookAgain()
	}
}
