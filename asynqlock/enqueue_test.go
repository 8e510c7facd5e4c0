//go:build go1.25

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
		"unique":      {task: order("42"), opts: []asynq.Option{asynq.Unique(time.Hour)}, is: asynq.ErrDuplicateTask},
		"ID":          {task: order("42"), opts: []asynq.Option{asynq.TaskID("first")}, is: asynq.ErrTaskIDConflict},
		"the last ID": {task: order("42"), opts: []asynq.Option{asynq.TaskID("a"), asynq.TaskID("first")}, is: asynq.ErrTaskIDConflict},
		"no task":     {says: "task cannot be nil"},
		"bad option":  {task: order("42"), opts: []asynq.Option{asynq.Queue("")}, says: "queue name"},
		"context":     {task: order("42"), ctx: ended, is: context.Canceled},
		"ttl":         {task: order("42"), ttl: -1, says: "Handover(-1ns)"},
		"due later": {
			task: order("42"), opts: []asynq.Option{asynq.ProcessIn(time.Minute)},
			says: "due in 1m0s, but the lock is parked for 1m0s only",
		},
		"due at": {task: order("42"), opts: []asynq.Option{asynq.ProcessAt(time.Unix(1<<40, 0))}, says: "the task is due in"},
		"due, last said": {
			task: order("42"), opts: []asynq.Option{asynq.ProcessIn(0), asynq.ProcessIn(time.Hour)},
			says: "the task is due in 1h0m0s",
		},
		"group": {task: order("42"), opts: []asynq.Option{asynq.Group("all")}, says: "asynq.Group"},
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
	_, err := asynqlock.Enqueue(background, nil, nil, order("42"), time.Minute)
	if err == nil || !strings.Contains(err.Error(), "the lock is nil") {
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
		for _, own := range []asynq.Option{
			asynq.TaskID("my-id"), asynq.Retention(time.Hour), asynq.ProcessIn(30 * time.Second), asynq.ProcessAt(time.Now().Add(-time.Hour)),
		} {
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
