package simulation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/internal/buffered"
)

// redisServer is an embedded Redis with a clock of its own.
type redisServer struct {
	*miniredis.Miniredis

	mu     sync.Mutex
	offset time.Duration // of its clock, at since
	since  time.Time
	drift  float64       // seconds that its clock gains in one
	cost   time.Duration // of each script, one after the other
	down   bool
	wires  map[*wire]bool
	turn   chan struct{} // of the one script that is served, while they take time
}

var errDown = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("the server is down")}

func startServer() *redisServer {
	s := &redisServer{Miniredis: miniredis.NewMiniRedis(), since: time.Now(), wires: map[*wire]bool{}, turn: make(chan struct{}, 1)}
	s.ClockTTL(true)
	first, err := s.Dial() // starts it
	if err != nil {
		panic(err)
	}
	_ = first.Close()
	s.Server().SetPreHook(func(_ *server.Peer, cmd string, _ ...string) bool {
		if cmd == "EVALSHA" || cmd == "EVAL" { // what scripts call comes by here, too, under a lock
			s.queue()
			s.tick()
		}
		return false
	})
	return s
}

// queue has a script wait for its turn, while they take time.
func (s *redisServer) queue() {
	s.mu.Lock()
	cost := s.cost
	s.mu.Unlock()
	if cost > 0 {
		s.turn <- struct{}{}
		time.Sleep(cost)
		<-s.turn
	}
}

// setCost has each script take so much time from now on.
func (s *redisServer) setCost(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cost = d
}

// clock is what its clock shows. s.mu is held.
func (s *redisServer) clock() time.Time {
	passed := time.Since(s.since)
	return time.Now().Add(s.offset + time.Duration(s.drift*float64(passed)))
}

// tick lets its time pass up to now.
func (s *redisServer) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.SetTime(s.clock())
}

// step moves its clock. What expires does so at a point in time, so that after a step
// backwards it lasts longer.
func (s *redisServer) step(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.SetTime(s.clock())
	s.Exists("") // lets what has expired go
	if d < 0 {
		s.FastForward(d)
	}
	s.offset += d
	s.SetTime(s.clock())
}

// setDrift makes its clock run at another speed from now on.
func (s *redisServer) setDrift(rate float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.clock()
	s.since = time.Now()
	s.offset, s.drift = at.Sub(s.since), rate
}

// stop breaks all connections and accepts no more; what had not arrived is lost.
func (s *redisServer) stop() {
	s.mu.Lock()
	s.down = true
	var all []*wire
	for w := range s.wires {
		all = append(all, w)
	}
	s.mu.Unlock()
	for _, w := range all {
		w.reset()
	}
	s.flushScripts()
}

// start accepts connections again.
func (s *redisServer) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = false
}

// accept opens a connection to it.
func (s *redisServer) accept() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, errDown
	}
	return s.Dial()
}

// deliver hands it what is left of a connection that its client has given up.
func (s *redisServer) deliver(request []byte) {
	conn, err := s.accept()
	if err != nil {
		return
	}
	defer conn.Close()
	if _, err := conn.Write(request); err == nil {
		_, _ = bufio.NewReader(conn).ReadByte()
	}
}

// client reaches it directly, whatever the nemesis does to the others.
func (s *redisServer) client() *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1", // never dialled; an IP address, for go-redis looks names up
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			pipe, err := s.Dial()
			if err != nil {
				return nil, err
			}
			return buffered.New(pipe), nil
		},
	})
}

func (s *redisServer) flushScripts() {
	c := s.client()
	defer c.Close()
	if err := c.ScriptFlush(context.Background()).Err(); err != nil {
		panic(fmt.Errorf("SCRIPT FLUSH: %w", err))
	}
}
