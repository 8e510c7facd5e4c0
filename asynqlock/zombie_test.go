package asynqlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

func policies(t *testing.T, test func(t *testing.T, policy asynqlock.BusyPolicy)) {
	t.Run("Retry", func(t *testing.T) { test(t, asynqlock.Retry) })
	t.Run("Drop", func(t *testing.T) { test(t, asynqlock.Drop) })
}

func withPolicy(locker *core.Locker, policy asynqlock.BusyPolicy) asynq.MiddlewareFunc {
	return asynqlock.New(asynqlock.Config{Locker: locker, Key: keyfunc.Payload("order_id"), OnBusy: policy})
}

// At a deadline asynq gives the task to another worker while the old handler still
// runs. That one keeps its lock.
func TestDeadline(t *testing.T) {
	t.Parallel()
	policies(t, func(t *testing.T, policy asynqlock.BusyPolicy) {
		f := open(t)
		w, g := newWatch(), newGate()
		for range 2 {
			// Renewed while the zombie runs, or the lock would expire.
			f.start(withPolicy(f.locker(core.Lease(3*time.Second)), policy)(g), w.configure)
		}
		id := f.enqueue(order("42"), asynq.Timeout(time.Second), asynq.MaxRetry(5)).ID
		ctx := await(t, g.entered, "the first run")
		wantErr(t, await(t, w.failed, "the deadline"), context.DeadlineExceeded)
		<-ctx.Done()
		wantErr(t, ctx.Err(), context.DeadlineExceeded)
		w.awaitRefusals(t, 2)
		g.ran(t, 1)
		if info := f.awaitState(id, asynq.TaskStateRetry); info.Retried != 1 {
			t.Errorf("retried %d times, want once, for the deadline", info.Retried)
		}

		g.leave <- errors.New("too late: nobody asks any more")
		await(t, g.entered, "the second run")
		g.leave <- nil
		f.awaitGone(id)
		g.ran(t, 2)
		if q := f.queue(); q.Archived != 0 {
			t.Errorf("%d tasks are archived", q.Archived)
		}
	})
}

// A server that is shut down gives back what it has not finished in time, and
// another one must not run it while the old handler does.
func TestShutdown(t *testing.T) {
	t.Parallel()
	policies(t, func(t *testing.T, policy asynqlock.BusyPolicy) {
		f := open(t)
		w, g := newWatch(), newGate()
		first := f.start(withPolicy(f.locker(), policy)(g), func(c *asynq.Config) { c.ShutdownTimeout = 50 * time.Millisecond })
		id := f.enqueue(order("42")).ID
		ctx := await(t, g.entered, "the first run")
		first.Shutdown()
		<-ctx.Done()
		if info, ok := f.state(id); !ok || info.State != asynq.TaskStatePending {
			t.Fatalf("the task is %+v, want pending", info)
		}

		f.start(withPolicy(f.locker(), policy)(g), w.configure)
		w.awaitRefusals(t, 2)
		g.ran(t, 1)
		duplicate := f.enqueue(order("42")).ID
		if policy == asynqlock.Drop {
			f.awaitGone(duplicate)
		}
		g.leave <- nil // the old handler returns
		runs := int32(2)
		if policy == asynqlock.Retry {
			runs = 3
		}
		for range runs - 1 {
			await(t, g.entered, "a run")
			g.leave <- nil
		}
		f.awaitGone(id)
		f.awaitGone(duplicate)
		g.ran(t, runs)
		if q := f.queue(); q.Archived != 0 || q.Failed != 0 {
			t.Errorf("archived %d, failed %d; want none", q.Archived, q.Failed)
		}
	})
}

// A task that waits for its lock when the server is shut down does not run in the
// server that has given it back.
func TestShutdownWhileWaiting(t *testing.T) {
	t.Parallel()
	f := open(t)
	locker, waiting := f.locker(), f.locker(core.Wait(time.Hour))
	release := hold(t, locker, "order_id=42")
	server := f.start(by(waiting)(forbidden(t)), func(c *asynq.Config) { c.ShutdownTimeout = 50 * time.Millisecond })
	id := f.enqueue(order("42")).ID
	f.awaitWaiting(id)
	server.Shutdown()
	if err := waiting.Close(background); err != nil { // returns when nobody waits any more
		t.Error(err)
	}
	release()
	if info, ok := f.state(id); !ok || info.State != asynq.TaskStatePending {
		t.Errorf("the task is %+v, want pending", info)
	}
}

// A task that waits when its deadline comes near is put back, and uses up no retry.
func TestDeadlineWhileWaiting(t *testing.T) {
	t.Parallel()
	f := open(t)
	release := hold(t, f.locker(), "order_id=42")
	w, g := newWatch(), newGate()
	f.start(by(f.locker(core.Wait(time.Hour)))(g), w.configure)
	// Five seconds, so that a busy machine has half a second for the refusal.
	id := f.enqueue(order("42"), asynq.Timeout(5*time.Second), asynq.MaxRetry(1)).ID
	w.awaitRefusals(t, 1)
	info := f.awaitState(id, asynq.TaskStateRetry)
	if want := "its deadline is near"; info.Retried != 0 || !strings.Contains(info.LastErr, want) {
		t.Errorf("retried %d times, last error %q; want 0 and %q", info.Retried, info.LastErr, want)
	}
	release()
	await(t, g.entered, "the run")
	g.leave <- nil
	f.awaitGone(id)
	if len(w.failed) > 0 {
		t.Errorf("a failure: %v", <-w.failed)
	}
}

func TestClosedLocker(t *testing.T) {
	t.Parallel()
	f := open(t)
	locker, w := f.locker(), newWatch()
	if err := locker.Close(background); err != nil {
		t.Fatal(err)
	}
	f.start(by(locker)(forbidden(t)), w.configure)
	id := f.enqueue(order("42"), asynq.MaxRetry(1)).ID
	w.awaitRefusals(t, 2)
	if info := f.awaitState(id, asynq.TaskStateRetry); info.Retried != 0 {
		t.Errorf("retried %d times, want 0", info.Retried)
	}
	last := f.enqueue(order("43"), asynq.MaxRetry(0)).ID
	if info := f.awaitState(last, asynq.TaskStateArchived); !strings.Contains(info.LastErr, "closed") {
		t.Errorf("last error %q", info.LastErr)
	}
}

// A task that comes within the window is put off until its end.
func TestWindowAcrossServers(t *testing.T) {
	t.Parallel()
	const window = 3 * time.Second
	f := open(t)
	w, g := newWatch(), newGate()
	for range 2 {
		guard := asynqlock.New(asynqlock.Config{
			Locker:  f.locker(),
			Key:     keyfunc.Payload("order_id"),
			Options: []core.Option{core.KeepFor(window)},
		})
		f.start(guard(g), w.configure)
	}
	began := time.Now()
	first := f.enqueue(order("42")).ID
	await(t, g.entered, "the first run")
	g.leave <- nil
	f.awaitGone(first)
	second := f.enqueue(order("42")).ID
	await(t, g.entered, "the run after the window")
	if after := time.Since(began); after < window {
		t.Errorf("the second ran after %v, within the window of the first", after)
	}
	g.leave <- nil
	f.awaitGone(second)
	if n := w.refused.Load(); n != 1 {
		t.Errorf("refused %d times, want once: the end of the window is known", n)
	}
}
