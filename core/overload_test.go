//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// Servers do one thing after the other, each call of a script in so much time: then one does so many calls a second, of two
// scripts each.
const (
	scriptTime = 4 * time.Millisecond
	capacity   = int(time.Second / scriptTime / 2)
)

// serverQueue is the queue of a server.
type serverQueue struct {
	turn   chan struct{}
	stands atomic.Int64 // until then, in ns since 1970, nothing is done
}

// serve has a command wait for its turn. What a client has sent is done, also if its connection is closed by then.
func (q *serverQueue) serve(_ *embedded, _ *peer, cmd string, args []string) bool {
	cost := scriptTime
	if cmd == "EVALSHA" || cmd == "EVAL" {
		var keys int
		_, _ = fmt.Sscan(args[1], &keys)
		switch isMerged, arguments := keys > 3, len(args)-2-keys; {
		case isMerged && arguments >= keys: // it has one key of each call
			cost *= time.Duration(keys)
		case isMerged:
			cost *= time.Duration(keys / 3)
		}
	}
	q.turn <- struct{}{}
	time.Sleep(max(cost, time.Until(time.Unix(0, q.stands.Load()))))
	<-q.turn
	return false
}

// fleet is processes that ask the same servers for locks.
type fleet struct {
	queues     []*serverQueue
	embedded   []*embedded
	lockers    []*core.Locker
	granted    atomic.Int32
	lost       atomic.Int32
	pending    atomic.Int32 // compensations
	overloaded atomic.Int32 // calls
}

func (f *fleet) Observe(_ context.Context, e core.Event) context.Context {
	switch e.Kind {
	case core.EventLost:
		f.lost.Add(1)
	case core.EventCompensating:
		f.pending.Add(1)
	case core.EventCompensated:
		f.pending.Add(-1)
	case core.EventFailed:
		if errors.Is(e.Err, core.ErrOverloaded) {
			f.overloaded.Add(1)
		}
	}
	return nil
}

// newFleet returns processes on so many servers, as open makes a Locker of them.
func newFleet(t *testing.T, servers int, open func(t *testing.T, servers []*embedded, opts ...core.Option) *core.Locker, opts ...core.Option) *fleet {
	f := &fleet{}
	for range servers {
		s, q := newEmbedded(t), &serverQueue{turn: make(chan struct{}, 1)}
		s.failAll(q.serve, acquire, release, renew, "", "hello")
		f.embedded, f.queues = append(f.embedded, s), append(f.queues, q)
	}
	for range 4 {
		f.lockers = append(f.lockers, open(t, f.embedded, append(opts, core.Observe(f), quiet)...))
	}
	return f
}

func onOneServer(t *testing.T, servers []*embedded, opts ...core.Option) *core.Locker {
	return servers[0].locker(opts...)
}

func onQuorum(t *testing.T, servers []*embedded, opts ...core.Option) *core.Locker {
	var clients []redis.UniversalClient
	for _, s := range servers {
		clients = append(clients, s.client())
	}
	l, err := core.NewQuorum(clients, opts...)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, l)
	return l
}

func onRing(t *testing.T, servers []*embedded, opts ...core.Option) *core.Locker {
	addrs := map[string]string{}
	for _, s := range servers {
		addrs[s.addr] = s.addr
	}
	ring := redis.NewRing(&redis.RingOptions{
		Addrs:       addrs,
		HeartbeatFn: func(context.Context, *redis.Client) bool { return true },
		NewClient: func(o *redis.Options) *redis.Client {
			for _, s := range servers {
				if s.addr == o.Addr {
					o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) { return s.dial(ctx, network, addr) }
				}
			}
			return redis.NewClient(o)
		},
	})
	t.Cleanup(func() { _ = ring.Close() })
	l, err := core.New(ring, opts...)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, l)
	return l
}

// offer calls so many times a second, and returns how many calls are granted in that time.
func (f *fleet) offer(calls int, d time.Duration) (granted int) {
	before := f.granted.Load()
	for i := range int(d.Seconds() * float64(calls)) {
		time.Sleep(time.Second / time.Duration(calls))
		go func() {
			k, err := f.lockers[i%len(f.lockers)].TryLock(background, fmt.Sprint("k", i%397))
			if err == nil {
				f.granted.Add(1)
				time.Sleep(time.Millisecond)
				_ = k.Unlock(background)
			}
		}()
	}
	return int(f.granted.Load() - before)
}

// What a Redis is asked for can be five times what it can do, or it stands still for a while. It does nearly as much as it can
// meanwhile, and soon after all is as before. Taken out, what protects single calls feeds the fire for minutes.
func TestOverloadEndsByItself(t *testing.T) {
	for name, c := range map[string]struct {
		servers int
		open    func(*testing.T, []*embedded, ...core.Option) *core.Locker
		timeout time.Duration
		times   int // what it is asked for in the spike
		goodput int // of capacity, in percent
	}{
		"one Redis":                         {1, onOneServer, 400 * time.Millisecond, 5, 60},
		"one Redis, the default Timeout":    {1, onOneServer, 2 * time.Second, 5, 60},
		"one Redis stands still":            {1, onOneServer, 400 * time.Millisecond, 0, 0},
		"a quorum":                          {3, onQuorum, 500 * time.Millisecond, 5, 40},
		"a quorum stands still":             {3, onQuorum, 500 * time.Millisecond, 0, 0},
		"three shards, of which one stands": {3, onRing, 400 * time.Millisecond, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, c.servers, c.open, core.Timeout(c.timeout))
				usual := capacity * 6 / 10
				f.offer(usual, 2*time.Second)
				if c.times > 0 {
					granted := f.offer(usual*c.times, 4*time.Second)
					if percent := granted * 100 / (4 * capacity); percent < c.goodput {
						t.Errorf("%d %% of what it can do was done", percent)
					}
					if f.overloaded.Load() == 0 {
						t.Error("nobody was told")
					}
				} else {
					for i, q := range f.queues {
						if i == 0 || c.open != nil && name != "three shards, of which one stands" {
							q.stands.Store(time.Now().Add(4 * time.Second).UnixNano())
						}
					}
					f.offer(usual, 4*time.Second)
				}
				f.offer(usual, 3*time.Second)
				if got, want := f.offer(usual, 2*time.Second), usual*2*93/100; got < want {
					t.Errorf("3 s later %d of %d calls were granted", got, usual*2)
				}
				time.Sleep(3 * time.Second)
				if n := f.pending.Load(); n != 0 {
					t.Errorf("%d compensations are under way", n)
				}
				for _, s := range f.embedded {
					for _, key := range s.Keys() {
						if len(key) > len("lock:k") && key[:len("lock:k")] == "lock:k" {
							t.Errorf("%s is held by nobody", key)
						}
					}
				}
			})
		})
	}
}

// Renewals go before what is new, however much that is.
func TestHeldLocksOutliveOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, onOneServer, core.Timeout(400*time.Millisecond), core.Lease(6*time.Second))
		var held []*core.Lock
		for i, l := range f.lockers {
			for j := range 5 {
				held = append(held, take(t, background, l, fmt.Sprint("held", i, j)))
			}
		}
		f.offer(capacity*3, 9*time.Second)
		if n := f.lost.Load(); n != 0 {
			t.Errorf("%d of %d locks were lost", n, len(held))
		}
		unlock(t, held...)
	})
}

// Releases that Unlock has given up in an outage are in nobody's way when it is over. Taken out, each of them has a probe of the server
// of its own, one after the other, and until then all calls fail.
func TestReleasesOfAnOutageHoldUpNobody(t *testing.T) {
	const releases = 100
	bubble(t, func(t *testing.T, s *embedded) {
		client := redis.NewClient(&redis.Options{Addr: s.addr, Dialer: s.dial, PoolSize: releases, ReadTimeout: -1, WriteTimeout: -1})
		l, err := core.New(client, core.Logger(slog.New(slog.DiscardHandler)), core.Lease(5*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = client.Close() // what hangs does so for ever
			_ = l.Close(background)
		}()
		locks := make([]*core.Lock, releases)
		for i := range locks {
			locks[i] = take(t, background, l, fmt.Sprint("k", i))
		}
		s.failAll(hang, release, acquire, renew)
		var all sync.WaitGroup
		for _, k := range locks {
			all.Go(func() { _ = k.Unlock(background) })
			time.Sleep(10 * time.Millisecond)
		}
		all.Wait()
		s.heal()
		for began := time.Now(); ; {
			if k, err := l.TryLock(background, "new"); err == nil {
				unlock(t, k)
				break
			}
			if time.Since(began) > 10*time.Second {
				t.Fatal("no call has got a lock for 10 s")
			}
		}
	})
}

// Taken out, the second call is told that Redis is asked for more than it can do.
func TestOutageOfAQuorumIsNoOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := []*embedded{newEmbedded(t), newEmbedded(t), newEmbedded(t)}
		l := quorumOf(t, servers)
		for range 20 {
			unlock(t, take(t, background, l, "k"))
		}
		for _, s := range servers {
			s.failAll(hang, acquire)
		}
		first := start(background, l, "a")
		time.Sleep(300 * time.Millisecond)
		_, err := l.TryLock(background, "b")
		wantErr(t, err, core.ErrUnavailable)
		wantNot(t, err, core.ErrOverloaded)
		for _, s := range servers {
			s.heal()
		}
		if o := <-first; o.err == nil {
			unlock(t, o.lock)
		}
	})
}
