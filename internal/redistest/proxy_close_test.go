package redistest

import (
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestProxyWithoutRedis(t *testing.T) {
	s := Start(t)
	p := s.Proxy(t)
	open := dial(t, p, "PING\r\n")
	if got := receive(t, open, 1); got[0] != "+PONG" {
		t.Error(got)
	}
	f := p.HoldRequest(Command("incr"))
	if _, err := io.WriteString(open, "INCR n\r\n"); err != nil {
		t.Fatal(err)
	}
	f.Wait(t)
	s.Kill(t)
	f.Release() // does not wait for Redis
	receive(t, open, 0)
	late := p.HoldRequest(Command("incr"))
	if _, err := io.WriteString(open, "INCR n\r\n"); err != nil {
		t.Fatal(err)
	}
	_ = open.Close()
	c := p.Client(t, func(o *redis.Options) { o.MaxRetries = -1 })
	if err := c.Ping(ctx).Err(); err == nil {
		t.Error("it answers")
	}
	Await(t, patience, "the connections to end", func() bool { return p.Connections() == 0 })
	late.Release() // nor for this one
	if late.Count() != 0 {
		t.Error("it holds what nobody will answer")
	}
	s.Restart(t)
	if err := c.Ping(ctx).Err(); err != nil {
		t.Error(err)
	}
}

// Close leaves no goroutine, whatever the proxy is in the middle of.
func TestProxyCloseLeavesNothing(t *testing.T) {
	s := Start(t)
	others := goleak.IgnoreCurrent()
	p, err := OpenProxy(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	p.Latency(time.Hour)
	late := p.Observe(Command("set"))
	dial(t, p, "SET late 1\r\n")
	late.Wait(t)
	p.Latency(0)
	held, hung, lost := p.HoldRequest(Command("incr")), p.HangReply(Command("get")), p.DropReply(Command("echo"))
	dial(t, p, "INCR n\r\n")
	dial(t, p, "GET n\r\n")
	dial(t, p, "ECHO n\r\n")
	for _, f := range []*Fault{held, hung, lost} {
		f.Wait(t)
	}
	p.BlackHole(true)
	dial(t, p, "PING\r\n")
	p.Close()
	held.Release()
	p.Close()
	if p.Connections() != 0 {
		t.Errorf("%d connections are left", p.Connections())
	}
	if err := goleak.Find(others); err != nil {
		t.Error(err)
	}
	expect(t, s, "n", "")
	expect(t, s, "late", "")
}
