package redistest

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestDropReply(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Server, p *Proxy, c *redis.Client) {
		f := p.DropReply(Script(count.Hash()))
		if err := c.Set(ctx, "other", "1", 0).Err(); err != nil {
			t.Error("a request that does not match:", err)
		}
		if err := count.EvalSha(ctx, c, []string{"n"}).Err(); err != io.EOF {
			t.Errorf("the client got %v", err)
		}
		f.Wait(t)
		expect(t, s, "n", "1")
		if v, err := count.EvalSha(ctx, c, []string{"n"}).Int(); v != 2 {
			t.Errorf("the second time it got %d, %v", v, err)
		}
		if f.Count() != 1 || f.Request()[1] != count.Hash() {
			t.Errorf("%d times, last %q", f.Count(), f.Request())
		}
	})
}

// A client that sends again what was answered with EOF runs it twice: the very
// thing this proxy is for.
func TestDropReplyIsResentByGoRedis(t *testing.T) {
	s := Start(t)
	p := s.Proxy(t)
	c := p.Client(t)
	f := p.DropReply(Script(count.Hash()), Times(2))
	v, err := count.Run(ctx, c, []string{"n"}).Int() // EVALSHA, NOSCRIPT, EVAL
	if v != 3 || err != nil || f.Count() != 2 {
		t.Errorf("got %d, %v; dropped %d", v, err, f.Count())
	}
	expect(t, s, "n", "3")
}

func TestDropReplyPassesOverNoScript(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Server, p *Proxy, c *redis.Client) {
		s.FlushScripts(t)
		f := p.DropReply(Script(count.Hash()))
		if err := count.EvalSha(ctx, c, []string{"n"}).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") || f.Count() != 0 {
			t.Errorf("got %v, counted %d", err, f.Count())
		}
		if err := count.Eval(ctx, c, []string{"n"}).Err(); err != io.EOF || f.Count() != 1 {
			t.Errorf("got %v, counted %d", err, f.Count())
		}
		expect(t, s, "n", "1")
	})
}

func TestDropReplyInAPipeline(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Server, p *Proxy, c *redis.Client) {
		f := p.DropReply(func(r []string) bool { return Command("incr")(r) && r[1] == "b" })
		pipe := c.Pipeline()
		a, b, d := pipe.Incr(ctx, "a"), pipe.Incr(ctx, "b"), pipe.Incr(ctx, "d")
		_, err := pipe.Exec(ctx)
		if err != io.EOF || b.Err() != io.EOF || d.Err() != io.EOF { // go-redis gives that to all, answered or not
			t.Errorf("%v: %v, %v, %v", err, a, b, d)
		}
		f.Wait(t)
		expect(t, s, "a", "1")
		expect(t, s, "b", "1")
	})
}

func TestHangReply(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Server, p *Proxy, c *redis.Client) {
		f := p.HangReply(Command("incr"))
		if err := impatient(c).Incr(ctx, "n").Err(); !isTimeout(err) {
			t.Errorf("the client got %v", err)
		}
		<-f.Happened()
		expect(t, s, "n", "1")
		if v, err := c.Incr(ctx, "n").Result(); v != 2 {
			t.Errorf("on another connection it got %d, %v", v, err)
		}
		_ = c.Close()
		Await(t, patience, "the connections to end", func() bool { return p.Connections() == 0 })
	})
}

func TestReplaceReply(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Server, p *Proxy, c *redis.Client) {
		p.ReplaceReply(Command("incr"), "-LOADING not yet\r\n")
		if err := c.Incr(ctx, "n").Err(); !redis.HasErrorPrefix(err, "LOADING") {
			t.Errorf("the client got %v", err)
		}
		if v, err := c.Incr(ctx, "n").Result(); v != 2 {
			t.Errorf("then it got %d, %v", v, err)
		}
	})
}

func TestDropRequest(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Server, p *Proxy, c *redis.Client) {
		f := p.DropRequest(func(r []string) bool { return Command("incr")(r) && r[1] == "b" })
		pipe := c.Pipeline()
		a, b, d := pipe.Incr(ctx, "a"), pipe.Incr(ctx, "b"), pipe.Incr(ctx, "d")
		if _, err := pipe.Exec(ctx); err != io.EOF || a.Val() != 1 || b.Err() != io.EOF || d.Err() != io.EOF {
			t.Errorf("%v: %v, %v, %v", err, a, b, d)
		}
		f.Wait(t)
		expect(t, s, "a", "1")
		expect(t, s, "b", "")
		expect(t, s, "d", "")
	})
}

func TestAnswer(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Server, p *Proxy, c *redis.Client) {
		f := p.Answer(Command("incr"), ":42\r\n", Always())
		pipe := c.Pipeline()
		first, n, last := pipe.Set(ctx, "a", "1", 0), pipe.Incr(ctx, "n"), pipe.Get(ctx, "a")
		if _, err := pipe.Exec(ctx); err != nil || first.Val() != "OK" || n.Val() != 42 || last.Val() != "1" {
			t.Errorf("%v: %v, %v, %v", err, first, n, last)
		}
		expect(t, s, "n", "")
		f.Disarm()
		if v, err := c.Incr(ctx, "n").Result(); v != 1 || f.Count() != 1 {
			t.Errorf("disarmed it got %d, %v", v, err)
		}
	})
}

func TestHoldRequestDeliversLate(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Server, p *Proxy, c *redis.Client) {
		f := p.HoldRequest(Command("incr"))
		err := impatient(c).Incr(ctx, "n").Err() // and closes its connection
		if !isTimeout(err) {
			t.Errorf("the client got %v", err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		f.Wait(t)
		expect(t, s, "n", "")
		f.Release()
		expect(t, s, "n", "1")
		f.Release()
		Await(t, patience, "the connections to end", func() bool { return p.Connections() == 0 })
	})
}

func TestHoldRequestAnswersAClientThatWaits(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Server, p *Proxy, c *redis.Client) {
		f := p.HoldRequest(Command("incr"))
		got := make(chan int64)
		go func() { got <- c.Incr(ctx, "n").Val() }()
		f.Wait(t)
		s.Stop(t)
		released := make(chan struct{})
		go func() { f.Release(); close(released) }()
		select {
		case <-released:
			t.Error("Release did not wait for Redis")
		case <-time.After(50 * time.Millisecond):
		}
		s.Cont(t)
		<-released
		if v := <-got; v != 1 {
			t.Errorf("got %d", v)
		}
		if v, err := c.Incr(ctx, "n").Result(); v != 2 {
			t.Errorf("after the release a request is held: %d, %v", v, err)
		}
	})
}

func TestReleaseReturnsWhenTheConnectionIsGone(t *testing.T) {
	s := Start(t)
	p := s.Proxy(t)
	c := p.Client(t)
	f := p.HoldRequest(Command("incr"))
	failed := make(chan error)
	go func() { failed <- c.Incr(ctx, "n").Err() }()
	f.Wait(t)
	p.Refuse(t, true) // go-redis would send it again
	if n := p.KillConnections(); n == 0 {
		t.Error("no connection to kill")
	}
	f.Release()
	if err := <-failed; err == nil {
		t.Error("it was answered")
	}
	expect(t, s, "n", "")
}

// Of several subscriptions on one connection, each is confirmed by as many
// messages as it has channels, and published messages come in between.
func TestDropReplyAmongSubscriptions(t *testing.T) {
	s := Start(t)
	for _, hello := range []string{"HELLO 2\r\n", "HELLO 3\r\n"} {
		p := s.Proxy(t)
		p.DropReply(func(r []string) bool { return Command("subscribe")(r) && r[1] == "d" })
		conn := dial(t, p, hello+"SUBSCRIBE a b\r\nSUBSCRIBE c\r\n")
		receive(t, conn, 4)
		s.Client(t).Publish(ctx, "a", "x")
		receive(t, conn, 1)
		if _, err := io.WriteString(conn, "SUBSCRIBE e f\r\nSUBSCRIBE d\r\n"); err != nil {
			t.Fatal(err)
		}
		receive(t, conn, 2)
		receive(t, conn, 0)
	}
}

// What is dropped closes Redis's side as well, whatever the client does.
func TestDropClosesBothSides(t *testing.T) {
	s := Start(t)
	p := s.Proxy(t)
	p.DropReply(Command("get"))
	p.DropRequest(Command("get"))
	for range 2 {
		conn := dial(t, p, "CLIENT SETNAME lost\r\nGET k\r\n")
		receive(t, conn, 1)
		receive(t, conn, 0)
	}
	Await(t, patience, "Redis to lose them", func() bool {
		list, err := s.call("client", "list")
		return err == nil && !strings.Contains(list.text, "name=lost")
	})
}
