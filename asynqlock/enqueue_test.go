package asynqlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// diary is in which order something happened.
type diary struct {
	mu      sync.Mutex
	entries []string
}

func (d *diary) add(entry string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, entry)
}

func (d *diary) all() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.entries, ", ")
}

func (d *diary) handler(name string) asynq.Handler {
	return does(func(ctx context.Context) error {
		id, _ := asynq.GetTaskID(ctx)
		d.add(name + " " + id)
		return nil
	})
}

// click is what an HTTP handler does: it takes the lock, and starts a task.
func click(tb testing.TB, locker *core.Locker, start func(lock *core.Lock) error) {
	tb.Helper()
	err := locker.Do(background, "order_id=42", func(ctx context.Context) error {
		lock, _ := core.FromContext(ctx)
		return start(lock)
	})
	if err != nil {
		tb.Error(err)
	}
}

// runs fails the test unless the task runs.
func runs(tb testing.TB, guard asynq.MiddlewareFunc, ctx context.Context, inside func(context.Context)) {
	tb.Helper()
	err := guard(does(func(ctx context.Context) error { inside(ctx); return nil })).ProcessTask(ctx, order("42"))
	if err != nil {
		tb.Error(err)
	}
}

func (b *bubble) handsOver(ttl time.Duration, t *asynq.Task, opts ...asynq.Option) func(*core.Lock) error {
	return func(lock *core.Lock) error {
		_, err := asynqlock.Enqueue(lock.Context(), b.queue, lock, t, ttl, opts...)
		return err
	}
}

// From the click until the worker is done, retries included, nobody else comes between,
// whoever waits: other tasks with the same payload, in the same worker and in another one, and
// somebody who is in no queue.
func TestNobodyComesBetweenClickAndTask(t *testing.T) {
	for name, c := range map[string]struct {
		enqueue func(b *bubble, t *asynq.Task) func(*core.Lock) error
		between bool
	}{
		"Enqueue": {enqueue: func(b *bubble, t *asynq.Task) func(*core.Lock) error {
			return b.handsOver(time.Minute, t, asynq.TaskID("clicked"))
		}},
		"without": {between: true, enqueue: func(b *bubble, t *asynq.Task) func(*core.Lock) error {
			return func(*core.Lock) error {
				_, err := b.queue.Enqueue(t, asynq.TaskID("clicked"))
				return err
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				defer b.close()
				var d diary
				shop, stranger := b.locker(), b.locker()
				failure := errors.New("no money")
				for range 2 {
					b.start(8, by(b.locker())(does(func(ctx context.Context) error {
						id, _ := asynq.GetTaskID(ctx)
						switch n, _ := asynq.GetRetryCount(ctx); {
						case id == "clicked" && n == 0:
							d.add("failed")
							return failure
						case id == "clicked" && n == 1:
							d.add("failed")
							panic(failure)
						}
						d.add(id)
						return nil
					})), func(c *asynq.Config) {
						c.RetryDelayFunc = asynqlock.RetryDelay(func(int, error, *asynq.Task) time.Duration { return 10 * time.Second })
					})
				}
				var strangers sync.WaitGroup
				click(t, shop, func(lock *core.Lock) error {
					for i := range 12 {
						b.enqueue(order("42"), asynq.TaskID(fmt.Sprint("another ", i)))
						time.Sleep(10 * time.Millisecond)
					}
					strangers.Go(func() {
						k, err := stranger.Lock(background, "order_id=42")
						if err != nil {
							t.Error(err)
							return
						}
						d.add("in no queue")
						_ = k.Unlock(background)
					})
					time.Sleep(3 * time.Second) // they wait, and are put off
					d.add("click")
					return c.enqueue(b, order("42"))(lock)
				})
				time.Sleep(3 * time.Minute)
				strangers.Wait()
				entries := strings.Split(d.all(), ", ")
				if len(entries) != 1+2+1+12+1 {
					t.Errorf("not all have run: %q", entries)
				}
				if between := !slices.Equal(entries[:4], []string{"click", "failed", "failed", "clicked"}); between != c.between {
					t.Errorf("it went so: %q", entries)
				}
			})
		})
	}
}

// If the task cannot be enqueued the lock is the caller's, and nothing runs.
func TestEnqueueThatFails(t *testing.T) {
	ended, cancel := context.WithCancel(background)
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		task *asynq.Task
		ttl  time.Duration
		opts []asynq.Option
		is   error
		says string
	}{
		"unique":         {task: order("42"), opts: []asynq.Option{asynq.Unique(time.Hour)}, is: asynq.ErrDuplicateTask},
		"ID":             {task: order("42"), opts: []asynq.Option{asynq.TaskID("first")}, is: asynq.ErrTaskIDConflict},
		"the last ID":    {task: order("42"), opts: []asynq.Option{asynq.TaskID("a"), asynq.TaskID("first")}, is: asynq.ErrTaskIDConflict},
		"no task":        {says: "task cannot be nil"},
		"bad option":     {task: order("42"), opts: []asynq.Option{asynq.Queue("")}, says: "queue name"},
		"context":        {task: order("42"), ctx: ended, is: context.Canceled},
		"ttl":            {task: order("42"), ttl: -1, says: "Handover(-1ns)"},
		"due later":      {task: order("42"), opts: []asynq.Option{asynq.ProcessIn(time.Minute)}, says: "the task is due in 1m0s, but the lock is parked for 1m0s only"},
		"due at":         {task: order("42"), opts: []asynq.Option{asynq.ProcessAt(time.Unix(1<<40, 0))}, says: "the task is due in"},
		"due, last said": {task: order("42"), opts: []asynq.Option{asynq.ProcessIn(0), asynq.ProcessIn(time.Hour)}, says: "the task is due in 1h0m0s"},
		"group":          {task: order("42"), opts: []asynq.Option{asynq.Group("all")}, says: "asynq.Group"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				defer b.close()
				var d diary
				shop, other := b.locker(), b.locker()
				b.enqueue(order("42"), asynq.TaskID("first"), asynq.Unique(time.Hour))
				if c.ctx == nil {
					c.ctx = background
				}
				if c.ttl == 0 {
					c.ttl = time.Minute
				}
				click(t, shop, func(lock *core.Lock) error {
					info, err := asynqlock.Enqueue(c.ctx, b.queue, lock, c.task, c.ttl, c.opts...)
					if info != nil || err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
						t.Errorf("%v, error is %v", info, err)
					} else if text := err.Error(); !strings.HasPrefix(text, "asynqlock: ") && !strings.HasPrefix(text, "core: ") {
						t.Errorf("%q does not begin with the package's name", text)
					}
					time.Sleep(5 * time.Minute)
					if _, err := other.TryLock(background, "order_id=42"); !errors.Is(err, core.ErrNotAcquired) {
						t.Errorf("somebody else: %v", err)
					}
					return lock.Context().Err()
				})
				if isLocked(t, other, "order_id=42") {
					t.Error("it is parked")
				}
				b.start(2, by(other)(d.handler("ran")))
				time.Sleep(time.Minute)
				if d.all() != "ran first" {
					t.Errorf("%q", d.all())
				}
			})
		})
	}
	if _, err := asynqlock.Enqueue(background, nil, nil, order("42"), time.Minute); err == nil || !strings.Contains(err.Error(), "the lock is nil") {
		t.Errorf("error is %v", err)
	}
}

// What opts say holds for the task, and they stay as they are.
func TestEnqueuePassesOptionsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		defer b.close()
		shop := b.locker()
		ids := map[string]bool{}
		room := make([]asynq.Option, 2, 10)
		room[0], room[1] = asynq.Queue("mine"), asynq.MaxRetry(7)
		for _, own := range []asynq.Option{asynq.TaskID("my-id"), asynq.Retention(time.Hour), asynq.ProcessIn(30 * time.Second), asynq.ProcessAt(time.Now().Add(-time.Hour))} {
			click(t, shop, func(lock *core.Lock) error {
				task := order("42", asynq.TaskID("cannot be seen"))
				info, err := asynqlock.Enqueue(background, b.queue, lock, task, time.Minute, append(room, own)...)
				if err != nil {
					return err
				}
				if info.Queue != "mine" || info.MaxRetry != 7 || string(info.Payload) != string(order("42").Payload()) || info.Type != task.Type() {
					t.Errorf("%+v", info)
				}
				ids[info.ID] = true
				return nil
			})
			if got := room[:4]; got[2] != own || got[3] != nil {
				t.Errorf("the caller's options are %v now", got)
			}
			if _, err := shop.ForceUnlock(background, "order_id=42"); err != nil {
				t.Error(err)
			}
		}
		if len(ids) != 4 || !ids["my-id"] || ids["cannot be seen"] {
			t.Errorf("IDs: %v", ids)
		}
	})
}

// A worker whose ticket has expired competes like a stranger, as does one whose ticket is used up.
func TestTicketThatIsOver(t *testing.T) {
	t.Run("expired", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t)
			defer b.close()
			var d diary
			click(t, b.locker(), b.handsOver(10*time.Second, order("42"), asynq.TaskID("clicked")))
			time.Sleep(9 * time.Second)
			if !isLocked(t, b.locker(), "order_id=42") {
				t.Error("it is free too early")
			}
			time.Sleep(2 * time.Second)
			release := hold(t, b.locker(), "order_id=42")
			b.start(2, by(b.locker())(d.handler("ran")))
			time.Sleep(30 * time.Second)
			if d.all() != "" || b.refused.Load() == 0 || len(b.failures()) > 0 {
				t.Errorf("%q, refused %d times, %v", d.all(), b.refused.Load(), b.failures())
			}
			release()
			time.Sleep(10 * time.Second)
			if d.all() != "ran clicked" {
				t.Errorf("%q", d.all())
			}
		})
	})
	t.Run("used up", func(t *testing.T) {
		ctx := taskContext(t, "clicked", 25)
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t)
			defer b.close()
			locker := b.locker()
			click(t, b.locker(), b.handsOver(time.Hour, order("42"), asynq.TaskID("clicked")))
			runs(t, by(locker), ctx, func(inner context.Context) {
				again := context.WithoutCancel(core.Detach(inner))
				wantRefusal(t, by(locker, core.NoWait())(forbidden(t)).ProcessTask(again, order("42")), core.ErrNotAcquired)
			})
			release := hold(t, b.locker(), "order_id=42")
			defer release()
			wantRefusal(t, by(locker)(forbidden(t)).ProcessTask(ctx, order("42")), core.ErrNotAcquired)
		})
	})
}

// A task is not refused because others wait for its lock, whatever the policy.
func TestTaskThatResumesIsNotRefused(t *testing.T) {
	first, clicked := taskContext(t, "first", 25), taskContext(t, "clicked", 25)
	for name, c := range map[string]struct {
		config asynqlock.Config
		ctx    context.Context
	}{
		"usually":         {ctx: clicked},
		"last attempt":    {ctx: taskContext(t, "clicked", 0)},
		"NoWait":          {ctx: clicked, config: asynqlock.Config{Options: []core.Option{core.NoWait()}}},
		"no more waiters": {ctx: clicked, config: asynqlock.Config{Options: []core.Option{core.MaxWaiters(1)}}},
		"Drop":            {ctx: clicked, config: asynqlock.Config{OnBusy: asynqlock.Drop}},
		"Drop, waits":     {ctx: clicked, config: asynqlock.Config{OnBusy: asynqlock.Drop, Options: []core.Option{core.Wait(time.Second)}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				defer b.close()
				c.config.Locker, c.config.Key = b.locker(), keyfunc.Payload("order_id")
				guard := asynqlock.New(c.config)
				var others sync.WaitGroup
				ended := make(chan struct{})
				click(t, b.locker(), func(lock *core.Lock) error {
					for range 6 {
						others.Go(func() {
							for {
								select {
								case <-ended:
									return
								default:
								}
								wantErr(t, guard(forbidden(t)).ProcessTask(first, order("42")), core.ErrNotAcquired)
								time.Sleep(50 * time.Millisecond)
							}
						})
					}
					time.Sleep(1500 * time.Millisecond)
					return b.handsOver(time.Hour, order("42"), asynq.TaskID("clicked"))(lock)
				})
				failure := errors.New("no money")
				for range 10 {
					time.Sleep(130 * time.Millisecond)
					began, ran := time.Now(), false
					err := guard(does(func(context.Context) error { ran = true; return failure })).ProcessTask(c.ctx, order("42"))
					if took := time.Since(began); !ran || err != failure || took > 10*time.Millisecond {
						t.Errorf("after %v: ran %v, %v", took, ran, err)
					}
				}
				close(ended)
				others.Wait()
			})
		})
	}
}

// Nobody is at work while a lock is parked: a task is dropped once somebody is.
func TestDropOfATaskThatFindsTheLockParked(t *testing.T) {
	other, clicked := taskContext(t, "other", 25), taskContext(t, "clicked", 25)
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		defer b.close()
		drop := withPolicy(b.locker(), asynqlock.Drop)
		click(t, b.locker(), b.handsOver(time.Hour, order("42"), asynq.TaskID("clicked")))
		err := drop(forbidden(t)).ProcessTask(other, order("42"))
		wantRefusal(t, err, core.ErrNotAcquired)
		wantNot(t, err, asynq.RevokeTask)
		runs(t, drop, clicked, func(context.Context) {
			wantRefusal(t, drop(forbidden(t)).ProcessTask(other, order("42")), asynq.RevokeTask)
			again := drop(forbidden(t)).ProcessTask(clicked, order("42"))
			wantRefusal(t, again, core.ErrNotAcquired)
			wantNot(t, again, asynq.RevokeTask)
		})
	})
}

// A task can hand its lock over to the next one, which is no loss of its own.
func TestTaskEnqueuesTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		defer b.close()
		var d diary
		b.start(4, by(b.locker())(does(func(ctx context.Context) error {
			id, _ := asynq.GetTaskID(ctx)
			d.add(id)
			if id != "first" {
				return nil
			}
			for _, other := range []string{"a", "b", "c"} {
				b.enqueue(order("42"), asynq.TaskID(other))
			}
			time.Sleep(2 * time.Second)
			lock, _ := core.FromContext(ctx)
			_, err := asynqlock.Enqueue(ctx, b.queue, lock, order("42"), time.Minute, asynq.TaskID("second"))
			wantErr(t, context.Cause(ctx), core.ErrHandedOver)
			return err
		})))
		b.enqueue(order("42"), asynq.TaskID("first"))
		time.Sleep(time.Minute)
		if !strings.HasPrefix(d.all(), "first, second, ") || len(d.entries) != 5 || len(b.failures()) > 0 {
			t.Errorf("%s, failures: %v", d.all(), b.failures())
		}
	})
}

// With asynq's own servers on a redis-server: the task fails twice, and meanwhile neither others
// nor a call that waits without end get the lock.
func TestHandedOverLockOnARealServer(t *testing.T) {
	t.Parallel()
	f := open(t)
	var d diary
	shop, stranger := f.locker(), f.locker()
	for range 2 {
		f.start(by(f.locker())(does(func(ctx context.Context) error {
			id, _ := asynq.GetTaskID(ctx)
			d.add(id)
			if n, _ := asynq.GetRetryCount(ctx); id == "clicked" && n < 2 {
				return errors.New("no money")
			}
			return nil
		})))
	}
	w := make(chan error, 1)
	click(t, shop, func(lock *core.Lock) error {
		var ids []string
		for _, id := range []string{"a", "b", "c"} {
			ids = append(ids, f.enqueue(order("42"), asynq.TaskID(id)).ID)
		}
		for _, id := range ids {
			f.awaitWaiting(id)
		}
		go func() {
			k, err := stranger.Lock(background, "order_id=42")
			if err == nil {
				d.add("in no queue")
				err = k.Unlock(background)
			}
			w <- err
		}()
		_, err := asynqlock.Enqueue(background, f.client, lock, order("42"), time.Minute, asynq.TaskID("clicked"))
		return err
	})
	for _, id := range []string{"clicked", "a", "b", "c"} {
		f.awaitGone(id)
	}
	if err := await(t, w, "the call that waits"); err != nil {
		t.Error(err)
	}
	if !strings.HasPrefix(d.all(), "clicked, clicked, clicked, ") || len(d.entries) != 3+3+1 {
		t.Errorf("it went so: %s", d.all())
	}
}
