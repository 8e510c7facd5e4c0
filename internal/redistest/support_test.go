package redistest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

// count is a script that shows how often it ran.
var count = redis.NewScript("return redis.call('incr', KEYS[1])")

// onBoth runs a test with both versions of the protocol.
func onBoth(t *testing.T, test func(t *testing.T, s *Server, p *Proxy, c *redis.Client)) {
	for _, protocol := range []int{2, 3} {
		t.Run("RESP"+strconv.Itoa(protocol), func(t *testing.T) {
			s := Start(t)
			p := s.Proxy(t)
			c := p.Client(t, func(o *redis.Options) {
				o.Protocol, o.MaxRetries, o.ReadTimeout = protocol, -1, patience
			})
			if err := count.Load(ctx, c).Err(); err != nil {
				t.Fatal(err)
			}
			test(t, s, p, c)
		})
	}
}

// impatient is a client for what is not to be answered.
func impatient(c *redis.Client) *redis.Client { return c.WithTimeout(500 * time.Millisecond) }

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// expect checks the value of a key past the proxy.
func expect(t *testing.T, s *Server, key, want string) {
	t.Helper()
	if got, err := s.Client(t).Get(ctx, key).Result(); got != want && (err != redis.Nil || want != "") {
		t.Errorf("%s is %q, %v; want %q", key, got, err, want)
	}
}

// dial opens a plain connection through the proxy and sends something.
func dial(t *testing.T, p *Proxy, request string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return conn
}

// receive reads n replies and returns how each begins; n = 0 expects the end.
func receive(t *testing.T, conn net.Conn, n int) []string {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if n == 0 {
		if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
			t.Fatalf("instead of the end came %v", err)
		}
	}
	r := bufio.NewReaderSize(oneByte{conn}, 16)
	var got []string
	for range n {
		reply, err := readReply(r)
		if err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		got = append(got, string(reply.kind)+reply.text)
	}
	return got
}

// oneByte reads no further than it must.
type oneByte struct{ io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.Reader.Read(p[:1]) }
