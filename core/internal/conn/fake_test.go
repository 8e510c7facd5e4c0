//go:build go1.25

package conn_test

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

var background = context.Background()

// silent is a logger for go-redis, which reports every outage at length.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(silent{}) }

// fake is a Redis that a hook of the client's stands for: nothing reaches a network. It
// writes a command as go-redis does.
type fake struct {
	client redis.UniversalClient

	mu     sync.Mutex
	sent   []sent
	faults []fault
	always fault

	divided  bool    // a probe finds nothing
	probes   int     // so many looked
	stop     error   // of a hook that stops pipelines
	panics   bool    // a hook does, when it sees a pipeline
	replicas int     // that have what was written; less than none: nobody can tell
	waits    [][]any // commands for them
	infos    atomic.Int32
}

// sent is a script that was written.
type sent struct {
	words []any
	at    time.Time
}

// fault is what becomes of a script. It calls write, or does not, and returns the reply.
type fault func(ctx context.Context, write func() []any) (any, error)

func newFake(options *redis.Options) *fake {
	options.Addr = "127.0.0.1:1" // never dialled, but go-redis looks names up
	client := redis.NewClient(options)
	f := &fake{client: client}
	client.AddHook(f)
	return f
}

func (f *fake) DialHook(redis.DialHook) redis.DialHook {
	return func(context.Context, string, string) (net.Conn, error) { panic("nobody dials") }
}

func (f *fake) ProcessHook(redis.ProcessHook) redis.ProcessHook { return f.process }

func (f *fake) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if f.stop != nil {
			return f.stop
		}
		if f.panics {
			panic("no")
		}
		for _, cmd := range cmds {
			_ = f.process(ctx, cmd)
		}
		return nil
	}
}

func (f *fake) process(ctx context.Context, cmd redis.Cmder) error {
	c, ok := cmd.(interface {
		redis.Cmder
		SetVal(any)
	})
	if !ok {
		if cmd.Name() == "info" {
			f.infos.Add(1)
		}
		return nil // or SET of a probe
	}
	write := func() []any {
		words := written(cmd)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sent = append(f.sent, sent{words, time.Now()})
		return words
	}
	switch name := cmd.Name(); {
	case name == "eval" && strings.Contains(cmd.String(), "latchkey:probe:"):
		f.mu.Lock()
		defer f.mu.Unlock()
		f.probes++
		if c.SetVal(int64(1)); f.divided {
			c.SetVal(int64(0))
		}
		return nil
	case name == "wait":
		f.mu.Lock()
		defer f.mu.Unlock()
		f.waits = append(f.waits, cmd.Args())
		if f.replicas < 0 {
			c.SetErr(refusal("LOADING Redis is loading"))
			return cmd.Err()
		}
		c.SetVal(int64(f.replicas))
		return nil
	case name != "eval" && name != "evalsha":
		panic(name)
	case !cmd.NoRetry():
		panic("go-redis would send a script again by itself")
	}
	f.mu.Lock()
	act := f.always
	if len(f.faults) > 0 {
		act, f.faults = f.faults[0], f.faults[1:]
	}
	f.mu.Unlock()
	if act == nil {
		act = succeed
	}
	value, err := act(ctx, write)
	if err != nil {
		c.SetErr(err)
		return err
	}
	c.SetVal(value)
	return nil
}

// written are the words of a command as a connection gets them.
func written(cmd redis.Cmder) []any {
	args := cmd.Args()
	if len(args) != cap(args) {
		panic("what one hook of the client's appends to the words meets what another appends")
	}
	words := slices.Clone(args)
	for i, word := range words {
		if w, ok := word.(encoding.BinaryMarshaler); ok {
			text, err := w.MarshalBinary()
			if err != nil || string(text) != fmt.Sprint(word) {
				panic("a hook of the client's would print another word")
			}
			words[i] = string(text)
		}
	}
	return words
}

// fail has the next scripts go wrong.
func (f *fake) fail(faults ...fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, faults...)
}

func (f *fake) failAll(act fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.always = act
}

// scripts returns those that were written so far.
func (f *fake) scripts() []sent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sent)
}

// succeed replies with the key, to a batch with those of its calls. A call that is bad is left to do,
// and refused.
func succeed(_ context.Context, write func() []any) (any, error) {
	words := write()
	if words[2] == 1 {
		if words[3] == "bad" {
			return nil, refusal("WRONGTYPE that is no hash")
		}
		return words[3], nil
	}
	replies := make([]any, words[2].(int))
	for i := range replies {
		replies[i] = words[3+i]
		if replies[i] == "bad" {
			replies[i] = nil
		}
	}
	return replies, nil
}

// reply is one that is always the same.
func reply(value any) fault {
	return func(_ context.Context, write func() []any) (any, error) {
		write()
		return value, nil
	}
}

// lost is written, and then the answer fails.
func lost(err error) fault {
	return func(_ context.Context, write func() []any) (any, error) {
		write()
		return nil, err
	}
}

// unsent fails before it is written.
func unsent(err error) fault {
	return func(context.Context, func() []any) (any, error) { return nil, err }
}

// late is answered so much later.
func late(d time.Duration) fault {
	return func(ctx context.Context, write func() []any) (any, error) {
		words := write()
		time.Sleep(d)
		return succeed(ctx, func() []any { return words })
	}
}

// refusal is an error that Redis answers with.
type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

type workers struct{}

func (workers) Start(f func())                      { go f() }
func (workers) Begin(task interface{ Run() })       { go task.Run() }
func config() conn.Config                           { return conn.Config{Prefix: "app:", Timeout: timeout, Workers: workers{}} }
func did(reply any) bool                            { return reply == "done" }
func outcome(err error) conn.Outcome                { return conn.OutcomeOf(err) }
func isFailure(err error) (f *conn.Failure, _ bool) { return f, errors.As(err, &f) }

const timeout = 2 * time.Second

var script = func() *conn.Script {
	s := conn.NewScript("a script")
	s.Did = did
	return s
}()

// bubble runs a test by a fake clock.
func bubble(t *testing.T, test func(t *testing.T, f *fake, s *conn.Server)) {
	t.Helper()
	for name, obedient := range map[string]bool{"": false, "ContextTimeoutEnabled": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(&redis.Options{ContextTimeoutEnabled: obedient})
				test(t, f, conn.New(f.client, config()))
				_ = f.client.Close()
			})
		})
	}
}

// counted is a command that counts how often it is compensated.
func counted(resends *conn.Resends) (c *conn.Command, compensated *atomic.Int32) {
	compensated = new(atomic.Int32)
	return &conn.Command{Script: script, Keys: 1, Words: []any{"k", "arg"}, Resends: resends,
		Compensator: counter{compensated}}, compensated
}

// counter counts compensations.
type counter struct{ *atomic.Int32 }

func (c counter) Compensate(*conn.Server) { c.Add(1) }

// wantFailure fails the test unless err has that outcome and cause.
func wantFailure(t *testing.T, err error, want conn.Outcome, cause error) {
	t.Helper()
	f, ok := isFailure(err)
	if !ok || f.Outcome != want || cause != nil && !errors.Is(err, cause) {
		t.Errorf("error %#v; want outcome %d of %v", err, want, cause)
	}
}

func wantTime(t *testing.T, what string, since time.Time, want time.Duration) {
	t.Helper()
	if got := time.Since(since); got != want {
		t.Errorf("%s after %v; want %v", what, got, want)
	}
}
