//go:build go1.25

package asynqlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// deliveries are the contexts of a task that asynq delivers again, because it counts the first time as a failure, as it does when
// the worker has stood still.
func deliveries(tb testing.TB, id string) (first, second context.Context) {
	tb.Helper()
	embedded := miniredis.NewMiniRedis()
	if err := embedded.Start(); err != nil {
		tb.Fatal(err)
	}
	defer embedded.Close()
	f := newFarm(tb, embedded.Addr())
	defer f.close()
	caught := make(chan context.Context, 2)
	server := f.start(does(func(ctx context.Context) error {
		caught <- context.WithoutCancel(ctx)
		if n, _ := asynq.GetRetryCount(ctx); n == 0 {
			return errors.New("once more")
		}
		return nil
	}))
	f.enqueue(order("42", asynq.TaskID(id)))
	first, second = await(tb, caught, "the first delivery"), await(tb, caught, "the second delivery")
	server.Shutdown()
	return first, second
}

// A worker that stands still, wherever, while another one does its task or drops it, has no other task dropped when it goes on: nobody
// would run after that.
func TestKeepOneOfAWorkerThatStoodStill(t *testing.T) {
	first, again := deliveries(t, "first")
	second, third := taskContext(t, "second", 25), taskContext(t, "third", 25)
	for _, dropped := range []bool{false, true} {
		overs := 0
		for stop := range int32(10) {
			synctest.Test(t, func(t *testing.T) {
				var heard atomic.Int32
				goOn := make(chan struct{})
				standStill := hears(func(e core.Event) {
					if heard.Add(1) == stop+1 {
						<-goOn
					}
				})
				b := newBubble(t)
				defer b.close()
				locker, others := b.locker(core.Observe(standStill)), b.locker()
				process := func(l *core.Locker, ctx context.Context, next asynq.Handler) error {
					return asynqlock.With(l, asynqlock.OnBusy(asynqlock.KeepOne), core.NoWait()).ByPayload("order_id")(next).ProcessTask(ctx, order("42"))
				}
				release := hold(t, others, "order_id=42")
				var stands sync.WaitGroup
				stands.Go(func() { _ = process(locker, first, does(nothing)) })
				synctest.Wait()
				time.Sleep(2 * time.Minute)
				over := false
				if dropped {
					if err := process(others, second, forbidden(t)); !errors.Is(err, asynq.RevokeTask) {
						over = errors.Is(process(others, again, forbidden(t)), asynq.RevokeTask)
					}
					release()
					_ = process(others, second, does(nothing))
				} else {
					release()
					over = process(others, again, does(nothing)) == nil
					if over && process(others, again, does(nothing)) != nil {
						t.Error("the task does not run once more")
					}
				}
				defer hold(t, others, "order_id=42")()
				close(goOn)
				stands.Wait()
				if over {
					overs++
					wantNot(t, process(others, third, forbidden(t)), asynq.RevokeTask)
				}
			})
		}
		t.Logf("dropped %v: over %d times", dropped, overs)
	}
}

// A task that has been retried is neither run nor dropped while it is unknown whether an earlier worker has been told.
func TestKeepOneTellsEarlierWorkersFirst(t *testing.T) {
	first, again := deliveries(t, "first")
	keepers(t, func(t *testing.T, k *keeper) {
		k.tasks["first"], k.tasks["again"] = first, again
		release := k.hold("order_id=42")
		k.comesAgain("first")
		info, err := k.locker.Inspect(t.Context(), waits)
		task, _, ok := strings.Cut(strings.TrimPrefix(info.HandedOverBy, "asynq:"), ":")
		if err != nil || !ok {
			t.Fatalf("%+v, %v", info, err)
		}
		over := keyfunc.Key("KeepOne", "asynq:"+task+":")
		releaseOver := k.hold(over)
		release()
		k.comesAgain("again")
		k.runs("first", func() {
			k.comesAgain("second")
			k.comesAgain("again")
			releaseOver()
			k.dropped("again")
		})
		if info, err := k.locker.Inspect(t.Context(), over); err != nil || !info.Locked || info.TTL < 59*time.Minute {
			t.Errorf("afterwards: %+v, %v", info, err)
		}
		k.runs("second", func() {})
		k.runs("again", func() {})
	}, core.NoWait())
}

// A task that has been retried is not dropped for one that has run meanwhile, when an earlier worker has it wait in that moment.
func TestKeepOneIsNotDroppedForOneThatHasRun(t *testing.T) {
	first, again := deliveries(t, "first")
	second := taskContext(t, "second", 25)
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		defer b.close()
		meanwhile := func() {}
		locker, others := b.locker(core.Observe(hears(func(e core.Event) {
			if e.Kind == core.EventWaiting && strings.HasPrefix(e.Key, "KeepOne=asynq") {
				meanwhile()
			}
		}))), b.locker()
		process := func(l *core.Locker, ctx context.Context, next asynq.Handler) error {
			return asynqlock.With(l, asynqlock.OnBusy(asynqlock.KeepOne), core.NoWait()).ByPayload("order_id")(next).ProcessTask(ctx, order("42"))
		}
		release := hold(t, others, "order_id=42")
		wantRefusal(t, process(others, second, forbidden(t)))
		meanwhile = func() {
			release()
			if err := process(others, second, does(nothing)); err != nil {
				t.Error(err)
			}
			release = hold(t, others, "order_id=42")
			wantRefusal(t, process(others, first, forbidden(t)))
		}
		err := process(locker, again, forbidden(t))
		wantRefusal(t, err)
		wantNot(t, err, asynq.RevokeTask)
		release()
	})
}

// While another task sets or removes the marker, one asks again until its context ends, and for half a second at most. Then it comes again.
func TestKeepOneAsksAgain(t *testing.T) {
	keepers(t, func(t *testing.T, k *keeper) {
		defer k.hold("order_id=42")()
		defer k.hold(waits)()
		asks := func() time.Duration {
			t.Helper()
			began := time.Now()
			k.comesAgain("first")
			return time.Since(began)
		}
		if d := asks(); d < 200*time.Millisecond || d > time.Second {
			t.Errorf("it has asked for %v", d)
		}
		ctx, cancel := context.WithTimeout(k.tasks["first"], 150*time.Millisecond)
		defer cancel()
		k.tasks["first"] = ctx
		if d := asks(); d != 150*time.Millisecond {
			t.Errorf("it has asked for %v with a context of 150ms", d)
		}
	}, core.NoWait())
}
