//go:build go1.25

package asynqlock_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// A handler does not start when the lock is lost while the marker is removed, or when Redis does not answer, which is said.
func TestKeepOneLosesTheLock(t *testing.T) {
	ctx := taskContext(t, "first", 25)
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		defer b.close()
		client := b.dial()
		defer client.Close()
		var sent atomic.Int32
		client.AddHook(requests(func(send func() error) error {
			switch n := sent.Add(1); { // the first of both has taken the lock
			case n == 2:
				time.Sleep(200 * time.Millisecond)
			case n >= 102:
				return os.ErrDeadlineExceeded
			}
			return send()
		}))
		locker, err := core.New(client)
		if err != nil {
			t.Fatal(err)
		}
		defer locker.Close(background)
		guard := asynqlock.ByPayload("order_id", asynqlock.Locker(locker), asynqlock.OnBusy(asynqlock.KeepOne),
			core.FixedLease(100*time.Millisecond))
		sent.Store(-100)
		if err := guard(does(nothing)).ProcessTask(ctx, order("42")); err != nil { // and the scripts are loaded
			t.Error(err)
		}
		sent.Store(0)
		wantFailure(t, guard(forbidden(t)).ProcessTask(ctx, order("42")), core.ErrLost)
		time.Sleep(time.Second)
		sent.Store(100)
		wantFailure(t, guard(forbidden(t)).ProcessTask(ctx, order("42")), core.ErrUnavailable)
		sent.Store(-100)
	})
}

// A handler does not start when it is unknown whether its marker has gone.
func TestKeepOneKeepsItsMarker(t *testing.T) {
	ctx := taskContext(t, "first", 25)
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		defer b.close()
		client := b.dial()
		defer client.Close()
		var sent atomic.Int32
		client.AddHook(requests(func(send func() error) error {
			if sent.Add(1) > 4 { // which take both locks
				return os.ErrDeadlineExceeded
			}
			return send()
		}))
		locker, err := core.New(client)
		if err != nil {
			t.Fatal(err)
		}
		defer locker.Close(background)
		guard := asynqlock.ByPayload("order_id", asynqlock.Locker(locker), asynqlock.OnBusy(asynqlock.KeepOne), core.NoWait())
		for range 2 { // and the scripts are loaded
			sent.Store(-100)
			release := hold(t, b.locker(), "order_id=42")
			wantRefusal(t, guard(forbidden(t)).ProcessTask(ctx, order("42")))
			release()
			if err := guard(does(nothing)).ProcessTask(ctx, order("42")); err != nil {
				t.Error(err)
			}
		}
		release := hold(t, b.locker(), "order_id=42")
		wantRefusal(t, guard(forbidden(t)).ProcessTask(ctx, order("42")))
		release()
		time.Sleep(10 * time.Second)
		sent.Store(0)
		wantFailure(t, guard(forbidden(t)).ProcessTask(ctx, order("42")), core.ErrUnavailable)
		sent.Store(-100)
	})
}

// Whatever is not known to be another task that waits is no reason to drop one.
func TestKeepOneDropsNothingInDoubt(t *testing.T) {
	for name, occupy := range map[string]func(k *keeper) (release func()){
		"another is about to wait": func(k *keeper) func() { return k.hold(waits) },
		"a window":                 func(k *keeper) func() { k.hold(waits, core.KeepFor(time.Hour))(); return func() {} },
	} {
		t.Run(name, func(t *testing.T) {
			keepers(t, func(t *testing.T, k *keeper) {
				release := k.hold("order_id=42")
				defer occupy(k)()
				k.comesAgain("first")
				release()
				k.runs("first", func() {})
			})
		})
	}
	t.Run("outside of a server", func(t *testing.T) {
		keepers(t, func(t *testing.T, k *keeper) {
			k.tasks["none"] = background
			release := k.hold("order_id=42")
			k.comesAgain("none")
			k.comesAgain("first")
			k.dropped("none")
			release()
			k.runs("none", func() {})
		})
	})
}

// While another run of the same task sets or removes the marker, this one neither runs nor is dropped.
func TestKeepOneTwoRunsOfATask(t *testing.T) {
	keepers(t, func(t *testing.T, k *keeper) {
		release := k.hold("order_id=42")
		k.comesAgain("first")
		info, err := k.locker.Inspect(t.Context(), waits)
		task, _, ok := strings.Cut(strings.TrimPrefix(info.HandedOverBy, "asynq:"), ":")
		if err != nil || !ok {
			t.Fatalf("%+v, %v", info, err)
		}
		owner := "asynq:" + task + ":"
		if err := k.locker.Do(t.Context(), waits, func(context.Context) error {
			k.comesAgain("first")
			k.comesAgain("second")
			release()
			k.comesAgain("first")
			return errors.New("parked again")
		}, adapter.Ticket(owner), adapter.OwnerBegin(owner)); err == nil {
			t.Error("the marker was not resumed")
		}
		k.runs("first", func() {})
	})
}

// loss is what becomes of a request.
type loss int

const (
	notSent   loss = iota
	replyLost      // it was executed
	died           // the process, before it has sent the request
)

// Whichever request or reply is lost, and wherever the process dies: while the task that has waited runs, no other is
// dropped because of it.
func TestKeepOneWhenARequestIsLost(t *testing.T) {
	first, second := taskContext(t, "first", 25), taskContext(t, "second", 25)
	for _, what := range []loss{notSent, replyLost, died} {
		for n := range int32(17) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				defer b.close()
				var armed, dead atomic.Bool
				var sent atomic.Int32 // requests, since it was armed
				client := b.dial()
				defer client.Close()
				client.AddHook(requests(func(send func() error) error {
					switch {
					case dead.Load():
						return os.ErrDeadlineExceeded
					case !armed.Load() || sent.Add(1) != n:
						return send()
					case what == replyLost:
						_ = send()
					case what == died:
						dead.Store(true)
					}
					return os.ErrDeadlineExceeded
				}))
				locker, err := core.New(client, core.Lease(time.Hour))
				if err != nil {
					t.Fatal(err)
				}
				others := b.locker()
				defer locker.Close(background)
				guard := func(l *core.Locker, next asynq.Handler) asynq.Handler {
					return asynqlock.With(l, asynqlock.OnBusy(asynqlock.KeepOne), core.NoWait(), core.Lease(30*time.Second)).ByPayload("order_id")(next)
				}
				release := hold(t, others, "order_id=42")
				armed.Store(true)
				ran := false
				for i := 0; i < 10 && !ran; i++ {
					if dead.Load() && locker != others {
						time.Sleep(31 * time.Second) // asynq takes at least as long
						locker = others
					}
					err := guard(locker, does(func(context.Context) error {
						ran = true
						err := guard(others, forbidden(t)).ProcessTask(second, order("42"))
						wantNot(t, err, asynq.RevokeTask)
						return nil
					})).ProcessTask(first, order("42"))
					wantNot(t, err, asynq.RevokeTask, asynq.SkipRetry)
					if i == 1 {
						release()
					}
					time.Sleep(time.Second)
				}
				if !ran {
					t.Errorf("loss %d, request %d: the task has not run", what, n)
				}
				dead.Store(false)
			})
		}
	}
}

// Of a hundred that come at once to four processes one waits, however their requests interleave.
func TestKeepOneBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReindex(t, time.Second)
		defer r.close()
		release := hold(t, r.locker(), "order_id=42")
		for range 4 {
			r.open(core.NoWait())
		}
		r.trigger(100)
		time.Sleep(4 * time.Second)
		r.wantTasks(1)
		release()
		time.Sleep(10 * time.Second)
		r.wantRuns(1)
		r.wantTasks(0)
	})
}

// A task whose key is busy does not stay in its worker because Redis has stopped to answer.
func TestKeepOneDoesNotWaitForRedis(t *testing.T) {
	ctx := taskContext(t, "first", 25)
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		defer b.close()
		client := b.dial()
		defer client.Close()
		var sent atomic.Int32
		client.AddHook(requests(func(send func() error) error {
			if sent.Add(1) < 2 { // the first has found the key busy
				return send()
			}
			time.Sleep(time.Second)
			return os.ErrDeadlineExceeded
		}))
		locker, err := core.New(client)
		if err != nil {
			t.Fatal(err)
		}
		defer locker.Close(background)
		defer hold(t, b.locker(), "order_id=42")()
		guard := asynqlock.ByPayload("order_id", asynqlock.Locker(locker), asynqlock.OnBusy(asynqlock.KeepOne))
		sent.Store(-100)
		wantRefusal(t, guard(forbidden(t)).ProcessTask(ctx, order("42"))) // and the scripts are loaded
		time.Sleep(time.Minute)
		sent.Store(0)
		began := time.Now()
		err = guard(forbidden(t)).ProcessTask(ctx, order("42"))
		wantRefusal(t, err, core.ErrNotAcquired)
		wantNot(t, err, asynq.RevokeTask)
		if waited := time.Since(began); waited > 10*time.Second {
			t.Errorf("it has waited %v", waited)
		}
		sent.Store(-100)
	})
}
