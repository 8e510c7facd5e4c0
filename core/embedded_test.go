//go:build go1.25

package core_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	redisserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/internal/buffered"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// The scripts, as the embedded server logs them.
const (
	acquire = "acquire"
	release = "release"
	renew   = "renew"
	inspect = "inspect"
	force   = "force"
)

// embedded is a Redis server inside a synctest bubble. It logs what arrives and
// misbehaves on request.
type embedded struct {
	*miniredis.Miniredis
	tb   testing.TB
	addr string        // never dialled; an IP address, for go-redis looks names up
	thaw chan struct{} // closed at the end: releases what hangs

	mu      sync.Mutex
	loaded  map[string]bool // by SHA-1
	log     []command
	passing map[*peer]bool
	next    map[string][]fault
	always  map[string]fault
	down    bool
	conns   []net.Conn
}

// command is something the server was asked: a script or a command of the connection.
type command struct {
	name string
	args []string
	at   time.Time
}

type peer = redisserver.Peer

// nowhere is a connection whose replies nobody reads.
func nowhere() *peer { return redisserver.NewPeer(bufio.NewWriter(io.Discard)) }

// fault is done instead of a command. It is true when the command must not run.
type fault func(s *embedded, p *peer, cmd string, args []string) bool

var servers atomic.Int64

// silent is a logger for go-redis, which reports every outage at length.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(silent{}) }

// bubble runs a test on a server of its own, by a fake clock.
func bubble(t *testing.T, test func(t *testing.T, s *embedded)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newEmbedded(t)) })
}

func newEmbedded(tb testing.TB) *embedded {
	s := &embedded{
		Miniredis: miniredis.NewMiniRedis(),
		tb:        tb,
		addr:      "127.0.0.1:" + strconv.FormatInt(servers.Add(1), 10),
		thaw:      make(chan struct{}),
		loaded:    map[string]bool{},
		passing:   map[*peer]bool{},
		next:      map[string][]fault{},
		always:    map[string]fault{},
	}
	s.ClockTTL(true)
	first, err := s.Dial() // begins the server
	if err != nil {
		tb.Fatal(err)
	}
	_ = first.Close()
	s.Server().SetPreHook(s.hook)
	tb.Cleanup(func() {
		close(s.thaw)
		s.Close()
		s.outage() // a client leaves those open that it dials while it is closed
	})
	return s
}

// known are the names of core's scripts by their SHA-1, as servers of any kind get them (of one that
// merges calls, the name of that for one call), and the
// texts as a single server gets them. They are read once, and not in each bubble.
var known = sync.OnceValues(func() (names, texts map[string]string) {
	names, texts = map[string]string{}, map[string]string{}
	for _, name := range []string{acquire, release, renew, inspect, force, "hand_over", "downgrade"} {
		digests, err := redistest.Digests(name)
		if err != nil {
			panic(err)
		}
		for _, digest := range digests {
			names[digest] = name
		}
		for _, name := range []string{name, cmp.Or(redistest.Merged[name], name)} {
			text, digest, err := redistest.ReadScript(name)
			if err != nil {
				panic(err)
			}
			texts[digest] = text
		}
	}
	return names, texts
})

// isScript says that a digest is that of a script.
func isScript(digest, name string) bool {
	names, _ := known()
	return names[digest] == name
}

// script is one of core's, as Redis gets it.
func script(tb testing.TB, name string) (text, digest string) {
	tb.Helper()
	text, digest, err := redistest.ReadScript(name)
	if err != nil {
		tb.Fatal(err)
	}
	return text, digest
}

// hook sees every command, also those inside of scripts.
func (s *embedded) hook(p *peer, cmd string, args ...string) bool {
	name := strings.ToLower(cmd)
	names, texts := known()
	switch cmd {
	case "EVALSHA":
		name = names[args[0]]
		s.load(args[0], texts[args[0]])
	case "EVAL":
		name = names[redistest.Digest(args[0])]
	}
	s.mu.Lock()
	if s.passing[p] {
		s.mu.Unlock()
		return false
	}
	s.log = append(s.log, command{name, args, time.Now()})
	act := s.always[name]
	if queue := s.next[name]; len(queue) > 0 {
		act, s.next[name] = queue[0], queue[1:]
	}
	s.mu.Unlock()
	return act != nil && act(s, p, cmd, args)
}

// load has the server know a script before it is first asked for, so that no test sees how Redis
// learns it.
func (s *embedded) load(digest, text string) {
	s.mu.Lock()
	isNew := text != "" && !s.loaded[digest]
	s.loaded[digest] = true
	s.mu.Unlock()
	if isNew {
		s.pass(nowhere(), "SCRIPT", []string{"LOAD", text})
	}
}

// restartEmpty has the server forget all that it knows.
func (s *embedded) restartEmpty() {
	s.FlushAll()
	s.pass(nowhere(), "SCRIPT", []string{"FLUSH"})
}

// pass runs a command that a fault has intercepted.
func (s *embedded) pass(p *peer, cmd string, args []string) {
	s.mu.Lock()
	s.passing[p] = true
	s.mu.Unlock()
	if server := s.Server(); server != nil { // or it is closing
		server.Dispatch(p, append([]string{cmd}, args...))
	}
	s.mu.Lock()
	delete(s.passing, p)
	s.mu.Unlock()
}

// refuse answers with an error.
func refuse(text string) fault {
	return func(_ *embedded, p *peer, _ string, _ []string) bool {
		p.WriteError(text)
		return true
	}
}

// loseReply runs the command and breaks the connection before the reply.
func loseReply(s *embedded, p *peer, cmd string, args []string) bool {
	s.pass(nowhere(), cmd, args)
	p.Close()
	return true
}

// loseRequest breaks the connection before the command runs.
func loseRequest(_ *embedded, p *peer, _ string, _ []string) bool {
	p.Close()
	return true
}

// hang never answers.
func hang(s *embedded, _ *peer, _ string, _ []string) bool {
	<-s.thaw
	return true
}

// lateRequest runs the command d later.
func lateRequest(d time.Duration) fault {
	return func(*embedded, *peer, string, []string) bool {
		time.Sleep(d)
		return false
	}
}

// lateReply runs the command at once and answers d later.
func lateReply(d time.Duration) fault {
	return func(s *embedded, p *peer, cmd string, args []string) bool {
		s.pass(p, cmd, args)
		time.Sleep(d)
		return true
	}
}

// fail makes the next commands of that name go wrong, one after the other.
func (s *embedded) fail(name string, faults ...fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next[name] = append(s.next[name], faults...)
}

// failAll makes all commands of these names go wrong, until heal.
func (s *embedded) failAll(f fault, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		s.always[name] = f
	}
}

func (s *embedded) heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.always)
	clear(s.next)
	s.down = false
}

// outage breaks all connections and refuses new ones, until heal.
func (s *embedded) outage() {
	s.mu.Lock()
	s.down = true
	s.mu.Unlock()
	s.breakConnections()
}

func (s *embedded) breakConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		_ = conn.Close()
	}
	s.conns = nil
}

// commands returns what has arrived under a name so far.
func (s *embedded) commands(name string) []command {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []command
	for _, c := range s.log {
		if c.name == name {
			found = append(found, c)
		}
	}
	return found
}

// scripts counts the scripts that have arrived so far.
func (s *embedded) scripts() int {
	n := 0
	for _, name := range []string{acquire, release, renew, inspect, force, ""} {
		n += len(s.commands(name))
	}
	return n
}

var errDown = errors.New("the server is down")

func (s *embedded) dial(context.Context, string, string) (net.Conn, error) {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	if down {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errDown}
	}
	pipe, err := s.Dial()
	if err != nil {
		return nil, err
	}
	conn := buffered.New(pipe)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down { // since it was dialled
		_ = conn.Close()
	}
	s.conns = append(s.conns, conn)
	return conn, nil
}
