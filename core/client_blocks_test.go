package core_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/latchkey-go/latchkey/core"
)

// blocker takes six seconds as long as it is on, whatever contexts say.
type blocker struct {
	on    atomic.Bool
	times atomic.Int32
}

func (b *blocker) block() {
	if b.on.Load() {
		b.times.Add(1)
		time.Sleep(6 * time.Second)
	}
}

func (b *blocker) Allow() error       { b.block(); return nil }
func (b *blocker) ReportResult(error) {}

func (b *blocker) Subscribe(auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	b.block()
	return auth.NewBasicCredentials("", ""), func() error { return nil }, nil
}

func (b *blocker) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *blocker) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			b.block()
		}
		return next(ctx, cmd)
	}
}

func (b *blocker) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// stubborn is a connection that keeps no deadlines.
type stubborn struct {
	net.Conn
	*blocker
}

func (c stubborn) Read(b []byte) (int, error) {
	c.block()
	return c.Conn.Read(b)
}

func dialStubborn(o *redis.Options, b *blocker) {
	dial := o.Dialer
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return stubborn{conn, b}, err
	}
}

// What a client does before it sends a command, or instead, may know no context: a call ends in time all the
// same. What cannot be seen of a client, it must have done once.
func TestTimeoutHoldsWhereTheClientBlocks(t *testing.T) {
	const timeout = time.Second
	for name, c := range map[string]struct {
		set  func(o *redis.Options, b *blocker)
		late int // so many calls that it holds up
	}{
		"CredentialsProvider": {set: func(o *redis.Options, b *blocker) {
			o.CredentialsProvider = func() (string, string) { b.block(); return "", "" }
		}},
		"CredentialsProviderContext": {set: func(o *redis.Options, b *blocker) {
			o.CredentialsProviderContext = func(context.Context) (string, string, error) { b.block(); return "", "", nil }
		}},
		"StreamingCredentialsProvider": {set: func(o *redis.Options, b *blocker) { o.StreamingCredentialsProvider = b }},
		"OnConnect": {set: func(o *redis.Options, b *blocker) {
			o.OnConnect = func(context.Context, *redis.Conn) error { b.block(); return nil }
		}},
		"Limiter": {set: func(o *redis.Options, b *blocker) { o.Limiter = b }},
		"Dialer": {set: func(o *redis.Options, b *blocker) {
			dial := o.Dialer
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				b.block()
				return dial(ctx, network, addr)
			}
		}},
		"Dialer of connections without deadlines": {late: 1, set: dialStubborn},
		"the same, of a client that sets none": {set: func(o *redis.Options, b *blocker) {
			o.ReadTimeout = -2
			dialStubborn(o, b)
		}},
		"hook": {late: 1},
	} {
		blocks := func(t *testing.T, obedient bool) {
			bubble(t, func(t *testing.T, s *embedded) {
				b := &blocker{}
				options := &redis.Options{Addr: s.addr, Dialer: s.dial, ContextTimeoutEnabled: obedient}
				if c.set != nil {
					c.set(options, b)
				}
				client := redis.NewClient(options)
				defer s.breakConnections() // the client forgets those that it could not set up
				defer client.Close()
				if name == "hook" {
					client.AddHook(b)
				}
				l := onRedis(t, client, core.Timeout(timeout))
				late := 0
				inTime := func(what string, call func() error) {
					began := time.Now()
					wantErr(t, call(), core.ErrUnavailable)
					if took := time.Since(began); took > timeout+10*time.Millisecond {
						if late++; late > c.late {
							t.Errorf("%s ended after %v", what, took)
						}
					}
				}
				for range 2 {
					ctx, cancel := context.WithCancel(background)
					k := take(t, background, l, "k")
					unlock(t, take(t, background, l, "other")) // Redis has answered just now
					b.on.Store(true)
					s.breakConnections()
					inTime("TryLock", func() error { _, err := l.TryLock(ctx, "free"); return err })
					b.on.Store(false)
					time.Sleep(20 * time.Second)
					unlock(t, take(t, background, l, "other"))
					b.on.Store(true)
					s.breakConnections()
					inTime("Unlock", func() error { return k.Unlock(background) })
					b.on.Store(false)
					time.Sleep(time.Minute)
					s.isFree("k")
					s.isFree("free")
					cancel()
				}
				if b.times.Load() < 4 {
					t.Errorf("it has blocked %d times", b.times.Load())
				}
			})
		}
		t.Run(name, func(t *testing.T) { blocks(t, false) })
		t.Run(name+", ContextTimeoutEnabled", func(t *testing.T) { blocks(t, true) })
	}
}
