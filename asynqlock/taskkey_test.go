//go:build go1.25

package asynqlock_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// A request that holds several locks hands over that of the task's own key, or is told, before
// anything is enqueued, that this is not what it was about to do.
func TestEnqueueHandsOverTheLockOfTheTask(t *testing.T) {
	innermost := func(ctx context.Context) *core.Lock { lock, _ := core.FromContext(ctx); return lock }
	of := func(key string) func(context.Context) *core.Lock {
		return func(ctx context.Context) *core.Lock { lock, _ := core.FromContextKey(ctx, key); return lock }
	}
	orderThenTenant := func(l *core.Locker, fn func(context.Context) error) error {
		return l.Do(background, "orderID=42", func(ctx context.Context) error { return l.Do(ctx, "tenantID=7", fn) })
	}
	all := func(l *core.Locker, fn func(context.Context) error) error {
		return l.DoAll(background, []string{"orderID=42", "tenantID=7"}, fn)
	}
	template := func(l *core.Locker, fn func(context.Context) error) error { return l.Do(background, "pay:42", fn) }
	byTemplate, err := keyfunc.TaskTemplate("{type}:{payload.orderID}")
	if err != nil {
		t.Fatal(err)
	}
	const orderOnly, both = `{"orderID":42}`, `{"orderID":42,"tenantID":7}`
	for name, c := range map[string]struct {
		under   func(l *core.Locker, fn func(context.Context) error) error
		lock    func(context.Context) *core.Lock
		payload string
		opts    []asynq.Option
		says    string
		guard   keyfunc.Func[keyfunc.Task]
		own     bool // Enqueue has a context of its own
	}{
		"the innermost, of another key": {under: orderThenTenant, lock: innermost, payload: orderOnly, says: `is that of "tenantID=7"`},
		"the innermost, where both could be": {
			under: orderThenTenant, lock: innermost, payload: both,
			says: `"tenantID=7" and of "orderID=42" are held`,
		},
		"the outer one, where both could be": {
			under: orderThenTenant, lock: of("orderID=42"), payload: both,
			says: `"orderID=42" and of "tenantID=7" are held`,
		},
		"the innermost, by another context": {under: orderThenTenant, lock: innermost, payload: both, own: true, says: "are held"},
		"told": {
			under: orderThenTenant, lock: innermost, payload: both,
			opts: []asynq.Option{asynqlock.TaskKey(keyfunc.Payload("orderID"))}, says: `the task's own key is "orderID=42"`,
		},
		"one of DoAll":                      {under: all, lock: innermost, payload: orderOnly, says: `is that of "tenantID=7"`},
		"one of DoAll, where both could be": {under: all, lock: innermost, payload: both, says: "are held"},
		"another order": {
			under: orderThenTenant, lock: of("orderID=42"), payload: `{"orderID":"042"}`,
			says: `is that of "orderID=42"`,
		},
		"a key without a name": {under: template, lock: innermost, payload: orderOnly, says: "say by asynqlock.TaskKey"},
		"no key": {
			under: orderThenTenant, lock: of("orderID=42"), payload: `{}`,
			opts: []asynq.Option{asynqlock.TaskKey(keyfunc.Payload("orderID"))}, says: "the task has no key",
		},
		"nothing is held": {under: orderThenTenant, lock: of("orderID=43"), payload: orderOnly, says: "the lock is nil"},
		"right: by key": {
			under: orderThenTenant, lock: of("orderID=42"), payload: orderOnly,
			guard: keyfunc.Payload("orderID"),
		},
		"right: by key, and told": {
			under: orderThenTenant, lock: of("orderID=42"), payload: both,
			opts: []asynq.Option{asynqlock.TaskKey(keyfunc.Payload("orderID"))}, guard: keyfunc.Payload("orderID"),
		},
		"right: the inner one, and told": {
			under: orderThenTenant, lock: innermost, payload: both,
			opts: []asynq.Option{asynqlock.TaskKey(keyfunc.Payload("tenantID"))}, guard: keyfunc.Payload("tenantID"),
		},
		"right: one of DoAll": {under: all, lock: of("orderID=42"), payload: orderOnly, guard: keyfunc.Payload("orderID")},
		"right: a key without a name, and told": {
			under: template, lock: innermost, payload: orderOnly,
			opts: []asynq.Option{asynqlock.TaskKey(byTemplate)}, guard: byTemplate,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				defer b.close()
				shop := b.locker()
				var enqueued error
				var key string
				err := c.under(shop, func(ctx context.Context) error {
					lock := c.lock(ctx)
					if lock != nil {
						key = lock.Key()
					}
					task, enqueue := asynq.NewTask("pay", []byte(c.payload)), ctx
					if c.own {
						enqueue = background
					}
					_, enqueued = asynqlock.Enqueue(enqueue, b.queue, lock, task, time.Minute, append(c.opts, asynq.TaskID("clicked"))...)
					if enqueued != nil && context.Cause(ctx) != nil {
						t.Error("the lock is not held any more")
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				parked := map[string]bool{}
				for _, key := range []string{"orderID=42", "tenantID=7", "pay:42"} {
					info, err := shop.Inspect(background, key)
					if err != nil {
						t.Fatal(err)
					}
					if parked[key] = info.State == core.StateParked; info.Locked && !parked[key] {
						t.Errorf("%s is held still", key)
					}
				}
				if c.says != "" {
					if enqueued == nil || !strings.HasPrefix(enqueued.Error(), "asynqlock: Enqueue: ") || !strings.Contains(enqueued.Error(), c.says) {
						t.Errorf("error is %v", enqueued)
					}
					if b.server.Exists("asynq:{default}:t:clicked") {
						t.Error("the task was enqueued")
					}
					key = ""
				} else if enqueued != nil {
					t.Error(enqueued)
				}
				for k, is := range parked {
					if is != (k == key) {
						t.Errorf("%s is parked: %v", k, is)
					}
				}
				if key == "" {
					return
				}
				var ran atomic.Int32
				b.start(1, asynqlock.New(asynqlock.Config{Locker: b.locker(), Key: c.guard})(does(func(ctx context.Context) error {
					if _, held := core.FromContextKey(ctx, key); held {
						ran.Add(1)
					}
					return nil
				})))
				time.Sleep(5 * time.Second) // of a minute for which the lock is parked
				if ran.Load() != 1 {
					t.Errorf("the task has run %d times with %s; failures: %v", ran.Load(), key, b.failures())
				}
				if isLocked(t, shop, key) {
					t.Errorf("%s is not free when the task is done", key)
				}
			})
		})
	}
}

func TestTaskKeyNeedsAFunction(t *testing.T) {
	defer func() {
		if text, _ := recover().(string); !strings.HasPrefix(text, "asynqlock: TaskKey") {
			t.Errorf("panic: %q", text)
		}
	}()
	asynqlock.TaskKey(nil)
}
