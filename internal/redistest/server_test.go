//go:build go1.25

package redistest

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestServerAnswersAndKeepsNothing(t *testing.T) {
	s := Start(t)
	c := s.Client(t)
	ctx := t.Context()
	if err := c.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"save": "", "appendonly": "no"} {
		got, err := c.ConfigGet(ctx, name).Result()
		if err != nil || got[name] != want {
			t.Errorf("%s is %q, %v; want %q", name, got[name], err, want)
		}
	}
	addr := s.Addr()
	s.Restart(t)
	if s.Addr() != addr {
		t.Errorf("after the restart it is at %s, not at %s", s.Addr(), addr)
	}
	if n, err := c.Exists(ctx, "k").Result(); n != 0 || err != nil {
		t.Errorf("after the restart the key is there %d times, %v", n, err)
	}
}

func TestServerTakesArguments(t *testing.T) {
	s := Start(t, "--appendonly", "yes", "--appendfsync", "always", "--requirepass", "secret")
	c := s.Client(t)
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Kill(t)
	s.Kill(t)
	s.Restart(t)
	if v, err := c.Get(t.Context(), "k").Result(); v != "v" {
		t.Errorf("with an append-only file it restarts with %q, %v", v, err)
	}
	if err := s.Client(t, func(o *redis.Options) { o.Password = "" }).Ping(t.Context()).Err(); err == nil {
		t.Error("a client without the password was served")
	}
	if err := s.Proxy(t).Client(t).Ping(t.Context()).Err(); err != nil {
		t.Error("through a proxy:", err)
	}
}

func TestLaunchSaysWhatIsWrong(t *testing.T) {
	Start(t) // skips where there is no redis-server
	_, err := Launch(t.TempDir(), "--no-such-option", "1")
	if err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("got %v", err)
	}
}

func TestLaunchRemovesItsDirectory(t *testing.T) {
	s := Start(t)
	own, err := Launch("")
	if err != nil {
		t.Fatal(err)
	}
	if own.dir == s.dir {
		t.Errorf("two servers share %s", s.dir)
	}
	if err := own.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(own.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", own.dir, err)
	}
	dir := t.TempDir()
	given, err := Launch(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(given.Close(), given.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("a directory that the caller gave is gone: %v", err)
	}
}

func TestMissingRedis(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for ci, want := range map[string]string{"": "--- SKIP", "true": "--- FAIL"} {
		cmd := exec.Command(binary, "-test.v", "-test.run=^TestServerAnswersAndKeepsNothing$")
		cmd.Env = []string{"PATH=" + t.TempDir(), "CI=" + ci}
		out, _ := cmd.CombinedOutput()
		if !bytes.Contains(out, []byte(want)) || !bytes.Contains(out, []byte("redis-server is not installed")) {
			t.Errorf("CI=%q: want %q in\n%s", ci, want, out)
		}
	}
}

func TestPortTakenByAnother(t *testing.T) {
	s := Start(t)
	twin := &Server{binary: s.binary, dir: t.TempDir(), port: s.port}
	if err := twin.run(); !errors.Is(err, errPortTaken) {
		t.Errorf("a second server on one port: %v", err)
	}
	if twin.process.running() {
		t.Error("it still runs")
	}
	twin.takePort()
	defer twin.claim.release()
	twin.args = []string{"--no-such-option", "1"}
	if err := twin.run(); err == nil || errors.Is(err, errPortTaken) {
		t.Errorf("in its next run something else is wrong, and it says %v", err)
	}
	bus, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	port := bus.Addr().(*net.TCPAddr).Port - busOffset
	node := &Server{binary: s.binary, dir: t.TempDir(), port: port, args: []string{"--cluster-enabled", "yes"}}
	if err := node.run(); !errors.Is(err, errPortTaken) {
		t.Errorf("a node whose bus port is taken: %v", err)
	}
}

func TestManyServersAtOnce(t *testing.T) {
	Start(t)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			s, err := Launch("")
			if err != nil {
				t.Error(err)
				return
			}
			if r, err := s.call("ping"); err != nil || r.text != "PONG" {
				t.Error(r.text, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestStopAndCont(t *testing.T) {
	s := Start(t)
	c := s.Client(t, func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = patience, -1 })
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.Stop(t)
	if s.Running() {
		t.Error("a stopped server counts as running")
	}
	if err := impatient(c).Ping(t.Context()).Err(); err == nil {
		t.Error("a stopped server answers")
	}
	s.Cont(t)
	if err := c.Ping(t.Context()).Err(); err != nil || !s.Running() {
		t.Errorf("it does not go on: %v", err)
	}
	s.Stop(t)
	s.Restart(t)
	if err := c.Ping(t.Context()).Err(); err != nil || !s.Running() {
		t.Errorf("restarted while stopped: %v", err)
	}
	s.Kill(t)
	if err := c.Ping(t.Context()).Err(); err == nil || s.Running() {
		t.Error("a killed server answers")
	}
}

func TestFlushScripts(t *testing.T) {
	s := Start(t)
	c := s.Client(t)
	ctx := context.Background()
	sha, err := c.ScriptLoad(ctx, "return 1").Result()
	if err != nil {
		t.Fatal(err)
	}
	s.FlushScripts(t)
	if err := c.EvalSha(ctx, sha, nil).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("got %v", err)
	}
}

// A server that was killed keeps its port: another one there would answer in its place.
func TestPortOfAKilledServerIsNotGivenAway(t *testing.T) {
	s := Start(t)
	s.Kill(t)
	socket, err := net.ListenPacket("udp", s.Addr())
	if err == nil {
		_ = socket.Close()
		t.Fatal("its port can be claimed")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if socket, err = net.ListenPacket("udp", s.Addr()); err != nil {
		t.Fatalf("its port is kept after Close: %v", err)
	}
	_ = socket.Close()
}
