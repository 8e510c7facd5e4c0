package overload

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// latency is how long an answer takes on its way.
const latency = 100 * time.Microsecond

// server is an embedded Redis behind one queue.
type server struct {
	redis *miniredis.Miniredis
	units atomic.Int64 // done, in parts of a unit
	dials atomic.Int64

	mu      sync.Mutex
	queue   []request
	more    chan struct{}
	stalled time.Time // until then it does nothing
}

// request is a command on its way.
type request struct {
	link  *link
	bytes []byte
	cost  int
}

func newServer(t *testing.T) *server {
	s := &server{redis: miniredis.NewMiniRedis(), more: make(chan struct{}, 1)}
	first, err := s.redis.Dial() // begins it
	if err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	go s.serve()
	return s
}

// stall has the server do nothing for a while.
func (s *server) stall(d time.Duration) {
	s.mu.Lock()
	s.stalled = time.Now().Add(d)
	s.mu.Unlock()
}

func (s *server) add(r request) {
	s.mu.Lock()
	s.queue = append(s.queue, r)
	s.mu.Unlock()
	s.wake()
}

func (s *server) wake() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// serve does one command after the other.
func (s *server) serve() {
	free, aged := time.Now(), time.Now()
	for {
		r, stalled := s.next()
		switch {
		case stalled > 0:
			time.Sleep(stalled)
			continue
		case r.link == nil:
			<-s.more
			continue
		}
		// The embedded Redis looks through all keys when its clock goes on: it does so rarely.
		if age := time.Since(aged); age >= 20*time.Millisecond {
			s.redis.FastForward(age)
			aged = time.Now()
		}
		s.redis.SetTime(time.Now())
		s.units.Add(int64(r.cost))
		_, _ = r.link.redis.Write(r.bytes)
		r.link.done()
		if free.Before(time.Now()) {
			free = time.Now()
		}
		free = free.Add(time.Duration(r.cost) * unitTime / unit)
		time.Sleep(time.Until(free))
	}
}

// next returns the first request, if there is one and the server does not stand still.
func (s *server) next() (r request, stalled time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stalled = time.Until(s.stalled); stalled > 0 || len(s.queue) == 0 {
		return r, stalled
	}
	r, s.queue = s.queue[0], s.queue[1:]
	return r, 0
}

// dial connects a client.
func (s *server) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	redis, err := s.redis.Dial()
	if err != nil {
		return nil, err
	}
	ours, theirs := net.Pipe()
	l := &link{server: s, client: theirs, redis: redis, more: make(chan struct{}, 1), end: make(chan struct{})}
	l.greeting.Store(subscribing())
	s.dials.Add(1)
	go l.readCommands()
	go l.readAnswers()
	go l.sendAnswers()
	return ours, nil
}
