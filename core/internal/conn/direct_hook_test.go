//go:build go1.25

package conn_test

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// plain is a Redis, and a client of it that keeps no deadlines.
type plain struct {
	*miniredis.Miniredis
	client *redis.Client
	begun  atomic.Int32    // goroutines
	silent func() net.Conn // connections instead of those to it
}

// plainBubble runs a test by a fake clock.
func plainBubble(t *testing.T, options redis.Options, test func(t *testing.T, p *plain)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPlain(t, &options)
		test(t, p)
		_ = p.client.Close()
	})
}

func newPlain(t *testing.T, options *redis.Options) *plain {
	p := &plain{Miniredis: miniredis.NewMiniRedis()}
	t.Cleanup(p.Close)
	options.Addr = "127.0.0.1:1"
	dial := dialer(map[string]*miniredis.Miniredis{options.Addr: p.Miniredis})
	options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if p.silent != nil {
			return p.silent(), nil
		}
		return dial(ctx, network, addr)
	}
	p.client = redis.NewClient(options)
	return p
}

func (p *plain) server() *conn.Server {
	c := config()
	c.Workers = busyWorkers{begun: &p.begun}
	return conn.New(p.client, c)
}

// send sends a command, and returns how many goroutines that took.
func (p *plain) send(t *testing.T, s *conn.Server) int {
	t.Helper()
	before := p.begun.Load()
	c := &conn.Command{Script: conn.NewScript("return ARGV[1]"), Keys: 1, Words: []any{"k", "text"}}
	if r, err := s.Do(background, c, timeout); err != nil || r.Value != "text" {
		t.Error(r.Value, err)
	}
	return int(p.begun.Load() - before)
}

// warmUp sends so many commands as go by goroutines at first.
func (p *plain) warmUp(t *testing.T, s *conn.Server) {
	t.Helper()
	p.send(t, s)
	p.send(t, s)
}

// wantGoroutines fails the test unless commands take so many each.
func (p *plain) wantGoroutines(t *testing.T, s *conn.Server, want int) {
	t.Helper()
	for range 10 {
		if n := p.send(t, s); n != want {
			t.Errorf("a command takes %d goroutines; want %d", n, want)
		}
	}
}

// order is what hooks have seen of scripts, in their order.
type order struct {
	mu   sync.Mutex
	seen []string
}

func (o *order) take() (seen string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	seen, o.seen = strings.Join(o.seen, " "), nil
	return seen
}

// named is a hook that notes the scripts that it sees.
type named struct {
	reading
	name string
	*order
}

func (h named) see(cmds ...redis.Cmder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, cmd := range cmds {
		if strings.HasPrefix(cmd.Name(), "eval") {
			h.seen = append(h.seen, h.name)
		}
	}
}

func (h named) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.see(cmd)
		return next(ctx, cmd)
	}
}

func (h named) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.see(cmds...)
		return next(ctx, cmds)
	}
}

// Whenever a hook was added, and whichever way commands go: it sees each once, in its turn.
func TestHooksOfAPlainClient(t *testing.T) {
	plainBubble(t, redis.Options{}, func(t *testing.T, p *plain) {
		o, all, s := &order{}, []string{}, p.server()
		hook := func(name string) {
			p.client.AddHook(named{name: name, order: o})
			all = append(all, name)
		}
		want := func(s *conn.Server, goroutines int) {
			t.Helper()
			for range 5 {
				if n := p.send(t, s); n != goroutines {
					t.Errorf("a command takes %d goroutines, want %d", n, goroutines)
				}
				if got, want := o.take(), strings.Join(all, " "); got != want {
					t.Errorf("a command was seen by %q, want %q", got, want)
				}
			}
		}
		warmUp := func(s *conn.Server) {
			p.send(t, s)
			o.take()
			p.send(t, s)
			if got, want := o.take(), strings.Join(all, " "); got != want {
				t.Errorf("a command was seen by %q, want %q", got, want)
			}
		}
		hook("first")
		hook("second")
		warmUp(s)
		want(s, 0)
		hook("third")
		want(s, 1)
		other := p.server()
		warmUp(other)
		want(other, 0)
		p.send(t, s) // which finds the hook of the other
		o.take()
		want(s, 0)
		third := p.server()
		p.send(t, third)
		o.take()
		want(third, 0)
		<-flush(third, timeout, batched("in the background"))[0]
		if seen, want := o.take(), strings.Join(append(all, all...), " "); seen != want { // the script is unknown
			t.Errorf("what goes in the background was seen by %q, want %q", seen, want)
		}
	})
}

// A hook sees what begins after it was added, also while others are sent.
func TestHookThatIsAddedUnderCommands(t *testing.T) {
	plainBubble(t, redis.Options{}, func(t *testing.T, p *plain) {
		s := p.server()
		p.warmUp(t, s)
		var senders sync.WaitGroup
		stop := make(chan struct{})
		for range 4 {
			senders.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						p.send(t, s)
					}
				}
			})
		}
		added := make([]*order, 20)
		for i := range added {
			added[i] = &order{}
			p.client.AddHook(named{name: "it", order: added[i]})
			p.send(t, s)
			if seen := added[i].take(); seen == "" {
				t.Error("a hook has missed a command")
			}
		}
		close(stop)
		senders.Wait()
		for _, o := range added {
			o.take()
		}
		p.send(t, s)
		for i, o := range added {
			if seen := o.take(); seen != "it" {
				t.Errorf("hook %d has seen %q", i, seen)
			}
		}
	})
}

// meddling is a hook that does something when go-redis asks for it.
type meddling struct {
	reading
	during *func()
}

func (h meddling) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	(*h.during)()
	return next
}

// A command that goes while a hook is added says nothing about those that go after it.
func TestCommandWhileAHookIsAdded(t *testing.T) {
	plainBubble(t, redis.Options{}, func(t *testing.T, p *plain) {
		s, o, during := p.server(), &order{}, func() {}
		p.client.AddHook(meddling{during: &during})
		p.warmUp(t, s)
		during = func() { p.send(t, s) }
		p.client.AddHook(named{name: "it", order: o})
		during = func() {}
		p.send(t, s)
		if seen := o.take(); seen != "it" {
			t.Errorf("the hook has seen %q", seen)
		}
		p.wantGoroutines(t, s, 1)
	})
}

// asking counts how often go-redis asks a hook for what it does: for each hook that is added after it.
type asking struct {
	reading
	times *atomic.Int32
}

func (h asking) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	h.times.Add(1)
	return next
}

// A client has one hook for all who send by it, however many come and go.
func TestHooksDoNotPileUp(t *testing.T) {
	plainBubble(t, redis.Options{}, func(t *testing.T, p *plain) {
		times := new(atomic.Int32)
		p.client.AddHook(asking{times: times})
		p.warmUp(t, p.server())
		times.Store(0)
		for range 10 {
			s := p.server()
			p.warmUp(t, s)
			p.wantGoroutines(t, s, 0)
		}
		if n := times.Load(); n != 0 {
			t.Errorf("%d more hooks", n)
		}
		p.client.AddHook(stopping{})
		times.Store(0)
		for range 10 {
			s := p.server()
			for range 3 {
				if _, err := s.Do(background, batched("k"), timeout); err == nil {
					t.Error("no error")
				}
			}
		}
		if n := times.Load(); n != 0 {
			t.Errorf("%d more hooks, for commands that were stopped", n)
		}
	})
}

// stopping is a hook that stops commands.
type stopping struct{ reading }

func (stopping) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { return errDial }
}

// One that cannot be found, since a hook sends commands by another client, is added once.
func TestHookThatSendsByAnotherClient(t *testing.T) {
	plainBubble(t, redis.Options{}, func(t *testing.T, p *plain) {
		other, times := newPlain(t, &redis.Options{}), new(atomic.Int32)
		defer other.client.Close()
		other.warmUp(t, other.server())
		p.client.Ping(background)
		p.client.AddHook(asking{times: times})
		p.client.AddHook(sending{to: other.client})
		times.Store(0)
		s, before := p.server(), p.CommandCount()
		p.wantGoroutines(t, s, 1)
		if n := p.CommandCount() - before; n != 0 {
			t.Errorf("%d commands have gone past the hook", n)
		}
		if n := times.Load(); n > 1 {
			t.Errorf("%d hooks were added", n)
		}
	})
}

type sending struct {
	reading
	to *redis.Client
}

func (h sending) ProcessHook(redis.ProcessHook) redis.ProcessHook { return h.to.Process }

// A connection or a transaction of the application's is no hook.
func TestPlainClientThatIsUsedOtherwise(t *testing.T) {
	plainBubble(t, redis.Options{}, func(t *testing.T, p *plain) {
		s := p.server()
		p.warmUp(t, s)
		for range 3 {
			if err := p.client.Watch(background, func(*redis.Tx) error { return nil }, "x"); err != nil {
				t.Error(err)
			}
			p.send(t, s)
			p.wantGoroutines(t, s, 0)
		}
	})
}

// An outage before the hook is there shows nothing of what the client would do with it.
func TestPlainClientAfterAnOutage(t *testing.T) {
	plainBubble(t, redis.Options{}, func(t *testing.T, p *plain) {
		p.client.Ping(background)
		thaw := make(chan struct{})
		p.Server().SetPreHook(func(*server.Peer, string, ...string) bool { <-thaw; return false })
		s := p.server()
		if _, err := s.Do(background, batched("k"), timeout); !errors.Is(err, conn.ErrNoAnswer) {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		close(thaw)
		p.Server().SetPreHook(nil)
		p.warmUp(t, s)
		p.wantGoroutines(t, s, 0)
	})
}

// The client's own timeouts hold, whoever sends.
func TestTimeoutsOfAPlainClient(t *testing.T) {
	const short = 100 * time.Millisecond
	for name, c := range map[string]struct {
		options redis.Options
		reads   bool // the server does, and does not answer
		took    time.Duration
	}{
		"of reading":                      {redis.Options{ReadTimeout: short, WriteTimeout: time.Hour}, true, short},
		"of reading, longer than Timeout": {redis.Options{ReadTimeout: time.Hour, WriteTimeout: short}, true, timeout},
		"of writing":                      {redis.Options{ReadTimeout: time.Hour, WriteTimeout: short}, false, short},
		"of writing, longer than Timeout": {redis.Options{ReadTimeout: short, WriteTimeout: time.Hour}, false, timeout},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.ConnMaxIdleTime, c.options.MaxRetries = time.Minute, -1
			plainBubble(t, c.options, func(t *testing.T, p *plain) {
				s := p.server()
				p.warmUp(t, s)
				time.Sleep(time.Hour) // no connection is left
				for want, s := range []*conn.Server{s, p.server()} {
					p.silent = func() net.Conn {
						ours, theirs := net.Pipe()
						time.AfterFunc(time.Minute, func() { _ = theirs.Close() }) // go-redis forgets what it could not set up
						if c.reads {
							go func() { _, _ = io.Copy(io.Discard, theirs) }()
						}
						return ours
					}
					began, before := time.Now(), p.begun.Load()
					_, err := s.Do(background, batched("k"), timeout)
					wantTime(t, "it returned", began, c.took)
					if n := int(p.begun.Load() - before); err == nil || n != want {
						t.Errorf("%v, %d goroutines, want %d", err, n, want)
					}
					p.silent = nil
					time.Sleep(time.Hour)
				}
			})
		})
	}
}

// What the application sends by the client takes as long as the client says, whatever its context does.
func TestCommandsOfTheApplication(t *testing.T) {
	const readTimeout = 700 * time.Millisecond
	for name, send := range map[string]func(context.Context, *redis.Client) error{
		"a command":  func(ctx context.Context, c *redis.Client) error { return c.Get(ctx, "k").Err() },
		"a pipeline": func(ctx context.Context, c *redis.Client) error { _, err := c.Pipelined(ctx, getTwo); return err },
	} {
		plainBubble(t, redis.Options{ReadTimeout: readTimeout, MaxRetries: -1}, func(t *testing.T, p *plain) {
			s, thaw := p.server(), make(chan struct{})
			p.warmUp(t, s)
			p.wantGoroutines(t, s, 0)
			p.Server().SetPreHook(func(*server.Peer, string, ...string) bool { <-thaw; return false })
			ctx, cancel := context.WithTimeout(background, time.Millisecond)
			defer cancel()
			began := time.Now()
			if err := send(ctx, p.client); err == nil {
				t.Error("no error of", name)
			}
			wantTime(t, name, began, readTimeout)
			close(thaw)
		})
	}
}

// A release in the background that waits for a connection of the application says nothing about how commands go afterwards.
func TestBackgroundCommandThatWaitsForAConnection(t *testing.T) {
	forget := func() { runtime.GC(); runtime.GC() } // go-redis keeps timers of those who have waited, which are no good in another bubble
	for _, keepsDeadlines := range []bool{false, true} {
		forget()
		defer forget()
		plainBubble(t, redis.Options{PoolSize: 1, ContextTimeoutEnabled: keepsDeadlines}, func(t *testing.T, p *plain) {
			s, told := p.server(), make(inbox, 1)
			p.warmUp(t, s)
			p.wantGoroutines(t, s, 0)
			began := time.Now()
			go p.client.BLPop(background, 3*time.Second, "jobs")
			synctest.Wait()
			s.Begin(&conn.Queued{Command: batched("k"), Timeout: timeout, To: told})
			<-told
			wantTime(t, "the release", began, 3*time.Second)
			p.wantGoroutines(t, s, 0)
		})
	}
}

func getTwo(pipe redis.Pipeliner) error {
	pipe.Get(background, "k")
	pipe.Get(background, "k")
	return nil
}

// One that waits for answers without end is nothing for its callers' goroutines.
func TestPlainClientWithoutTimeouts(t *testing.T) {
	for name, options := range map[string]redis.Options{
		"of reading": {ReadTimeout: -1, WriteTimeout: time.Second}, "of writing": {WriteTimeout: -1},
	} {
		t.Run(name, func(t *testing.T) {
			plainBubble(t, options, func(t *testing.T, p *plain) {
				times := new(atomic.Int32)
				p.client.AddHook(asking{times: times})
				times.Store(0)
				if p.wantGoroutines(t, p.server(), 1); times.Load() > 1 { // for a connection
					t.Errorf("%d hooks", times.Load()-1)
				}
			})
		})
	}
}
