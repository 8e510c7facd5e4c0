//go:build go1.25

package core_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/buffered"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

type dialing func(over <-chan struct{}) func(ctx context.Context) (net.Conn, error)

// unreachable are the ways in which the nodes of a cluster say nothing, until over.
var unreachable = map[string]dialing{
	"silent": func(over <-chan struct{}) func(context.Context) (net.Conn, error) {
		return func(context.Context) (net.Conn, error) {
			client, server := net.Pipe()
			conn := buffered.New(client)
			go func() { _, _ = io.Copy(io.Discard, server) }()
			go func() {
				<-over
				_, _ = conn.Close(), server.Close()
			}()
			return conn, nil
		}
	},
	"dials that hang": func(over <-chan struct{}) func(context.Context) (net.Conn, error) {
		return func(ctx context.Context) (net.Conn, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-over:
				return nil, errDown
			}
		}
	},
	"connections that end, and then dials that hang": func(over <-chan struct{}) func(context.Context) (net.Conn, error) {
		var dials atomic.Int32
		return func(context.Context) (net.Conn, error) {
			if dials.Add(1) > 4 {
				<-over
				return nil, errDown
			}
			client, server := net.Pipe()
			go func() { _ = server.Close() }()
			return client, nil
		}
	},
	"dials that hang for ever": func(over <-chan struct{}) func(context.Context) (net.Conn, error) {
		return func(context.Context) (net.Conn, error) {
			<-over
			return nil, errDown
		}
	},
}

// sickCluster is a client of a cluster of which it knows nothing yet. The nodes cannot be
// reached until heal.
func sickCluster(t *testing.T, s *embedded, dial dialing) (client *redis.ClusterClient, heal func()) {
	t.Helper()
	over := make(chan struct{})
	sick := dial(over)
	client = redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"},
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			select {
			case <-over:
				return s.dial(ctx, network, addr)
			default:
				return sick(ctx)
			}
		},
	})
	heal = sync.OnceFunc(func() { close(over) })
	t.Cleanup(func() {
		heal()
		time.Sleep(time.Minute) // go-redis finishes what it began
		_ = client.Close()
		time.Sleep(time.Minute)
	})
	return client, heal
}

// Which node has a key is found out under the caller's deadline, not on his goroutine.
// Taken out, a call with 200 ms takes 9 s beside silent nodes, and 76 s where dials hang.
func TestClusterThatCannotBeReached(t *testing.T) {
	for name, dial := range unreachable {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				client, heal := sickCluster(t, s, dial)
				l, err := core.New(client, quiet)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				_, err = l.TryLock(deadline(200*time.Millisecond), "k")
				wantErr(t, err, core.ErrNotAcquired, context.DeadlineExceeded)
				wantTime(t, "TryLock returned", time.Since(began), 200*time.Millisecond, 200*time.Millisecond)

				began = time.Now()
				ctx, cancel := context.WithCancel(background)
				time.AfterFunc(100*time.Millisecond, cancel)
				_, err = l.Lock(ctx, "k")
				wantErr(t, err, core.ErrNotAcquired, context.Canceled)
				wantTime(t, "cancelled Lock returned", time.Since(began), 100*time.Millisecond, 100*time.Millisecond)

				for what, call := range map[string]func() error{
					"Lock":        func() error { _, err := l.Lock(background, "k", core.Wait(time.Second)); return err },
					"Inspect":     func() error { _, err := l.Inspect(background, "k"); return err },
					"ForceUnlock": func() error { _, err := l.ForceUnlock(background, "k"); return err },
				} {
					began = time.Now()
					wantErr(t, call(), core.ErrUnavailable)
					wantTime(t, what+" returned", time.Since(began), 0, 2*time.Second)
				}

				began = time.Now()
				locking := start(background, l, "k")
				if err := l.Close(within(time.Second)); err != nil {
					wantErr(t, err, context.DeadlineExceeded)
				}
				wantTime(t, "Close returned", time.Since(began), 0, 5*time.Second)
				wantErr(t, (<-locking).err, core.ErrUnavailable)
				heal()
			})
		})
	}
}

// Which node has a key is found out within Timeout, and what is left of it is for the
// command. Taken out, both have Timeout to themselves.
func TestTimeoutIncludesTheTopology(t *testing.T) {
	for name, obedient := range map[string]bool{"": false, "ContextTimeoutEnabled": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				client := redis.NewClusterClient(&redis.ClusterOptions{
					Addrs: []string{s.addr}, Dialer: s.dial, ReadTimeout: time.Minute, ContextTimeoutEnabled: obedient,
				})
				t.Cleanup(func() {
					time.Sleep(5 * time.Minute) // go-redis finishes what it began
					_ = client.Close()
				})
				l, err := core.New(client, quiet)
				if err != nil {
					t.Fatal(err)
				}
				s.fail("cluster", lateReply(1500*time.Millisecond))
				s.failAll(lateReply(20*time.Second), acquire)
				began := time.Now()
				_, err = l.TryLock(background, "k")
				wantErr(t, err, core.ErrUnavailable)
				if why := core.Detail(err); !strings.Contains(why, "no answer in time") {
					t.Error(why)
				}
				wantTime(t, "TryLock returned", time.Since(began), 2*time.Second, 2*time.Second)
			})
		})
	}
}

// However many call, one looks. Taken out, each call leaves a goroutine behind for as
// long as go-redis takes to give up.
func TestClusterThatCannotBeReachedIsLookedUpOnce(t *testing.T) {
	for name, dial := range unreachable {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				client, heal := sickCluster(t, s, dial)
				l, err := core.New(client, quiet)
				if err != nil {
					t.Fatal(err)
				}
				for range 300 {
					_, err := l.TryLock(deadline(10*time.Millisecond), "k")
					wantErr(t, err, context.DeadlineExceeded)
				}
				synctest.Wait()
				if n := blockedIn(ofCore...); n > 5 {
					t.Errorf("%d goroutines of the Locker", n)
				}
				heal()
				time.Sleep(time.Minute)
				k := take(t, background, l, "k")
				waiting := start(background, l, "k")
				waits(t, waiting)
				unlock(t, k)
				unlock(t, (<-waiting).lock)
				if err := l.Close(background); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A cluster that is a member of a quorum holds up nobody, nor do the releases that
// wait for it.
func TestQuorumWithAClusterThatCannotBeReached(t *testing.T) {
	for name, dial := range unreachable {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				cluster, _ := sickCluster(t, s, dial)
				l, err := core.NewQuorum([]redis.UniversalClient{s.client(), newEmbedded(t).client(), cluster}, quiet)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				for range 60 {
					unlock(t, take(t, background, l, "k"))
					time.Sleep(7 * time.Millisecond)
				}
				wantTime(t, "60 locks were there", time.Since(began), 0, time.Second)
				k := take(t, background, l, "k")
				time.Sleep(20 * time.Second)
				if err := context.Cause(k.Context()); err != nil {
					t.Error(err)
				}
				if n := blockedIn(ofCore...); n > 20 {
					t.Errorf("%d goroutines of the Locker", n)
				}
				unlock(t, k)
				began = time.Now()
				if err := l.Close(within(time.Second)); err != nil {
					wantErr(t, err, context.DeadlineExceeded)
				}
				wantTime(t, "Close returned", time.Since(began), 0, 3*time.Second)
			})
		})
	}
}

// A waiting call listens on all members of a quorum, also on those that nobody has
// reached yet. In real time: go-redis keeps a mutex while it looks. Taken out, the call
// looks by itself and lasts for more than a minute.
func TestWaitingCallListensToAClusterThatCannotBeReached(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	dial := unreachable["dials that hang"](over)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:  []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"},
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	})
	t.Cleanup(func() {
		close(over)
		_ = cluster.Close()
	})
	l, err := core.NewQuorum([]redis.UniversalClient{redistest.Start(t).Client(t), redistest.Start(t).Client(t), cluster},
		quiet, core.ShardedPubSub(), core.Timeout(5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	k := take(t, background, l, "k")
	began := time.Now()
	_, err = l.Lock(deadline(700*time.Millisecond), "k")
	wantErr(t, err, core.ErrNotAcquired, context.DeadlineExceeded)
	wantTime(t, "Lock returned", time.Since(began), 700*time.Millisecond, 10*time.Second)
	unlock(t, k)
	_ = l.Close(within(time.Second)) // the member has confirmed nothing
}
