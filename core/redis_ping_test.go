package core_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestPing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := onRedis(t, server.Client(t), core.KeepFor(time.Minute), core.FixedLease(time.Minute), core.Observe(forbiddenObserver{t}))
	for range 3 {
		if err := l.Ping(background); err != nil {
			t.Fatal(err)
		}
	}
	if left := server.Client(t).Keys(background, "lock:latchkey:ping:*").Val(); len(left) > 0 {
		t.Errorf("%v is left in Redis", left)
	}
	ctx, cancel := context.WithCancel(background)
	cancel()
	wantErr(t, l.Ping(ctx), core.ErrNotAcquired, context.Canceled)
	if err := l.Close(background); err != nil {
		t.Fatal(err)
	}
	wantErr(t, l.Ping(background), core.ErrClosed)
}

// What one Ping could not release does not make the next one say that all is well.
func TestPingWithoutPermissionToRelease(t *testing.T) {
	t.Parallel()
	l := onRedis(t, user(t, redistest.Start(t), "~lock:*", "&*", "+@all", "-del"))
	for range 3 {
		wantErr(t, l.Ping(background), core.ErrUnavailable)
	}
}

// Fencing clocks stay, one for each hash slot that has had a lock.
func TestPingsLeaveOneFencingClock(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := onRedis(t, server.Client(t))
	for range 50 {
		if err := l.Ping(background); err != nil {
			t.Fatal(err)
		}
	}
	if clocks := server.Client(t).Keys(background, "*latchkey:clock:*").Val(); len(clocks) != 1 {
		t.Errorf("%d fencing clocks are left: %v", len(clocks), clocks)
	}
}

// A client of one node takes the locks that this node has, and Ping need not be one of them.
func TestPingFindsANodeOfACluster(t *testing.T) {
	t.Parallel()
	for _, node := range redistest.StartCluster(t, 3, 0).Nodes() {
		err := onRedis(t, node.Client(t)).Ping(background)
		wantErr(t, err, core.ErrUnavailable)
		if err != nil && (!strings.Contains(err.Error(), "redis.NewClusterClient") || !strings.Contains(err.Error(), node.Addr())) {
			t.Errorf("it says %v; want what client to use", err)
		}
	}
}

type forbiddenObserver struct{ t *testing.T }

func (o forbiddenObserver) Observe(ctx context.Context, e core.Event) context.Context {
	if e.Kind != core.EventLoad {
		o.t.Errorf("Observers hear of %+v", e)
	}
	return ctx
}

// What Ping says of a Redis that is set up otherwise than the client, and that
// docs/faq.md explains just that.
func TestPingExplainsItself(t *testing.T) {
	t.Parallel()
	faq, err := os.ReadFile("../docs/faq.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		client func(t *testing.T) redis.UniversalClient
		says   string // what it says; of several, parted by "|", one
	}{
		"nobody listens": {func(t *testing.T) redis.UniversalClient {
			server := redistest.Start(t)
			server.Kill(t)
			return server.Client(t)
		}, "connection refused"},
		"no password": {func(t *testing.T) redis.UniversalClient {
			return redistest.Start(t, "--requirepass", "secret").Client(t, func(o *redis.Options) { o.Password = "" })
		}, "NOAUTH"},
		"wrong password": {func(t *testing.T) redis.UniversalClient {
			return redistest.Start(t, "--requirepass", "secret").Client(t, func(o *redis.Options) { o.Password = "sesame" })
		}, "WRONGPASS"},
		"no permission": {func(t *testing.T) redis.UniversalClient {
			return user(t, redistest.Start(t), "~lock:*", "&*", "+@all", "-@scripting")
		}, "NOPERM"},
		"a replica": {func(t *testing.T) redis.UniversalClient {
			return redistest.Start(t, "--replicaof", "127.0.0.1", "1").Client(t)
		}, "READONLY"},
		"a cluster without a cluster client": {func(t *testing.T) redis.UniversalClient {
			return redistest.StartCluster(t, 3, 0).Nodes()[0].Client(t)
		}, "MOVED"},
		"a cluster client without a cluster": {func(t *testing.T) redis.UniversalClient {
			client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{redistest.Start(t).Addr()}})
			t.Cleanup(func() { _ = client.Close() })
			return client
		}, "cluster support disabled"},
		"a Sentinel's port": {func(t *testing.T) redis.UniversalClient {
			client := redis.NewClient(&redis.Options{Addr: redistest.StartSentinel(t, 1).Addrs()[0]})
			t.Cleanup(func() { _ = client.Close() })
			return client
		}, "unknown command 'evalsha'"},
		"a Redis as Sentinel": {func(t *testing.T) redis.UniversalClient {
			return sentinelClient(t, "mymaster", redistest.Start(t).Addr())
		}, "unknown command 'sentinel'"},
		"another master's name": {func(t *testing.T) redis.UniversalClient {
			return sentinelClient(t, "nobody", redistest.StartSentinel(t, 1).Addrs()...)
		}, "all sentinels specified in configuration are unreachable: redis: nil"},
		"a database that is not there": {func(t *testing.T) redis.UniversalClient {
			return redistest.Start(t).Client(t, func(o *redis.Options) { o.DB = 99 })
		}, "DB index is out of range"},
		"a certificate of somebody else": {func(t *testing.T) redis.UniversalClient {
			plain := serverOfTLS(t)
			client := redis.NewClient(&redis.Options{Addr: plain.Options().Addr, TLSConfig: &tls.Config{ServerName: "redis.example"}})
			t.Cleanup(func() { _ = client.Close() })
			return client
		}, "x509"},
		"TLS against plain": {func(t *testing.T) redis.UniversalClient {
			return redistest.Start(t).Client(t, func(o *redis.Options) { o.TLSConfig = &tls.Config{InsecureSkipVerify: true} })
		}, "no answer in time"},
		"plain against TLS": {func(t *testing.T) redis.UniversalClient {
			return serverOfTLS(t)
		}, "no answer in time|EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := c.client(t)
			err := onRedis(t, client, core.Timeout(5*time.Second)).Ping(background)
			wantErr(t, err, core.ErrUnavailable)
			if err == nil {
				return
			}
			said := false
			for _, says := range strings.Split(c.says, "|") {
				said = said || strings.Contains(strings.ReplaceAll(err.Error(), "`", "'"), says)
				if !strings.Contains(string(faq), says) {
					t.Errorf("docs/faq.md does not explain %q", says)
				}
			}
			if !said {
				t.Errorf("it says %v; want %q", err, c.says)
			}
			if detail := core.Detail(fmt.Errorf("start: %w", err)); detail != "start: "+err.Error() {
				t.Errorf("in detail it says %q", detail)
			}
		})
	}
}

func sentinelClient(t *testing.T, master string, sentinels ...string) redis.UniversalClient {
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: master, SentinelAddrs: sentinels})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// serverOfTLS returns a client without TLS for a server with it.
func serverOfTLS(t *testing.T) *redis.Client {
	if len(redistest.Start(t).Client(t).ConfigGet(background, "tls-port").Val()) == 0 {
		t.Skip("this server is built without TLS")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	public, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	_ = listener.Close()
	redistest.Start(t, "--tls-port", port, "--tls-auth-clients", "no",
		"--tls-cert-file", write("cert.pem", "CERTIFICATE", public), "--tls-key-file", write("key.pem", "PRIVATE KEY", secret))
	client := redis.NewClient(&redis.Options{Addr: net.JoinHostPort("127.0.0.1", port)})
	t.Cleanup(func() { _ = client.Close() })
	return client
}
