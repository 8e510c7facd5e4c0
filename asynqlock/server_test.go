package asynqlock_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// watch counts and keeps what the tasks end with.
type watch struct {
	refused atomic.Int32
	failed  chan error
}

func newWatch() *watch { return &watch{failed: make(chan error, 100)} }

// configure reports through asynq's ErrorHandler, as IsFailure's documentation says.
func (w *watch) configure(c *asynq.Config) {
	isFailure := c.IsFailure
	c.ErrorHandler = asynq.ErrorHandlerFunc(func(_ context.Context, _ *asynq.Task, err error) {
		if isFailure(err) {
			w.failed <- err
		} else {
			w.refused.Add(1)
		}
	})
}

// awaitRefusals waits for n more.
func (w *watch) awaitRefusals(tb testing.TB, n int32) {
	tb.Helper()
	until := w.refused.Load() + n
	redistest.Await(tb, patience, "refusals", func() bool { return w.refused.Load() >= until })
}

// gate is a handler that waits inside until it is told to go on, whatever its context.
type gate struct {
	entered chan context.Context
	leave   chan error
	inside  atomic.Int32
	overlap atomic.Bool
	runs    atomic.Int32
}

func newGate() *gate {
	return &gate{entered: make(chan context.Context, 10), leave: make(chan error)}
}

func (g *gate) ProcessTask(ctx context.Context, _ *asynq.Task) error {
	g.runs.Add(1)
	if g.inside.Add(1) > 1 {
		g.overlap.Store(true)
	}
	defer g.inside.Add(-1)
	g.entered <- ctx
	return <-g.leave
}

// ran fails the test unless the handler has run n times, never two at once.
func (g *gate) ran(tb testing.TB, n int32) {
	tb.Helper()
	if got := g.runs.Load(); got != n {
		tb.Errorf("the handler has run %d times, want %d", got, n)
	}
	if g.overlap.Load() {
		tb.Error("two runs overlapped")
	}
}

func TestContentionUsesUpNoRetry(t *testing.T) {
	t.Parallel()
	f := open(t)
	locker, w, g := f.locker(), newWatch(), newGate()
	release := hold(t, locker, "order_id=42")
	f.start(by(f.locker())(g), w.configure)
	id := f.enqueue(order("42"), asynq.MaxRetry(1)).ID
	w.awaitRefusals(t, 3)
	if info := f.awaitState(id, asynq.TaskStateRetry); info.Retried != 0 {
		t.Errorf("retried %d times, want 0", info.Retried)
	}
	if q := f.queue(); q.Processed != 0 || q.Failed != 0 {
		t.Errorf("processed %d, failed %d; want none", q.Processed, q.Failed)
	}
	g.ran(t, 0)
	release()
	await(t, g.entered, "the run")
	g.leave <- nil
	f.awaitGone(id)
	g.ran(t, 1)
}

func TestWithoutIsFailureContentionUsesUpRetries(t *testing.T) {
	t.Parallel()
	f := open(t)
	release := hold(t, f.locker(), "order_id=42")
	defer release()
	guard := asynqlock.New(asynqlock.Config{
		Locker: f.locker(), Key: keyfunc.Payload("order_id"), LastWait: time.Millisecond,
	})
	f.start(guard(forbidden(t)), func(c *asynq.Config) { c.IsFailure = nil })
	id := f.enqueue(order("42"), asynq.MaxRetry(2)).ID
	if info := f.awaitState(id, asynq.TaskStateArchived); info.Retried != 2 {
		t.Errorf("retried %d times, want 2", info.Retried)
	}
}

func TestLastAttemptWaits(t *testing.T) {
	t.Parallel()
	f := open(t)
	locker, w, g := f.locker(), newWatch(), newGate()
	f.start(by(f.locker())(g), w.configure)
	release := hold(t, locker, "order_id=42")
	id := f.enqueue(order("42"), asynq.MaxRetry(0)).ID
	f.awaitWaiting(id)
	g.ran(t, 0)
	release()
	await(t, g.entered, "the run after the wait")
	g.leave <- nil
	f.awaitGone(id)
	if q := f.queue(); q.Archived != 0 || w.refused.Load() != 0 {
		t.Errorf("archived %d, refused %d; want none", q.Archived, w.refused.Load())
	}
}

// An attempt is the last one, too, when failures have used up the retries.
func TestLastAttemptAfterFailuresWaits(t *testing.T) {
	t.Parallel()
	f := open(t)
	locker, w, g := f.locker(), newWatch(), newGate()
	f.start(by(f.locker())(g), w.configure)
	failure := errors.New("no money")
	id := f.enqueue(order("42"), asynq.MaxRetry(1)).ID
	await(t, g.entered, "the run that fails")
	// The next run must find the key busy: enter the lock before this run lets go.
	info, err := locker.Inspect(background, "order_id=42")
	if err != nil {
		t.Fatal(err)
	}
	release := hold(t, locker, "order_id=42", core.Owner(info.Owner))
	g.leave <- failure
	wantErr(t, await(t, w.failed, "the failure"), failure)
	f.awaitWaiting(id)
	release()
	await(t, g.entered, "the run after the wait")
	g.leave <- nil
	f.awaitGone(id)
	g.ran(t, 2)
	if q := f.queue(); q.Archived != 0 || w.refused.Load() != 0 {
		t.Errorf("archived %d, refused %d; want none", q.Archived, w.refused.Load())
	}
}

func TestLastAttemptIsArchivedAfterTheWait(t *testing.T) {
	t.Parallel()
	f := open(t)
	release := hold(t, f.locker(), "order_id=42")
	defer release()
	w := newWatch()
	guard := asynqlock.New(asynqlock.Config{
		Locker: f.locker(), Key: keyfunc.Payload("order_id"), LastWait: 50 * time.Millisecond,
	})
	f.start(guard(forbidden(t)), w.configure)
	info := f.awaitState(f.enqueue(order("42"), asynq.MaxRetry(0)).ID, asynq.TaskStateArchived)
	if want := "the wait of 50ms is over"; !strings.Contains(info.LastErr, want) {
		t.Errorf("last error %q, want %q in it", info.LastErr, want)
	}
}

func TestDroppedTaskIsGone(t *testing.T) {
	t.Parallel()
	f := open(t)
	release := hold(t, f.locker(), "order_id=42")
	defer release()
	w := newWatch()
	guard := asynqlock.New(asynqlock.Config{Locker: f.locker(), Key: keyfunc.Payload("order_id"), OnBusy: asynqlock.Drop})
	f.start(guard(forbidden(t)), w.configure)
	for _, maxRetry := range []int{0, 25} {
		f.awaitGone(f.enqueue(order("42"), asynq.MaxRetry(maxRetry)).ID)
	}
	if q := f.queue(); q.Archived != 0 || q.Retry != 0 || q.Failed != 0 || w.refused.Load() != 2 {
		t.Errorf("archived %d, retry %d, failed %d, refused %d; want 0, 0, 0, 2", q.Archived, q.Retry, q.Failed, w.refused.Load())
	}
}

func TestTaskWithoutAKeyIsArchivedAtOnce(t *testing.T) {
	t.Parallel()
	f := open(t)
	mux := asynq.NewServeMux()
	mux.Use(by(f.locker()))
	mux.Handle("order:pay", forbidden(t))
	f.start(mux)
	for _, kind := range []string{"order:pay", "unknown"} {
		id := f.enqueue(asynq.NewTask(kind, []byte(`{}`)), asynq.MaxRetry(25)).ID
		info := f.awaitState(id, asynq.TaskStateArchived)
		if info.Retried != 0 || !strings.Contains(info.LastErr, "order_id") {
			t.Errorf("retried %d times, last error %q", info.Retried, info.LastErr)
		}
	}
}

func TestPanicReleasesTheLock(t *testing.T) {
	t.Parallel()
	f := open(t)
	w := newWatch()
	runs := 0
	f.start(by(f.locker())(does(func(context.Context) error {
		if runs++; runs == 1 {
			panic("oops")
		}
		return nil
	})), w.configure)
	id := f.enqueue(order("42"), asynq.MaxRetry(1)).ID
	if err := await(t, w.failed, "the panic"); !asynq.IsPanicError(err) {
		t.Errorf("error %v, want a panic", err)
	}
	f.awaitGone(id)
	if w.refused.Load() != 0 {
		t.Error("the lock was still held after the panic")
	}
}

func TestLostLockFailsTheTask(t *testing.T) {
	t.Parallel()
	f := open(t)
	w, locker := newWatch(), f.locker()
	f.start(by(f.locker(core.Lease(3*time.Second)))(does(func(ctx context.Context) error {
		if _, err := locker.ForceUnlock(background, "order_id=42"); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		return nil
	})), w.configure)
	id := f.enqueue(order("42"), asynq.MaxRetry(0)).ID
	wantErr(t, await(t, w.failed, "the failure"), core.ErrLost)
	f.awaitState(id, asynq.TaskStateArchived)
}

// The lock's Redis need not be the queue's.
func TestOutageOfTheLocksRedis(t *testing.T) {
	t.Parallel()
	f, locks := open(t), redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: locks.Addr()})
	defer client.Close()
	locker, err := core.New(client)
	if err != nil {
		t.Fatal(err)
	}
	defer locker.Close(background)
	w, g := newWatch(), newGate()
	locks.Kill(t)
	f.start(by(locker)(g), w.configure)
	f.enqueue(order("42"), asynq.MaxRetry(1000))
	for range 2 {
		wantErr(t, await(t, w.failed, "a failure"), core.ErrUnavailable)
	}
	g.ran(t, 0)
	locks.Restart(t)
	await(t, g.entered, "the run")
	g.leave <- nil
}
