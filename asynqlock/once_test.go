//go:build go1.25

package asynqlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

var (
	orderID = keyfunc.Payload("order_id")
	forHour = core.KeepFor(time.Hour)
	errPaid = errors.New("the provider is down")
)

// A task that has been done is skipped, and one that has failed runs again.
func TestOnceSkipsWhatIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		pay := asynqlock.With(locker).Once(orderID, forHour, core.RefuseUnknown())
		err := pay(does(func(context.Context) error { return errPaid })).ProcessTask(background, order("42"))
		if wantFailure(t, err, errPaid); err.Error() != errPaid.Error() {
			t.Errorf("the handler's error is %v", err)
		}
		runs := 0
		run := does(func(ctx context.Context) error {
			runs++
			if k, held := core.FromContextKey(ctx, "order_id=42"); !held || core.AttemptOf(ctx) != 1 {
				t.Errorf("attempt %d under %v", core.AttemptOf(ctx), k)
			}
			return asynqlock.WriteResult(ctx, order("42"), []byte("paid"))
		})
		for range 3 {
			if err := pay(run).ProcessTask(background, order("42")); err != nil {
				t.Error(err)
			}
		}
		if runs != 1 {
			t.Errorf("it ran %d times", runs)
		}
		if err := pay(does(nothing)).ProcessTask(background, order("43")); err != nil {
			t.Error(err)
		}
		if err := pay(forbidden(t)).ProcessTask(background, order("43")); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		if err := pay(run).ProcessTask(background, order("42")); err != nil || runs != 2 {
			t.Errorf("%v; it ran %d times", err, runs)
		}
	})
}

// A task whose work another one does is treated as one whose key is busy, and skipped when it comes again.
func TestOnceIsBusyMeanwhile(t *testing.T) {
	ctx := taskContext(t, "my-id", 25)
	synctest.Test(t, func(t *testing.T) {
		locks := asynqlock.With(locktest.New(t), forHour)
		leave := make(chan struct{})
		var first sync.WaitGroup
		first.Go(func() {
			err := locks.Once(orderID)(does(func(context.Context) error { <-leave; return nil })).ProcessTask(background, order("42"))
			if err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		wantRefusal(t, locks.Once(orderID)(forbidden(t)).ProcessTask(ctx, order("42")), core.ErrNotAcquired)
		drop := locks.Once(orderID, asynqlock.OnBusy(asynqlock.Drop))
		wantRefusal(t, drop(forbidden(t)).ProcessTask(ctx, order("42")), asynq.RevokeTask)
		time.AfterFunc(500*time.Millisecond, func() { close(leave) })
		if err := locks.Once(orderID)(forbidden(t)).ProcessTask(ctx, order("42")); err != nil {
			t.Errorf("it has waited: %v", err)
		}
		first.Wait()
		if err := drop(forbidden(t)).ProcessTask(ctx, order("42")); err != nil {
			t.Error(err)
		}
	})
}

func TestOnceOfATaskOfUnknownOutcome(t *testing.T) {
	ctx := taskContext(t, "my-id", 25)
	synctest.Test(t, func(t *testing.T) {
		locks := asynqlock.With(locktest.New(t), forHour)
		lost := locks.Once(orderID, core.FixedLease(time.Second))
		wait := does(func(ctx context.Context) error { <-ctx.Done(); return nil })
		wantFailure(t, lost(wait).ProcessTask(ctx, order("42")), core.ErrLost)
		refused := locks.Once(orderID, core.RefuseUnknown())(forbidden(t)).ProcessTask(ctx, order("42"))
		wantFailure(t, refused, core.ErrOutcomeUnknown)
		attempt := 0
		count := does(func(ctx context.Context) error { attempt = core.AttemptOf(ctx); return nil })
		if err := locks.Once(orderID)(count).ProcessTask(ctx, order("42")); err != nil || attempt != 2 {
			t.Errorf("attempt %d, %v", attempt, err)
		}
	})
}

// A task that has waited for one that fails runs by itself: the error uses up no retry of its own.
func TestOnceTakesNoFailureOfAnotherTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		once := asynqlock.With(locktest.New(t), forHour).Once(orderID)
		var first sync.WaitGroup
		first.Go(func() {
			fails := does(func(context.Context) error { time.Sleep(500 * time.Millisecond); return errPaid })
			wantFailure(t, once(fails).ProcessTask(background, order("42")), errPaid)
		})
		synctest.Wait()
		ran := false
		if err := once(does(func(context.Context) error { ran = true; return nil })).ProcessTask(background, order("42")); err != nil || !ran {
			t.Errorf("%v, ran: %v", err, ran)
		}
		first.Wait()
	})
}

// A handler can say that it does not know what it has done.
func TestOnceOfAHandlerThatDoesNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		once := asynqlock.With(locktest.New(t), forHour).Once(orderID, core.RefuseUnknown())
		unsure := does(func(context.Context) error { return fmt.Errorf("%w: %w", errPaid, core.ErrOutcomeUnknown) })
		wantFailure(t, once(unsure).ProcessTask(background, order("42")), errPaid)
		err := once(forbidden(t)).ProcessTask(background, order("42"))
		wantFailure(t, err, core.ErrOutcomeUnknown)
		wantNot(t, err, errPaid)
	})
}

// What would wait for itself is a failure, which somebody sees, and is not put off without end.
func TestOnceUnderItsOwnLock(t *testing.T) {
	ctx := taskContext(t, "my-id", 25)
	synctest.Test(t, func(t *testing.T) {
		var refused []string
		locks := asynqlock.With(locktest.New(t, core.Observe(hears(func(e core.Event) {
			if e.Kind == core.EventRefused {
				refused = append(refused, e.Reason)
			}
		}))), forHour)
		for what, outer := range map[string]asynq.MiddlewareFunc{"By": locks.By(orderID), "Once": locks.Once(orderID)} {
			err := outer(locks.Once(orderID)(forbidden(t))).ProcessTask(ctx, order("42"))
			if wantFailure(t, err, core.ErrDeadlock); err == nil || !strings.Contains(err.Error(), "leave one of them out") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if fmt.Sprint(refused) != "[setup setup]" {
			t.Errorf("Observers hear of %v", refused)
		}
	})
}

func TestOnceNeedsKeepForAndKeepsNoLargeResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := asynqlock.With(locktest.New(t))
		err := locks.Once(orderID)(forbidden(t)).ProcessTask(background, order("42"))
		if wantFailure(t, err); err == nil || err.Error() != "asynqlock: the task did not run: core: Once needs KeepFor: say for how long calls get the result, here or in New" {
			t.Error(err)
		}
		longest := make([]byte, 48_000)
		err = locks.Once(orderID, forHour)(does(func(ctx context.Context) error {
			wantErr(t, asynqlock.WriteResult(ctx, order("42"), make([]byte, len(longest)+1)), core.ErrResultTooLarge)
			return asynqlock.WriteResult(ctx, order("42"), longest)
		})).ProcessTask(background, order("42"))
		if err != nil {
			t.Error(err)
		}
		if err := asynqlock.WriteResult(background, order("42"), make([]byte, len(longest)+1)); err != nil {
			t.Errorf("outside: %v", err)
		}
	})
}

// A result that asynq does not write is not kept for others.
func TestOnceKeepsNoResultThatIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		defer b.close()
		var written []error
		b.start(1, asynqlock.With(b.locker(), forHour).Once(orderID)(asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
			written = append(written, asynqlock.WriteResult(ctx, task, []byte("draft")))
			<-ctx.Done()
			err := asynqlock.WriteResult(ctx, task, []byte("receipt"))
			written = append(written, err)
			return err
		})))
		b.enqueue(order("42", asynq.Timeout(time.Second)))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if len(written) < 2 || written[0] != nil || written[1] == nil || !strings.HasPrefix(written[1].Error(), "asynqlock: writing the result of a task: ") {
			t.Errorf("writing: %v", written)
		}
	})
}

// A result is written once for each task, and is what the handler has given, whatever it does with its bytes afterwards.
func TestOnceWritesEachResultOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		defer b.close()
		var writes atomic.Int32
		b.client.AddHook(commands(func(name string) {
			if name == "hset" {
				writes.Add(1)
			}
		}))
		inspector := asynq.NewInspectorFromRedisClient(b.client)
		b.start(1, asynqlock.With(b.locker(), forHour).Once(orderID)(asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
			if strings.Contains(string(task.Payload()), "43") {
				return nil
			}
			text := []byte("receipt")
			defer copy(text, "changed")
			return asynqlock.WriteResult(ctx, task, text)
		})))
		for i, want := range map[string]int32{"42": 2, "43": 0} {
			writes.Store(0)
			for _, id := range []string{"first", "second"} {
				b.enqueue(order(i, asynq.TaskID(id+i), asynq.Retention(time.Hour)))
				time.Sleep(3 * time.Second)
			}
			info, err := inspector.GetTaskInfo("default", "second"+i)
			if err != nil || writes.Load() != want || (string(info.Result) == "receipt") != (want > 0) {
				t.Errorf("order %s: %d writes, want %d; %+v, %v", i, writes.Load(), want, info, err)
			}
		}
	})
}

// commands is a hook of a client that is told their names.
type commands func(name string)

func (c commands) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c(cmd.Name())
		return next(ctx, cmd)
	}
}
func (c commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The result of the first goes to those that are skipped, with asynq itself.
func TestOnceWritesTheResult(t *testing.T) {
	t.Parallel()
	f := open(t)
	runs := make(chan string, 10)
	mux := asynq.NewServeMux()
	mux.Use(asynqlock.New(asynqlock.Config{
		Locker: f.locker(), Key: keyfunc.Join(keyfunc.TaskType(), orderID), Options: []core.Option{forHour}, Once: true,
		Inspector: f.inspector, Workers: 8,
	}))
	mux.HandleFunc("order:", func(ctx context.Context, task *asynq.Task) error {
		runs <- task.Type()
		if task.Type() == "order:empty" {
			return nil
		}
		err := asynqlock.WriteResult(ctx, task, []byte("draft"))
		text := fmt.Sprintf("receipt of %s", task.ResultWriter().TaskID())
		return errors.Join(err, asynqlock.WriteResult(ctx, task, []byte(text)))
	})
	f.start(mux)
	for _, kind := range []string{"order:pay", "order:empty"} {
		var ids []string
		for i := range 6 {
			task := asynq.NewTask(kind, []byte(`{"order_id":"42"}`), asynq.TaskID(fmt.Sprint(kind, i)), asynq.Retention(time.Hour))
			ids = append(ids, f.enqueue(task).ID)
		}
		results := map[string]bool{}
		for _, id := range ids {
			results[string(f.awaitState(id, asynq.TaskStateCompleted).Result)] = true
		}
		if len(results) != 1 || results[""] != (kind == "order:empty") {
			t.Errorf("%s: results %v", kind, results)
		}
	}
	if len(runs) != 2 {
		t.Errorf("%d runs", len(runs))
	}
}
