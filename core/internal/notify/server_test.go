//go:build go1.25

package notify_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	redisserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/notify"
	"github.com/latchkey-go/latchkey/internal/buffered"
)

const ms = time.Millisecond

// quiet is a logger for go-redis, which reports every broken connection.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(quiet{}) }

// server is a Redis in a bubble. It has sharded pub/sub in so far as it confirms.
type server struct {
	*miniredis.Miniredis
	thaw chan struct{} // closed at the end: releases what hangs

	mu       sync.Mutex
	conns    []net.Conn
	down     bool
	hangs    string     // a command that is never answered
	commands [][]string // that were about channels
	peer     *redisserver.Peer
}

func newServer(t *testing.T) *server {
	s := &server{Miniredis: miniredis.NewMiniRedis(), thaw: make(chan struct{})}
	client := s.client()
	if err := client.Ping(context.Background()).Err(); err != nil { // which starts it
		t.Fatal(err)
	}
	_ = client.Close()
	s.Server().SetPreHook(s.hook)
	t.Cleanup(func() {
		close(s.thaw)
		s.Close()
	})
	return s
}

func (s *server) hook(p *redisserver.Peer, cmd string, args ...string) bool {
	s.mu.Lock()
	hangs := s.hangs == cmd
	switch cmd {
	case "SUBSCRIBE", "UNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE":
		s.commands = append(s.commands, append([]string{cmd}, args...))
	}
	s.mu.Unlock()
	switch {
	case hangs:
		<-s.thaw
	case cmd == "SSUBSCRIBE":
		for _, channel := range args {
			reply(p, "ssubscribe", channel)
		}
		s.mu.Lock()
		s.peer = p
		s.mu.Unlock()
	case cmd == "SUNSUBSCRIBE":
		time.Sleep(100 * ms)
		for _, channel := range args {
			reply(p, "sunsubscribe", channel)
		}
	default:
		return false
	}
	return true
}

func reply(p *redisserver.Peer, kind, channel string) {
	p.Block(func(w *redisserver.Writer) {
		w.WriteLen(3)
		w.WriteBulk(kind)
		w.WriteBulk(channel)
		w.WriteInt(1)
		w.Flush()
	})
}

func (s *server) dial(context.Context, string, string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("the server is down")}
	}
	pipe, err := s.Dial()
	if err != nil {
		return nil, err
	}
	c := buffered.New(pipe)
	s.conns = append(s.conns, c)
	return c, nil
}

// set makes the server misbehave.
func (s *server) set(down bool, hangs string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.hangs = down, hangs
}

func (s *server) breakConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.conns = nil
}

func (s *server) client() *redis.Client {
	return redis.NewClient(s.options("127.0.0.1:1")) // never dialled
}

func (s *server) options(addr string) *redis.Options {
	return &redis.Options{Addr: addr, Dialer: s.dial, Protocol: 2, MaxRetries: -1, DisableIdentity: true}
}

func (s *server) wantCommands(t *testing.T, want ...[]string) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.EqualFunc(s.commands, want, slices.Equal) {
		t.Errorf("commands: %q; want %q", s.commands, want)
	}
	s.commands = nil
}

type workers struct{ sync.WaitGroup }

func (w *workers) Start(f func())                { w.Go(f) }
func (w *workers) Begin(task interface{ Run() }) { w.Go(task.Run) }

// listener is a Listener that logs what it tells.
type listener struct {
	*notify.Listener
	workers *workers

	mu    sync.Mutex
	lines []string
}

// listen returns a Listener of the process "me" that is stopped at the end.
func listen(t *testing.T, sharded bool, clients ...redis.UniversalClient) *listener {
	l := &listener{workers: &workers{}}
	c := notify.Config{
		Sharded:      sharded,
		Process:      "me",
		Workers:      l.workers,
		Disconnected: func(error) { l.add("warn") },
		Reconnected:  func() { l.add("again") },
		MayBeFree:    func(lock string) { l.add("free " + lock) },
		Message:      func(lock, text string) { l.add("message " + lock + " " + text) },
	}
	for _, client := range clients {
		c.Servers = append(c.Servers, conn.New(client, conn.Config{Prefix: "lock:", Timeout: time.Second, Workers: l.workers}))
	}
	l.Listener = notify.New(c)
	t.Cleanup(func() {
		l.Stop()
		l.workers.Wait()
		for _, client := range clients {
			_ = client.Close()
		}
	})
	return l
}

func (l *listener) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *listener) want(t *testing.T, lines ...string) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.lines, lines) {
		t.Errorf("told: %q; want %q", l.lines, lines)
	}
	l.lines = nil
}

func (l *listener) wantSubscribed(t *testing.T, channel string, want bool) {
	t.Helper()
	synctest.Wait()
	if l.Subscribed(channel) != want {
		t.Errorf("%s: hears %v; want %v", channel, !want, want)
	}
}
