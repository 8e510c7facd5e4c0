package core_test

import (
	"context"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "redis.sock")
	server := redistest.Start(t, "--requirepass", "s/cret", "--unixsocket", socket)
	inside := server.Client(t, func(o *redis.Options) { o.Password, o.DB = "s/cret", 3 })
	cluster := redistest.StartCluster(t, 3, 0)
	sentinel := redistest.StartSentinel(t, 1)
	secure := serverOfTLS(t).Options().Addr
	for name, c := range map[string]struct {
		url  string
		look redis.UniversalClient // where the lock is
	}{
		"a single server": {"redis://:s%2Fcret@" + server.Addr() + "/3", inside},
		"a socket":        {"unix://:s%2Fcret@" + socket + "?db=3", inside},
		"TLS":             {"rediss://" + secure + "?skip_verify=true", nil},
		"a cluster":       {"redis://" + cluster.Addrs()[0] + "?addr=" + cluster.Addrs()[1], cluster.Client(t)},
		"its one address": {"redis://" + cluster.Addrs()[0] + "?addr=" + cluster.Addrs()[0], cluster.Client(t)},
		"Sentinels":       {"redis://" + sentinel.Addrs()[0] + "?master_name=" + sentinel.MasterName() + "&addr=" + sentinel.Addrs()[1], sentinel.Client(t)},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			l, err := core.Open(t.Context(), c.url, core.Prefix("open:"), core.Logger(slog.New(slog.NewTextHandler(&log, nil))))
			if err != nil {
				t.Fatal(err)
			}
			k := take(t, background, l, "k")
			if c.look != nil && c.look.Exists(background, "open:k").Val() != 1 {
				t.Error("the lock is not there")
			}
			unlock(t, k)
			if err := l.Close(background); err != nil {
				t.Error(err)
			}
			if log.Len() > 0 {
				t.Errorf("the log says %q", log.String())
			}
		})
	}
}

// The client is closed after everything is released.
func TestCloseClosesTheClientOfOpen(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	clients := func() int {
		return strings.Count(client.Do(background, "client", "list").String(), "name=opened")
	}
	l, err := core.Open(background, "redis://"+server.Addr()+"?client_name=opened")
	if err != nil {
		t.Fatal(err)
	}
	k := take(t, background, l, "k")
	if clients() == 0 {
		t.Fatal("this test sees no connection")
	}
	closed := make(chan error, 1)
	go func() { closed <- l.Close(background) }()
	_ = k.Refresh(background)
	unlock(t, k)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	redistest.Await(t, time.Minute, "all connections to be closed", func() bool { return clients() == 0 })
	runtime.KeepAlive(l) // the garbage collector would close them, too
	if n := client.Exists(background, "lock:k").Val(); n != 0 {
		t.Error("the lock is left")
	}
}

// What go-redis does by itself takes 0.8 s when nobody listens, and goes on past a deadline.
func TestOpenDialsOnceForEachCommand(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var dials atomic.Int64
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			dials.Add(1)
			_, _ = conn.Write([]byte("this is not TLS"))
			_ = conn.Close()
		}
	}()
	// A handshake that fails is a dial that fails.
	_, err = core.Open(background, "rediss://"+listener.Addr().String())
	wantErr(t, err, core.ErrUnavailable)
	if n := dials.Load(); n == 0 || n > 2 { // a command that has not left is sent once more
		t.Errorf("it has dialled %d times", n)
	}
}

func TestOpenSaysWhatToDo(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	locked := redistest.Start(t, "--requirepass", "secret").Addr()
	down := redistest.Start(t)
	down.Kill(t)
	sentinel := redistest.StartSentinel(t, 1)
	cluster := redistest.StartCluster(t, 3, 0)
	user(t, server, "~lock:*", "&*", "+@all", "-@scripting")
	narrow := redistest.Start(t)
	user(t, narrow, "~lock:*", "&*", "+@all", "-hset")
	secure := serverOfTLS(t).Options().Addr
	for name, c := range map[string]struct{ url, cause, do string }{
		"nobody listens":          {"redis://" + down.Addr(), "connection refused", "start Redis there"},
		"no socket":               {"unix:///nowhere/redis.sock", "no such file or directory", "unixsocket"},
		"no password":             {"redis://" + locked, "NOAUTH", "redis://user:password@host:6379"},
		"another password":        {"redis://:sesame@" + locked, "WRONGPASS", "see user and password"},
		"no permission":           {"redis://limited:secret@" + server.Addr(), "NOPERM", "docs/faq.md"},
		"no permission inside":    {"redis://limited:secret@" + narrow.Addr(), "", "docs/faq.md"},
		"a replica":               {"redis://" + redistest.Start(t, "--replicaof", "127.0.0.1", "1").Addr(), "READONLY", "address of the master"},
		"a node":                  {"redis://" + cluster.Addrs()[1], "MOVED", "add ?addr=host:port"},
		"no cluster":              {"redis://" + server.Addr() + "?addr=" + server.Addr(), "cluster support disabled", "leave addr out"},
		"a Sentinel":              {"redis://" + sentinel.Addrs()[0], "unknown command 'evalsha'", "?master_name="},
		"no Sentinel":             {"redis://" + server.Addr() + "?master_name=mymaster", "unknown command 'sentinel'", "leave master_name out"},
		"another master's name":   {"redis://" + sentinel.Addrs()[0] + "?master_name=nobody", "redis: nil", "see master_name"},
		"no such database":        {"redis://" + server.Addr() + "/99", "DB index is out of range", "the number at the end"},
		"another's certificate":   {"rediss://" + secure, "x509", "TLSConfig"},
		"TLS against plain":       {"rediss://" + server.Addr() + "?dial_timeout=10", "no answer in time", "rediss://"},
		"plain against TLS":       {"redis://" + secure, "", "rediss://"}, // EOF, or no answer in time
		"without the beginning":   {"localhost:6379", "", "redis://localhost:6379"},
		"nothing":                 {"", "", "redis://localhost:6379"},
		"an unknown parameter":    {"redis://localhost?lease=3s", "unexpected option: lease", ""},
		"reads from replicas":     {"redis://localhost?master_name=m&route_by_latency=true", "", "leave out route_by_latency"},
		"replicas of one":         {"redis://localhost?read_timeout=1ms", "ReadTimeout", ""},
		"a slash in a password":   {"redis://:sec/ret@" + server.Addr(), "", "write / as %2F"},
		"a number and a slash":    {"redis://:12/ret@" + server.Addr(), "", "write / as %2F"},
		"a number and a hash":     {"redis://:12#ret@" + server.Addr(), "", "# as %23"},
		"a number and a mark":     {"redis://:12?ret@" + server.Addr(), "", "? as %3F"},
		"a percent in a password": {"redis://:sec%ret@" + server.Addr(), "", "% as %25"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := []core.Option{core.Logger(slog.New(slog.DiscardHandler)), core.Timeout(unhurried)}
			if name == "replicas of one" {
				opts = append(opts, core.Replicas(1, 100*time.Millisecond))
			}
			_, err := core.Open(t.Context(), c.url, opts...)
			if err == nil {
				t.Fatal("no error")
			}
			said := err.Error()
			if !strings.HasPrefix(said, "core: ") || !strings.Contains(said, c.cause) || !strings.Contains(said, c.do) {
				t.Errorf("it says %q; want %q and %q", said, c.cause, c.do)
			}
			for _, secret := range []string{"secret", "sesame", "sec", "ret@", "12"} {
				if u, _ := url.Parse(c.url); strings.Contains(c.url, ":"+secret) && strings.Contains(said, secret) && (u == nil || !strings.Contains(u.Host, secret)) {
					t.Errorf("it shows the password: %q", said)
				}
			}
		})
	}
	_, err := core.Open(background, "redis://"+down.Addr())
	wantErr(t, err, core.ErrUnavailable)
	ctx, cancel := context.WithCancel(background)
	cancel()
	_, err = core.Open(ctx, "redis://"+server.Addr())
	wantErr(t, err, context.Canceled)
}

func TestOpenWarnsOfEviction(t *testing.T) {
	t.Parallel()
	for policy, warns := range map[string]bool{"allkeys-lru": true, "volatile-ttl": true, "noeviction": false} {
		server := redistest.Start(t, "--maxmemory-policy", policy)
		var log strings.Builder
		l, err := core.Open(t.Context(), "redis://"+server.Addr(), core.Logger(slog.New(slog.NewTextHandler(&log, nil))))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(background); err != nil {
			t.Error(err)
		}
		if strings.Contains(log.String(), policy) != warns {
			t.Errorf("%s: %q", policy, log.String())
		}
	}
}

func TestOpenTellsOfMissingReplicas(t *testing.T) {
	t.Parallel()
	url := "redis://" + redistest.Start(t).Addr() + "?read_timeout=3s"
	_, err := core.Open(t.Context(), url, core.Replicas(1, 100*time.Millisecond), core.Logger(slog.New(slog.DiscardHandler)), core.Timeout(unhurried))
	if err == nil || !strings.Contains(err.Error(), "INFO replication") {
		t.Errorf("it says %v", err)
	}
}
