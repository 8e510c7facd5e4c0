//go:build go1.25

package core_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// front stands before a Redis, as a balancer or one that ends TLS does, and closes
// connections that are idle. The pool does not see that before it uses them.
type front struct {
	net.Listener
	target string

	mu    sync.Mutex
	conns []*fronted
	all   sync.WaitGroup
}

// fronted is a connection through a front.
type fronted struct {
	net.Conn
	tcp   *net.TCPConn
	stale atomic.Bool // it is reset when it is used
}

func newFront(t *testing.T, target string, listener net.Listener) *front {
	t.Helper()
	f := &front{Listener: listener, target: target}
	f.all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			f.all.Go(func() { f.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		f.each(func(c *fronted) { _ = c.tcp.Close() })
		f.all.Wait()
	})
	return f
}

func (f *front) each(do func(*fronted)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		do(c)
	}
}

func (f *front) serve(conn net.Conn) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		tcp = conn.(*tls.Conn).NetConn().(*net.TCPConn)
	}
	c := &fronted{Conn: conn, tcp: tcp}
	f.mu.Lock()
	f.conns = append(f.conns, c)
	f.mu.Unlock()
	server, err := net.Dial("tcp", f.target)
	if err != nil {
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
		return
	}
	f.all.Go(func() {
		_, _ = io.Copy(conn, server)
		if !c.stale.Load() {
			_ = conn.Close()
		}
	})
	defer server.Close()
	for buf := make([]byte, 64<<10); ; {
		n, err := conn.Read(buf)
		if c.stale.Load() && n > 0 {
			_ = tcp.SetLinger(0)
			_ = tcp.Close()
			return
		}
		if _, err2 := server.Write(buf[:n]); err != nil || err2 != nil {
			_ = conn.Close()
			return
		}
	}
}

// selfSigned is a certificate for 127.0.0.1, and who trusts it.
func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// idle leaves so many idle connections in the pool of a client.
func idle(t *testing.T, client *redis.Client, n int) {
	t.Helper()
	var conns []*redis.Conn
	for range n {
		conn := client.Conn()
		if err := conn.Ping(background).Err(); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
	if got := client.PoolStats().IdleConns; int(got) < n {
		t.Fatalf("%d idle connections; want %d", got, n)
	}
}

const pooled = 12

// behind is a client of a server through a front: over TLS, or with connections that
// are reset on their next use. spoil does that to those of the pool.
func behind(t *testing.T, server *redistest.Server, encrypted bool) (client *redis.Client, spoil func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	options := func(o *redis.Options) {
		o.Addr = listener.Addr().String()
		o.PoolSize = 2 * pooled
	}
	if !encrypted {
		f := newFront(t, server.Addr(), listener)
		client = server.Client(t, options)
		return client, func() {
			idle(t, client, pooled)
			f.each(func(c *fronted) { c.stale.Store(true) })
		}
	}
	cert, trusted := selfSigned(t)
	f := newFront(t, server.Addr(), tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{cert}}))
	client = server.Client(t, options, func(o *redis.Options) { o.TLSConfig = &tls.Config{RootCAs: trusted} })
	return client, func() {
		idle(t, client, pooled)
		f.each(func(c *fronted) { _ = c.Close() })
	}
}

// go-redis repeats its own commands on such connections. Taken out, each of them costs
// somebody his lock, and his client reads 503.
func TestConnectionsThatWereClosedBehindThePool(t *testing.T) {
	t.Parallel()
	for name, encrypted := range map[string]bool{"TLS": true, "reset by a balancer": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			client, spoil := behind(t, server, encrypted)
			l := onRedis(t, client)
			unlock(t, take(t, background, l, "warm-up"))
			for range 2 { // one by one
				spoil()
				unlock(t, take(t, background, l, "k"))
			}
			spoil()
			k := take(t, background, l, "k")
			spoil()
			if info, err := l.Inspect(background, "k"); err != nil || info.Count != 1 {
				t.Errorf("Inspect: %+v, %v", info, err)
			}
			spoil()
			if err := k.Refresh(background); err != nil {
				t.Error(err)
			}
			spoil()
			unlock(t, k)

			spoil() // all at once
			var all sync.WaitGroup
			for _, key := range numbered(0, 60) {
				all.Go(func() {
					k, err := l.Lock(background, key)
					if err != nil {
						t.Error(err)
						return
					}
					if err := k.Unlock(background); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			admin := server.Client(t)
			for _, key := range numbered(0, 60) {
				if !isFree(t, admin, key) {
					t.Errorf("%s is not free", key)
				}
			}
		})
	}
}

// The members of a quorum lose their connections together, when they are of one kind.
func TestConnectionsOfAQuorumThatWereClosedBehindThePool(t *testing.T) {
	t.Parallel()
	var clients []redis.UniversalClient
	var spoil []func()
	for range 3 {
		client, f := behind(t, redistest.Start(t), true)
		clients, spoil = append(clients, client), append(spoil, f)
	}
	l, err := core.NewQuorum(clients, quiet, core.Timeout(unhurried))
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, l)
	for range 3 {
		for _, f := range spoil {
			f()
		}
		unlock(t, take(t, background, l, "k"))
	}
}

// A Redis that is there again has no scripts, and the pool does not know that all its
// connections have ended.
func TestRestartBetweenTwoLocks(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client, spoil := behind(t, server, true)
	l := onRedis(t, client)
	for range 3 {
		unlock(t, take(t, background, l, "k"))
		spoil()
		server.Kill(t)
		server.Restart(t)
		unlock(t, take(t, background, l, "k"))
	}
}

// The network may deliver the first copy of an acquisition after everything is over.
// Taken out, it takes the lock for nobody, until the lease ends.
func TestInvariant3FirstCopyThatArrivesLate(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]core.Option{"own owner": nil, "chosen owner": {core.Owner("o")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, proxy, l := throughProxy(t)
			admin := server.Client(t)
			// late has the connection of a call break while its first copy is under way.
			late := func(call func()) (arrive func()) {
				held := proxy.HoldRequest(sha(t, "acquire"))
				done := make(chan struct{})
				go func() { defer close(done); call() }()
				held.Wait(t)
				proxy.KillConnections()
				<-done
				return held.Release
			}

			var k *core.Lock
			arrive := late(func() { k = take(t, background, l, "k", opts...) })
			token := k.Token()
			arrive() // while it is held
			if n, err := k.Count(background); n != 1 || err != nil {
				t.Errorf("count %d, %v; want 1", n, err)
			}
			if k.Token() != token || tokenIn(admin, "lock:k") != token {
				t.Error("another token")
			}
			unlock(t, k)

			arrive = late(func() { k = take(t, background, l, "k", opts...) })
			in := late(func() { unlock(t, take(t, k.Context(), l, "k")) })
			in()
			if n, err := k.Count(background); n != 1 || err != nil {
				t.Errorf("count %d, %v; want 1", n, err)
			}
			unlock(t, k)
			arrive() // when it is free again
			if !isFree(t, admin, "k") {
				t.Error("a copy that nobody waits for took the lock")
			}

			arrive = late(func() { unlock(t, take(t, background, l, "k", opts...)) })
			next := take(t, background, l, "k", opts...)
			arrive() // when it is somebody else's
			if n, err := next.Count(background); n != 1 || err != nil {
				t.Errorf("count %d, %v; want 1", n, err)
			}
			unlock(t, next)
		})
	}
}

// Taken out, one lost reply fails all calls that shared a command.
func TestLostReplyFailsNoneOfTheCallsThatTravelTogether(t *testing.T) {
	server := redistest.Start(t)
	proxy := server.Proxy(t)
	l := newTraveller(t, server, proxy.Client(t, patient))
	isAcquire := sha(t, "acquire") // reads the scripts, which takes the race detector long
	for range 3 {
		lost := proxy.DropReply(func(request []string) bool {
			return isAcquire(request) && len(holdsOf(command{args: request[1:]})) > 10
		})
		locks, errs := l.tries(t, numbered(0, 60)...)
		if lost.Count() != 1 {
			t.Fatal("no reply was lost")
		}
		if len(locks) != 60 {
			t.Errorf("%d locks, want 60: %v", len(locks), errs)
		}
		for _, k := range locks {
			if n, err := k.Count(background); n != 1 || err != nil {
				t.Errorf("%s: count %d, %v", k.Key(), n, err)
			}
			unlock(t, k)
		}
	}
}
