package redistest

import (
	"crypto/tls"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Of a pipeline's replies two neighbours come in the wrong order, and the others in theirs.
func TestSwapRepliesOnOneConnection(t *testing.T) {
	s := Start(t)
	p := s.Proxy(t)
	f := p.SwapReplies(Command("echo"))
	conn := dial(t, p, "ECHO a\r\nPING\r\nECHO b\r\nECHO c\r\n")
	if got := receive(t, conn, 4); !slices.Equal(got, []string{"$b", "+PONG", "$a", "$c"}) {
		t.Errorf("got %q", got)
	}
	if f.Count() != 1 {
		t.Errorf("counted %d", f.Count())
	}
}

func TestSwapRepliesBetweenConnections(t *testing.T) {
	onBoth(t, func(t *testing.T, _ *Server, p *Proxy, c *redis.Client) {
		f := p.SwapReplies(Command("echo"), Always())
		for i := range 3 {
			other := make(chan string)
			go func() { other <- c.Echo(ctx, "a").Val() }()
			if got := c.Echo(ctx, "b").Val(); got != "a" {
				t.Errorf("one has got %q", got)
			}
			if got := <-other; got != "b" {
				t.Errorf("the other one has got %q", got)
			}
			if f.Count() != i+1 {
				t.Errorf("counted %d", f.Count())
			}
		}
	})
}

// A reply that finds no other one goes on with the end of the fault.
func TestDisarmDeliversTheReplyThatIsKept(t *testing.T) {
	s := Start(t)
	p := s.Proxy(t)
	f := p.SwapReplies(Command("echo"), Always())
	seen := p.Observe(Command("ping"))
	conn := dial(t, p, "ECHO a\r\nPING\r\n")
	seen.Wait(t)
	_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes have come", n)
	}
	f.Disarm()
	if got := receive(t, conn, 2); !slices.Equal(got, []string{"$a", "+PONG"}) || f.Count() != 0 {
		t.Errorf("got %q, counted %d", got, f.Count())
	}
}

// What Redis closes has ended, and what the network closes. go-redis finds that out when it uses the
// connection.
func TestEncryptedProxy(t *testing.T) {
	s := Start(t)
	p := s.EncryptedProxy(t)
	config, err := Trusting(p.Certificate())
	if err != nil {
		t.Fatal(err)
	}
	connect := func() net.Conn {
		t.Helper()
		conn, err := tls.Dial("tcp", p.Addr(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, "ECHO a\r\n"); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, conn, 1); got[0] != "$a" {
			t.Errorf("got %q", got)
		}
		return conn
	}
	conn := connect()
	if err := s.Client(t).ClientKillByFilter(ctx, "type", "normal").Err(); err != nil {
		t.Fatal(err)
	}
	receive(t, conn, 0)
	conn = connect()
	p.KillConnections()
	receive(t, conn, 0)

	c := p.Client(t, func(o *redis.Options) { o.MaxRetries = -1 })
	if err := c.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	p.KillConnections()
	Await(t, patience, "the connections to end", func() bool { return p.Connections() == 0 })
	if err := c.Ping(ctx).Err(); err == nil {
		t.Error("a dead connection has not been used")
	}
}
