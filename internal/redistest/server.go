package redistest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// ErrNotInstalled is what Launch returns when redis-server is not on PATH.
var ErrNotInstalled = errors.New("redistest: redis-server is not installed (apt-get install redis-server, brew install redis)")

// Server is a redis-server process on a loopback port. Its methods may be
// called from several goroutines.
type Server struct {
	binary string
	dir    string
	ownDir bool
	port   int
	claim  portClaim
	args   []string
	env    []string // beside the test's own

	mu      sync.Mutex
	process *process
	stopped bool
}

// Start runs a redis-server with the given arguments ("--maxclients", "50") and
// returns when it answers. Without arguments it keeps nothing on disk. It ends
// with the test.
//
// Without redis-server on PATH the test is skipped, or fails when the
// environment variable CI is set.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return start(tb, nil, args)
}

func start(tb testing.TB, env, args []string) *Server {
	tb.Helper()
	s, err := launch("", env, args)
	if errors.Is(err, ErrNotInstalled) && os.Getenv("CI") == "" {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// Launch is Start for a program without a test: the caller must Close the
// server. Files go to dir, or, when that is empty, to a directory of the
// server's own that Close removes: in memory where there is room.
func Launch(dir string, args ...string) (*Server, error) { return launch(dir, nil, args) }

func launch(dir string, env, args []string) (*Server, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, ErrNotInstalled
	}
	s := &Server{binary: binary, dir: dir, args: args, env: env}
	if dir == "" {
		s.ownDir = true
		if s.dir, err = makeDirectory(); err != nil {
			return nil, err
		}
	}
	for range 20 {
		s.takePort()
		if err = s.run(); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// takePort gives the server a port, until Close.
func (s *Server) takePort() {
	s.claim.release()
	s.port, s.claim = claimPort()
}

// errPortTaken says that another process was quicker.
var errPortTaken = errors.New("redistest: the port is taken")

// run starts the process on s.port and returns when it answers.
func (s *Server) run() error {
	args := append([]string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0",
	}, s.args...)
	p, err := startProcess(s.binary, s.dir, s.env, args)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.process, s.stopped = p, false
	s.mu.Unlock()

	ready := poll(patience, func() bool { return !p.running() || s.answers(p) })
	switch {
	case ready && p.running():
		return nil
	case p.portTaken():
		return fmt.Errorf("%w: %d", errPortTaken, s.port)
	case !ready:
		_ = p.kill()
		return fmt.Errorf("redistest: redis-server does not answer: %s", p.output())
	}
	return fmt.Errorf("redistest: redis-server ended: %s", p.output())
}

// Addr is its host:port, the same after Restart.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Client returns a client with go-redis's own defaults, closed at the end of
// the test.
func (s *Server) Client(tb testing.TB, configure ...func(*redis.Options)) *redis.Client {
	tb.Helper()
	return newClient(tb, s.Addr(), s.password(), configure)
}

func newClient(tb testing.TB, addr, password string, configure []func(*redis.Options)) *redis.Client {
	options := &redis.Options{Addr: addr, Password: password}
	for _, f := range configure {
		f(options)
	}
	client := redis.NewClient(options)
	tb.Cleanup(func() { _ = client.Close() }) // the test may have closed it
	return client
}

// Stop freezes the process with SIGSTOP: connections stay open, nothing
// answers. It returns when the process rests.
//
// Like Cont, Kill and Restart it may be called from any goroutine of the test:
// what goes wrong fails the test and does not end the caller.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.process.stop(); err != nil {
		tb.Errorf("stopping redis-server: %v", err)
		return
	}
	s.stopped = true
	if !poll(patience, func() bool { return isStopped(s.process.cmd.Process.Pid) }) {
		tb.Errorf("redis-server does not stop")
	}
}

// Cont lets a stopped process go on.
func (s *Server) Cont(tb testing.TB) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.process.cont(); err != nil {
		tb.Errorf("continuing redis-server: %v", err)
		return
	}
	s.stopped = false
}

// Kill ends the process with SIGKILL, as a crash does, and returns when it is
// gone. Killing it twice is no error.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.process.kill(); err != nil {
		tb.Errorf("killing redis-server: %v", err)
	}
}

// Restart starts it again on the same port, after killing it where it still
// runs, and returns when it answers. It is empty then, unless its arguments
// switch persistence on.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.Kill(tb)
	err := s.run()
	for range 20 { // a stranger's short-lived socket may be in the way
		if !errors.Is(err, errPortTaken) {
			break
		}
		err = s.run()
	}
	if err != nil {
		tb.Errorf("restarting redis-server: %v", err)
	}
}

// Running says whether the process is neither stopped nor killed.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process.running() && !s.stopped
}

// FlushScripts makes Redis forget every script, as a restart does.
func (s *Server) FlushScripts(tb testing.TB) {
	tb.Helper()
	if r, err := s.call("script", "flush"); err != nil || r.kind == '-' {
		tb.Errorf("SCRIPT FLUSH: %s, %v", r.text, err)
	}
}

// Close kills the process and removes the directory where it is the server's
// own. A server from Start is closed by the test.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.process != nil {
		err = s.process.kill()
	}
	s.claim.release()
	s.claim = portClaim{}
	if s.ownDir {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// password is the one that the arguments set.
func (s *Server) password() string {
	if i := slices.Index(s.args, "--requirepass"); i >= 0 && i+1 < len(s.args) {
		return s.args[i+1]
	}
	return ""
}
