package locktest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/buffered"
)

// servers counts the servers of this process.
var servers atomic.Int64

// closeTimeout bounds the wait for locks that a test left held.
const closeTimeout = time.Second

// New returns a Locker on a Redis of its own, embedded in the test process. It
// uses no socket, and its keys expire by the clock of the test, so it also works
// inside a testing/synctest bubble, where an hour passes at once. At the end of
// the test the Locker is closed: after a second it frees locks that are still held, and the
// test fails with their keys and owners, because a lock that is never unlocked is a bug.
//
// Bad options end the test. The Locker is not made the default one; a test that
// needs that calls [core.SetDefault].
//
// [Hold], [Lose] and [Outage] make trouble for it.
func New(tb testing.TB, opts ...core.Option) *core.Locker {
	tb.Helper()
	s := &scene{
		redis: miniredis.NewMiniRedis(),
		// Not dialled. An IP address, for go-redis looks names up; another one for
		// each server, for Lockers with one address share their Redis.
		addr:  fmt.Sprintf("127.0.0.1:%d", servers.Add(1)),
		opts:  opts,
		taken: map[string][]lock{},
	}
	if err := s.startRedis(); err != nil {
		tb.Fatalf("locktest: %v", err)
	}
	locker, client := s.open(tb, core.Observe(s))
	scenes.Store(locker, s)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := locker.Close(ctx); err != nil {
			tb.Errorf("locktest: locks are still held at the end of the test: %s%v", s.leaked(), err)
		}
		if err := client.Close(); err != nil {
			tb.Errorf("locktest: %v", err)
		}
		s.redis.Close()
		scenes.Delete(locker)
	})
	return locker
}

// startRedis starts a Redis whose time stands still while a script runs, as in the real one: else a key that expires meanwhile
// could be made again by the script's next command, and stay for good.
func (s *scene) startRedis() error {
	s.redis.ClockTTL(true)
	first, err := s.redis.Dial() // starts it
	if err != nil {
		return err
	}
	s.redis.Server().SetPreHook(func(client *server.Peer, command string, _ ...string) bool {
		isAway := s.isAway.Load()
		switch {
		case isAway:
			// Not LOADING: go-redis repeats its greeting then, asleep with a mutex that its
			// subscriptions wait for, and the clock of a bubble stands still.
			client.WriteError("ERR locktest has an outage")
		case command == "EVALSHA" || command == "EVAL": // what a script calls comes by here as well, under a lock
			s.redis.SetTime(time.Now())
		}
		return isAway
	})
	return first.Close()
}

// scenes have what belongs to each Locker of New.
var scenes sync.Map // *core.Locker: *scene

// scene is a Redis, and what its Locker has taken there.
type scene struct {
	redis  *miniredis.Miniredis
	isAway atomic.Bool // it answers everything with an error
	addr   string
	opts   []core.Option

	mu    sync.Mutex
	taken map[string][]lock // by key
	leaks []string          // what Close had to take away
}

// sceneOf ends the test when the Locker is not one of New.
func sceneOf(tb testing.TB, l *core.Locker) *scene {
	tb.Helper()
	s, ok := scenes.Load(l)
	if !ok {
		tb.Fatalf("locktest: the Locker is not one that New has returned in this test")
	}
	return s.(*scene)
}

// open returns a Locker as another process would have it.
func (s *scene) open(tb testing.TB, more ...core.Option) (*core.Locker, *redis.Client) {
	tb.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: s.addr, ContextTimeoutEnabled: true,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			conn, err := s.redis.Dial()
			if err != nil {
				return nil, err
			}
			return buffered.New(conn), nil
		},
	})
	locker, err := core.New(client, append(s.opts[:len(s.opts):len(s.opts)], more...)...)
	if err != nil {
		tb.Fatalf("locktest: %v", err)
	}
	return locker, client
}

// Observe notes what the Locker takes, and what Close takes away from it.
func (s *scene) Observe(ctx context.Context, e core.Event) context.Context {
	k, held := core.FromContext(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case held && e.Kind == core.EventAcquired && !e.Reentry:
		s.taken[e.Key] = append(slices.DeleteFunc(s.taken[e.Key], lock.isUnlocked), lock{k, ctx})
	case e.Kind == core.EventLost && e.Reason == "closed":
		owner := "of which an inner hold is left"
		if held {
			owner = "by owner " + k.Owner()
		}
		s.leaks = append(s.leaks, fmt.Sprintf("%q %s, for %v", e.Key, owner, e.HeldFor.Round(time.Millisecond)))
	}
	return ctx
}

// lock is one that the Locker has taken.
type lock struct {
	*core.Lock
	ctx context.Context
}

func (k lock) isUnlocked() bool {
	held, _ := core.FromContext(k.ctx)
	return held != k.Lock
}

// leaked lists what Close had to take away.
func (s *scene) leaked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.leaks)
	return strings.Join(append(s.leaks, ""), "; ")
}
