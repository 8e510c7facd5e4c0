package adapter_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/locktest"
)

// A handler of a framework, and an adapter's middleware for it.
type (
	handler    func(ctx context.Context, order string) string
	middleware func(next handler) handler
)

type busyText string

// BusyText is an option of this adapter: what is answered while the lock is busy.
func BusyText(text string) core.Option { return adapter.Option(busyText(text)) }

func byOrder(locker *core.Locker, opts ...core.Option) middleware {
	busy := busyText("try again")
	own, opts := adapter.Split[busyText](opts...)
	for _, text := range own {
		busy = text
	}
	if err := adapter.Validate(opts...); err != nil {
		panic("orderlock: bad option: " + err.Error())
	}
	opts = append([]core.Option{adapter.Fallback(core.Wait(3 * time.Second))}, opts...)
	return func(next handler) handler {
		return func(ctx context.Context, order string) (answer string) {
			err := locker.Do(ctx, order, func(ctx context.Context) error {
				answer = next(ctx, order)
				return nil
			}, opts...)
			if errors.Is(err, core.ErrNotAcquired) {
				return string(busy)
			}
			return answer
		}
	}
}

func Example() {
	t := &exampleT{}
	defer t.end()
	locker := locktest.New(t)

	var pay handler
	pay = byOrder(locker, core.NoWait(), BusyText("already being paid"))(func(ctx context.Context, order string) string {
		fmt.Println("meanwhile:", pay(context.Background(), order))
		return "paid"
	})
	fmt.Println(pay(context.Background(), "42"))

	defer func() { fmt.Println(recover()) }()
	byOrder(locker, core.Owner("me"))
	// Output:
	// meanwhile: already being paid
	// paid
	// orderlock: bad option: core: Owner is for a single call: calls that share an owner do not exclude one another
}

// In a request object that shows string keys only, the lock is found under ContextKey.
func ExampleContextKey() {
	t := &exampleT{}
	defer t.end()
	locker := locktest.New(t)

	request := stringKeys{Context: context.Background(), values: map[string]any{}}
	err := locker.Do(request, "42", func(ctx context.Context) error {
		request.values[adapter.ContextKey], _ = core.FromContext(ctx)
		return locker.Do(request, "42", func(context.Context) error {
			fmt.Println("entered again")
			return nil
		}, core.NoWait())
	})
	fmt.Println(err)
	// Output:
	// entered again
	// <nil>
}

func ExampleLocksOf() {
	t := &exampleT{}
	defer t.end()
	locker := locktest.New(t)

	err := locker.DoAll(context.Background(), []string{"account=1", "account=2"}, func(ctx context.Context) error {
		for _, lock := range adapter.LocksOf(ctx) {
			fmt.Println(lock.Key())
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// account=2
	// account=1
	// <nil>
}

// The owner tells which task is in the way.
func ExampleOwnerBegin() {
	t := &exampleT{}
	defer t.end()
	locker := locktest.New(t)

	lock, err := locker.Lock(context.Background(), "42", adapter.OwnerBegin("task-7:"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lock.Unlock(context.Background())
	info, err := locker.Inspect(context.Background(), "42")
	fmt.Println(info.Owner[:7], err)

	_, err = locker.TryLock(context.Background(), "42", adapter.OwnerBegin("task-7:"))
	fmt.Println(errors.Is(err, core.ErrNotAcquired))
	// Output:
	// task-7: <nil>
	// true
}

// A caller that gives up in a second would not hear a later answer.
func ExampleWaitAtMost() {
	t := &exampleT{}
	defer t.end()
	locker := locktest.New(t)

	lock, err := locker.Lock(context.Background(), "42")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lock.Unlock(context.Background())

	began := time.Now()
	_, err = locker.Lock(context.Background(), "42", core.Wait(time.Hour), adapter.WaitAtMost(20*time.Millisecond))
	fmt.Println(errors.Is(err, core.ErrNotAcquired), time.Since(began) < time.Minute)
	// Output: true true
}

// exampleT is the *testing.T of your test.
type exampleT struct {
	testing.TB
	cleanups []func()
}

func (t *exampleT) Helper()          {}
func (t *exampleT) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

func (t *exampleT) end() {
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
}

// stringKeys is a request object as gin's.
type stringKeys struct {
	context.Context
	values map[string]any
}

func (s stringKeys) Value(key any) any {
	if name, ok := key.(string); ok {
		return s.values[name]
	}
	return nil
}

func ExampleHandover() {
	t := &exampleT{}
	defer t.end()
	locker, ctx := locktest.New(t), context.Background()

	lock, err := locker.Lock(ctx, "orderID=42")
	fmt.Println(err)
	start := func() error { return errors.New("the queue is full") }
	fmt.Println(adapter.Handover(ctx, lock, "job 7", time.Minute, start), lock.Context().Err())
	start = func() error { return nil }
	fmt.Println(adapter.Handover(ctx, lock, "job 7", time.Minute, start), context.Cause(lock.Context()))
	// Output:
	// <nil>
	// the queue is full <nil>
	// <nil> core: the lock was handed over
}

func ExampleTicket() {
	t := &exampleT{}
	defer t.end()
	locker, ctx := locktest.New(t), context.Background()

	run := func(job string) { // as the middleware of a queue does for each job
		lock, err := locker.TryLock(ctx, "orderID=42", adapter.Ticket(job))
		if err == nil {
			defer lock.Unlock(ctx)
		}
		fmt.Println(job, "has the lock:", err == nil)
	}
	lock, err := locker.Lock(ctx, "orderID=42")
	fmt.Println(err, adapter.Handover(ctx, lock, "job 7", time.Minute, func() error { return nil }))
	run("job 6")
	run("job 7")
	// Output:
	// <nil> <nil>
	// job 6 has the lock: false
	// job 7 has the lock: true
}

// A job that is delivered twice is done once, and both deliveries have its result.
func ExampleAttempt() {
	t := &exampleT{}
	defer t.end()
	locker, ctx := locktest.New(t), context.Background()

	deliver := func(job string) { // as the middleware of a queue does for each message
		digest := sha256.Sum256([]byte(job))
		lock, err := locker.TryLock(ctx, "job 7", adapter.Attempt(hex.EncodeToString(digest[:]), time.Hour, false))
		if result, ok := adapter.AnswerOf(err); ok {
			fmt.Printf("was done before: %s\n", result)
			return
		}
		if err != nil {
			fmt.Println("another job has the key:", errors.Is(err, adapter.ErrReused))
			return
		}
		fmt.Println("attempt", adapter.AttemptOf(lock))
		if err := adapter.Answer(ctx, lock, []byte("shipped"), time.Hour); err != nil {
			fmt.Println(err)
		}
	}
	deliver("ship order 42")
	deliver("ship order 42")
	deliver("ship order 43")
	// Output:
	// attempt 1
	// was done before: shipped
	// another job has the key: true
}
