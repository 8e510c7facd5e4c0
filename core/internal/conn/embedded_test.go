//go:build go1.25

package conn_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/internal/buffered"
)

// dialer reaches embedded servers by their addresses.
func dialer(servers map[string]*miniredis.Miniredis) func(context.Context, string, string) (net.Conn, error) {
	return func(_ context.Context, _, addr string) (net.Conn, error) {
		pipe, err := servers[addr].Dial()
		if err != nil {
			return nil, err
		}
		return buffered.New(pipe), nil
	}
}

// What is wrong with one call of a batch is an error of that one, unless the server has
// become a replica.
func TestBatchOfScriptsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redisServer := miniredis.NewMiniRedis()
		defer redisServer.Close()
		dial := dialer(map[string]*miniredis.Miniredis{"127.0.0.1:1": redisServer})
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", Dialer: dial})
		defer client.Close()
		s := conn.New(client, config())
		set := conn.NewScript(`
			redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
			return {1, ARGV[2]}
			`)
		set.Merged = conn.NewMerged(`
			local replies = {}
			for i = 1, #KEYS do
				if ARGV[2 * i] == 'readonly' then
					return redis.error_reply("READONLY You can't write against a read only replica.")
				end
				local set = redis.pcall('HSET', KEYS[i], ARGV[2 * i - 1], ARGV[2 * i])
				replies[i] = type(set) == 'number' and {1, ARGV[2 * i]}
			end
			return replies
			`, 1)
		command := func(key, value string) *conn.Command {
			return &conn.Command{Script: set, Keys: 1, Words: []any{key, "field", value}, MergedArgs: 2}
		}
		flush(s, timeout, command("a", "1"), command("a", "1"))
		time.Sleep(time.Second) // now it is known that one server has all keys
		if keys := redisServer.Keys(); !slices.Equal(keys, []string{"a"}) {
			t.Errorf("the key by which it was found out is left: %v", keys)
		}
		before := redisServer.CommandCount()
		_ = redisServer.Set("text", "x")
		var got []string
		for _, in := range flush(s, timeout, command("a", "2"), command("text", "3"), command("b", "4")) {
			r := <-in
			got = append(got, fmt.Sprint(r.reply.Value, " ", r.err))
		}
		if got[0] != "[1 2] <nil>" || !strings.Contains(got[1], "WRONGTYPE") || got[2] != "[1 4] <nil>" {
			t.Errorf("%q", got)
		}
		if n := redisServer.CommandCount() - before; n != 1+3+3 { // the single script is not known yet
			t.Errorf("%d commands, those of the script included", n)
		}
		if got := redisServer.HGet("a", "field") + redisServer.HGet("b", "field"); got != "24" {
			t.Error(got)
		}
		for _, in := range flush(s, timeout, command("a", "5"), command("b", "readonly")) {
			if r := <-in; !redis.IsReadOnlyError(r.err) {
				t.Error(r)
			}
		}
		if r, err := s.Do(background, command("c", "6"), timeout); err != nil || fmt.Sprint(r.Value) != "[1 6]" {
			t.Error(r, err)
		}
	})
}

// reading is a hook that reads the words of commands, as those for tracing do.
type reading struct{}

func (reading) DialHook(next redis.DialHook) redis.DialHook { return next }

func (reading) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		_ = fmt.Sprint(cmd.Args()...) + cmd.String()
		return next(ctx, cmd)
	}
}

func (reading) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			_ = fmt.Sprint(cmd.Args()...) + cmd.String()
		}
		return next(ctx, cmds)
	}
}

// Hooks read the words of a command that never leaves, and so does a cluster client, to find its node.
func TestCommandsOfWhichOnlyTheWordsWereRead(t *testing.T) {
	const addr = "127.0.0.1:1"
	type dial = func(context.Context, string, string) (net.Conn, error)
	for name, newClient := range map[string]func(dial) redis.UniversalClient{
		"single": func(d dial) redis.UniversalClient { return redis.NewClient(&redis.Options{Addr: addr, Dialer: d}) },
		"obedient": func(d dial) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: addr, Dialer: d, ContextTimeoutEnabled: true})
		},
		"ring": func(d dial) redis.UniversalClient {
			return redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": addr}, Dialer: d, HeartbeatFrequency: time.Hour})
		},
		"cluster": func(d dial) redis.UniversalClient {
			slots := []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: addr}}}}
			return redis.NewClusterClient(&redis.ClusterOptions{Dialer: d,
				ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { return slots, nil }})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				redisServer := miniredis.NewMiniRedis()
				defer redisServer.Close()
				var works atomic.Bool
				dialWorking := dialer(map[string]*miniredis.Miniredis{addr: redisServer})
				client := newClient(func(ctx context.Context, network, _ string) (net.Conn, error) {
					if !works.Load() {
						return nil, errDial
					}
					return dialWorking(ctx, network, addr)
				})
				client.AddHook(reading{})
				s := conn.New(client, config())
				compensated := make([]*atomic.Int32, 3)
				cs := make([]*conn.Command, len(compensated))
				for i := range cs {
					cs[i], compensated[i] = counted(new(conn.Resends))
				}
				_, err := s.Do(background, cs[0], timeout)
				wantFailure(t, err, conn.NotSent, errDial)
				s.DoAll(background, cs, timeout, func(_ int, _ conn.Reply, err error) {
					if err == nil || outcome(err) == conn.Refused {
						t.Error(err)
					}
				})
				for i, n := range compensated {
					if n.Load() > 0 || cs[i].Resends.MayArriveTwice() {
						t.Errorf("%d compensations, may arrive twice: %v", n.Load(), cs[i].Resends.MayArriveTwice())
					}
				}
				works.Store(true)
				echo := conn.NewScript("return ARGV[1]")
				r, err := s.Do(background, &conn.Command{Script: echo, Keys: 1, Words: []any{"k", "text"}}, timeout)
				if err != nil || r.Value != "text" {
					t.Error(r.Value, err)
				}
				_ = client.Close()
				time.Sleep(time.Minute)
			})
		})
	}
}

// farAway is a connection to a server at a distance, which counts what is written at once.
type farAway struct {
	net.Conn
	distance time.Duration
	last     *atomic.Int64 // when something was written
	atOnce   *atomic.Int32
}

func (c *farAway) Write(b []byte) (int, error) {
	if now := time.Now().UnixNano(); c.last.Swap(now) != now {
		c.atOnce.Store(0)
	}
	c.atOnce.Add(1)
	time.Sleep(c.distance)
	return c.Conn.Write(b)
}

// Where Redis is far away, waiting for another's round trip costs more than one of one's own.
// Taken out, sixteen goroutines get three quarters of what go-redis alone gives them.
func TestMoreGoByThemselvesToARedisFarAway(t *testing.T) {
	for away, want := range map[time.Duration]int32{100 * time.Microsecond: alone, time.Millisecond: 16} {
		synctest.Test(t, func(t *testing.T) {
			redisServer := miniredis.NewMiniRedis()
			defer redisServer.Close()
			dial := dialer(map[string]*miniredis.Miniredis{"127.0.0.1:1": redisServer})
			var last atomic.Int64
			var atOnce atomic.Int32
			client := redis.NewClient(&redis.Options{
				Addr: "127.0.0.1:1", PoolSize: 20, ContextTimeoutEnabled: true,
				Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
					c, err := dial(ctx, network, addr)
					return &farAway{c, away, &last, &atOnce}, err
				},
			})
			defer client.Close()
			s := conn.New(client, config())
			script := conn.NewScript("return KEYS[1]")
			for range 30 { // each time an answer permits another connection
				var all sync.WaitGroup
				for i := range 32 {
					all.Go(func() {
						if _, err := s.Do(background, &conn.Command{Script: script, Keys: 1, Words: []any{fmt.Sprint(i)}}, timeout); err != nil {
							t.Error(err)
						}
					})
				}
				synctest.Wait()
				got := atOnce.Load()
				all.Wait()
				if got == want {
					return
				}
			}
			t.Errorf("%v away, %d calls go by themselves, want %d", away, atOnce.Load(), want)
		})
	}
}
