//go:build go1.25

package core_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// What versions of go-redis have that the users of locks pay for. go.mod requires the oldest that has none of it:
// 9.22.0. Before 9.20.0 a client does not close under a command that hangs, before 9.21.0 a handshake is a must
// once it has succeeded, in 9.20.1 and 9.21.0 a subscription to a short name is never confirmed.

// A server that takes an optional handshake once, and then refuses it, as behind an address that leads to
// another server after a failover, is no reason to refuse connections.
func TestHandshakeThatIsRefusedLater(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := server.Proxy(t)
	handshake := func(request []string) bool {
		return len(request) > 1 && strings.EqualFold(request[0], "client") && strings.EqualFold(request[1], "maint_notifications")
	}
	taken := proxy.Answer(handshake, "+OK\r\n")
	client := proxy.Client(t, patient)
	if err := client.Ping(background).Err(); err != nil || taken.Count() != 1 {
		t.Fatalf("%d handshakes, %v; want one that was taken", taken.Count(), err)
	}
	refused := proxy.Answer(handshake, "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'\r\n", redistest.Always())
	l := onRedis(t, client, core.Timeout(inTheEnd))
	for range 2 {
		proxy.KillConnections()
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				if err := l.Do(background, strconv.Itoa(i), func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	if refused.Count() == 0 {
		t.Error("no handshake was refused")
	}
}

// In the order of docs/failures.md a process ends although Redis hangs.
func TestCloseOfAClientUnderACommandThatHangs(t *testing.T) {
	t.Parallel()
	for name, obedient := range map[string]bool{"": false, "ContextTimeoutEnabled": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.Start(t).Proxy(t)
			client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ContextTimeoutEnabled: obedient, ReadTimeout: time.Hour})
			l, err := core.New(client, quiet)
			if err != nil {
				t.Fatal(err)
			}
			k := take(t, background, l, "k")
			commands := proxy.Observe(redistest.Command("get"))
			proxy.HangReply(redistest.Command("get"))
			got := make(chan error, 1)
			go func() { got <- client.Get(background, "of the application").Err() }()
			commands.Wait(t)
			proxy.BlackHole(true)
			wantErr(t, k.Unlock(background), core.ErrUnavailable)
			ended, cancel := context.WithCancel(background)
			cancel()
			wantErr(t, l.Close(ended), context.Canceled)
			closed := make(chan error, 1)
			go func() { closed <- client.Close() }()
			select {
			case err := <-closed:
				wantErr(t, err)
			case <-time.After(inTheEnd):
				t.Fatal("the client does not close")
			}
			if <-got == nil {
				t.Error("a command that was never answered has succeeded")
			}
		})
	}
}

// An application hears of its own subscriptions, also where a channel has a short name.
func TestSubscriptionOfTheApplicationToAShortName(t *testing.T) {
	t.Parallel()
	pubsub := redistest.Start(t).Client(t).Subscribe(background, "x")
	giveUp := time.AfterFunc(inTheEnd, func() { _ = pubsub.Close() })
	if got, err := pubsub.Receive(background); err != nil || !giveUp.Stop() {
		t.Errorf("%v, %v; want a confirmation at once", got, err)
	}
	_ = pubsub.Close()
}

// twiceHook sends each command twice, while it is on, as one that repeats what has failed.
type twiceHook struct{ on atomic.Bool }

func (*twiceHook) DialHook(next redis.DialHook) redis.DialHook { return next }
func (*twiceHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (h *twiceHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.on.Load() {
			_ = next(ctx, cmd)
		}
		return next(ctx, cmd)
	}
}

// Taken out, the outer lock, which counts as lost as well, is nobody's until its lease ends.
func TestInnerReleaseThatAHookSendsTwice(t *testing.T) {
	t.Parallel()
	server, twice := redistest.Start(t), new(twiceHook)
	client := server.Client(t)
	client.AddHook(twice)
	l := onRedis(t, client)
	k := take(t, background, l, "k", core.Lease(time.Hour))
	inner := take(t, k.Context(), l, "k")
	twice.on.Store(true)
	wantErr(t, inner.Unlock(background), core.ErrLost)
	twice.on.Store(false)
	awaitFree(t, server.Client(t), "k")
	wantErr(t, k.Unlock(background), core.ErrLost)
}
