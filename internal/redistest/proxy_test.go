package redistest

import (
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestProxyChangesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Server, p *Proxy, c *redis.Client) {
		seen := p.Observe(Command("HSet", "hgetall"))
		big := string(make([]byte, 1<<20))
		pipe := c.Pipeline()
		for i := range 200 {
			pipe.HSet(ctx, "h"+strconv.Itoa(i), "f", big[:i*100])
		}
		whole := pipe.HGetAll(ctx, "h199")
		pipe.Get(ctx, "missing")
		pipe.Do(ctx, "nonsense")
		pipe.Set(ctx, "big", big, 0)
		got := pipe.Get(ctx, "big")
		if _, err := pipe.Exec(ctx); err != redis.Nil {
			t.Fatal(err)
		}
		if got.Val() != big || len(whole.Val()["f"]) != 19900 {
			t.Error("a value changed on its way")
		}
		if n := seen.Count(); n != 201 {
			t.Errorf("observed %d requests", n)
		}
		if last := seen.Request(); !slices.Equal(last, []string{"hgetall", "h199"}) {
			t.Errorf("the last one observed is %q", last)
		}
	})
}

func TestKillConnectionsByCommand(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Server, p *Proxy, c *redis.Client) {
		sub := c.Subscribe(ctx, "news")
		defer sub.Close()
		if _, err := sub.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		if n := p.KillConnections("SUBSCRIBE"); n != 1 {
			t.Errorf("killed %d connections", n)
		}
		if _, err := sub.Receive(ctx); err == nil {
			t.Error("the subscription did not notice")
		}
		if err := c.Ping(ctx).Err(); err != nil {
			t.Error("the other connection:", err)
		}
	})
}

func TestRefuse(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Server, p *Proxy, c *redis.Client) {
		p.Refuse(t, true)
		p.Refuse(t, true)
		if err := c.Ping(ctx).Err(); err != nil {
			t.Error("a connection that is open:", err)
		}
		if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a new connection: %v", err)
		}
		p.KillConnections()
		if err := c.Ping(ctx).Err(); err == nil {
			t.Error("it answers")
		}
		p.Refuse(t, false)
		p.Refuse(t, false)
		Await(t, patience, "the proxy to serve again", func() bool { return c.Ping(ctx).Err() == nil })
	})
}

func TestBlackHole(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *Server, p *Proxy, c *redis.Client) {
		var open *redis.Conn
		Await(t, patience, "a connection", func() bool {
			open = impatient(c).Conn()
			t.Cleanup(func() { _ = open.Close() })
			return open.Ping(ctx).Err() == nil
		})
		waiting := dial(t, p, "")
		p.BlackHole(true)
		fresh := p.Client(t, func(o *redis.Options) { o.MaxRetries, o.ReadTimeout = -1, 200*time.Millisecond })
		for _, do := range []redis.Cmdable{open, impatient(c), fresh} {
			if err := do.Incr(ctx, "n").Err(); !isTimeout(err) {
				t.Errorf("got %v", err)
			}
		}
		s.Kill(t) // the client learns nothing of it
		without := dial(t, p, "")
		s.Restart(t)
		between := dial(t, p, "")
		for _, conn := range []net.Conn{without, between} {
			Await(t, patience, "the proxy to take it", func() bool {
				return slices.ContainsFunc(p.chosen(nil), func(l *link) bool {
					return l.client.RemoteAddr().String() == conn.LocalAddr().String()
				})
			})
		}
		p.BlackHole(false)
		if v, err := c.Incr(ctx, "n").Result(); v != 1 {
			t.Errorf("afterwards it got %d, %v", v, err)
		}
		for _, conn := range []net.Conn{waiting, without, between} {
			if _, err := conn.Write([]byte("PING\r\n")); err != nil {
				t.Error(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
			if _, err := conn.Read(make([]byte, 1)); !isTimeout(err) {
				t.Errorf("a connection from in between: %v", err)
			}
		}
	})
}

func TestBlackHoleOfASubscription(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Server, p *Proxy, c *redis.Client) {
		sub := c.Subscribe(ctx, "news")
		defer sub.Close()
		if _, err := sub.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		if n := p.BlackHoleConnections("subscribe"); n != 1 {
			t.Errorf("silenced %d connections", n)
		}
		if n, err := c.Publish(ctx, "news", "x").Result(); n != 1 {
			t.Errorf("published to %d, %v", n, err)
		}
		if _, err := sub.ReceiveTimeout(ctx, 50*time.Millisecond); !isTimeout(err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestLatency(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Server, p *Proxy, c *redis.Client) {
		const d = 30 * time.Millisecond
		stalls := WatchStalls(t)
		p.Latency(d)
		start := time.Now()
		pipe := c.Pipeline()
		for range 100 {
			pipe.Incr(ctx, "n")
		}
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
		if took, ran := time.Since(start), stalls.Since(start); took < 2*d || ran > 20*d {
			t.Errorf("a round trip took %v, of which the machine ran for %v", took, ran)
		}
		expect(t, s, "n", "100")
		p.Latency(0)
	})
}

func TestProxyLetsPubSubThrough(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Server, p *Proxy, c *redis.Client) {
		sub := c.Subscribe(ctx, "a", "b")
		defer sub.Close()
		receive := func(want string) {
			t.Helper()
			got, err := sub.ReceiveTimeout(ctx, patience)
			if err != nil {
				t.Fatalf("want %s: %v", want, err)
			}
			switch m := got.(type) {
			case *redis.Subscription:
				if m.Kind+" "+m.Channel != want {
					t.Errorf("got %v, want %s", m, want)
				}
			case *redis.Message:
				if "message "+m.Channel != want {
					t.Errorf("got %v, want %s", m, want)
				}
			case *redis.Pong:
				if want != "pong" {
					t.Errorf("got %v, want %s", m, want)
				}
			}
		}
		receive("subscribe a")
		receive("subscribe b")
		c.Publish(ctx, "b", "x")
		receive("message b")
		if err := sub.Ping(ctx); err != nil {
			t.Fatal(err)
		}
		receive("pong")
		f := p.DropReply(Command("ping")) // still finds its reply among messages
		c.Publish(ctx, "a", "x")
		receive("message a")
		if err := sub.Unsubscribe(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		receive("unsubscribe a")
		if err := sub.Ping(ctx); err != nil {
			t.Fatal(err)
		}
		if got, err := sub.ReceiveTimeout(ctx, 200*time.Millisecond); err == nil {
			t.Errorf("got %v", got)
		}
		f.Wait(t)
	})
}

func TestSubscribeThatIsRefusedOrLost(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Server, p *Proxy, c *redis.Client) {
		if err := c.Do(ctx, "acl", "setuser", "default", "resetchannels").Err(); err != nil {
			t.Fatal(err)
		}
		refused := c.Subscribe(ctx, "a", "b")
		defer refused.Close()
		if got, err := refused.Receive(ctx); !redis.HasErrorPrefix(err, "NOPERM") {
			t.Errorf("got %v, %v", got, err)
		}
		if err := c.Do(ctx, "acl", "setuser", "default", "allchannels").Err(); err != nil {
			t.Fatal(err)
		}
		f := p.DropReply(Command("subscribe"))
		lost := c.Subscribe(ctx, "a")
		defer lost.Close()
		if got, err := lost.Receive(ctx); err != io.EOF {
			t.Errorf("got %v, %v", got, err)
		}
		f.Wait(t)
	})
}
