//go:build go1.25

package asynqlock_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Four processes, whose connections break and whose replies are lost: a run begins after the last trigger of each burst,
// no two at once, and there are few.
func TestKeepOneStorm(t *testing.T) {
	t.Parallel()
	const bursts, each = 15, 40
	server := redistest.Start(t)
	f := newFarm(t, server.Addr())
	t.Cleanup(f.close)

	var mu sync.Mutex
	var began time.Time
	var runs, now int
	work := does(func(ctx context.Context) error {
		mu.Lock()
		began = time.Now()
		if now++; now > 1 {
			t.Error("two runs at once")
		}
		runs++
		mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(rand.N(100 * time.Millisecond)):
		}
		mu.Lock()
		now--
		mu.Unlock()
		return nil
	})
	var proxies []*redistest.Proxy
	for range 4 {
		proxy := server.Proxy(t)
		proxies = append(proxies, proxy)
		locker, err := core.New(proxy.Client(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = locker.Close(background) })
		guard := asynqlock.ByPayload("order_id", asynqlock.Locker(locker), asynqlock.OnBusy(asynqlock.KeepOne))
		f.start(guard(work), func(c *asynq.Config) { c.Concurrency = 4 })
	}
	for range bursts {
		var last time.Time
		for range each {
			if rand.N(4) == 0 {
				proxies[rand.N(4)].DropReply(redistest.Command("evalsha"))
			}
			if rand.N(20) == 0 {
				proxies[rand.N(4)].KillConnections()
			}
			last = time.Now()
			f.enqueue(order("42"))
		}
		redistest.Await(t, patience, "tasks done", func() bool {
			q := f.queue()
			return q.Active+q.Pending+q.Retry+q.Scheduled == 0
		})
		mu.Lock()
		if began.Before(last) {
			t.Errorf("the last run began %v before the last trigger", last.Sub(began))
		}
		mu.Unlock()
	}
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d triggers, %d runs", bursts*each, runs)
	if q := f.queue(); q.Archived > 0 || runs > bursts*each/2 {
		t.Errorf("%d archived, %d runs of %d triggers", q.Archived, runs, bursts*each)
	}
}

// What KeepOne costs: round trips to the Redis of the locks.
func TestKeepOneRoundTrips(t *testing.T) {
	first, second := taskContext(t, "first", 25), taskContext(t, "second", 25)
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		defer b.close()
		var mu sync.Mutex
		trips := 0
		client := b.dial()
		defer client.Close()
		locker, err := core.New(client)
		if err != nil {
			t.Fatal(err)
		}
		defer locker.Close(background)
		others := b.locker()
		guard := asynqlock.ByPayload("order_id", asynqlock.Locker(locker), asynqlock.OnBusy(asynqlock.KeepOne), core.NoWait())(does(nothing))
		process := func(ctx context.Context) { _ = guard.ProcessTask(ctx, order("42")) }
		cycle := func(process func(what string, want int, ctx context.Context)) {
			process("a free key", 4, first)
			release := hold(t, others, "order_id=42")
			process("the first that finds it busy", 6, first)
			process("that again", 3, first)
			process("a dropped one", 2, second)
			release()
			process("the one that has waited", 7, first)
		}
		cycle(func(_ string, _ int, ctx context.Context) { process(ctx) }) // connects, and loads the scripts
		client.AddHook(requests(func(send func() error) error {
			mu.Lock()
			trips++
			mu.Unlock()
			return send()
		}))
		cycle(func(what string, want int, ctx context.Context) {
			time.Sleep(10 * time.Second) // the one that has waited unsubscribes
			mu.Lock()
			trips = 0
			mu.Unlock()
			process(ctx)
			mu.Lock()
			defer mu.Unlock()
			if trips != want {
				t.Errorf("%s: %d round trips, want %d", what, trips, want)
			}
		})
	})
}
