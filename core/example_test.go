package core_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// open returns a Locker for an example, on an embedded Redis.
func open() (locker *core.Locker, done func()) {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	locker, err = core.New(client)
	if err != nil {
		log.Fatal(err)
	}
	return locker, func() {
		_ = locker.Close(context.Background())
		_ = client.Close()
		server.Close()
	}
}

func ExampleNew() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()

	locker, err := core.New(client, core.Prefix("shop:"), core.Lease(10*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())

	_, err = core.New(client, core.Lease(0))
	fmt.Println(err)
	// Output: core: Lease(0s): give at least 1ms and at most 24h0m0s
}

func ExampleLocker_Lock() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	lock, err := locker.Lock(ctx, "orderID=42")
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock(ctx)

	// Work under lock.Context(): it ends when the lock is lost.
	fmt.Println(lock.Key(), lock.Context().Err())
	// Output: orderID=42 <nil>
}

func ExampleLocker_TryLock() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	first, _ := locker.TryLock(ctx, "orderID=42")
	_, err := locker.TryLock(ctx, "orderID=42")
	fmt.Println(errors.Is(err, core.ErrNotAcquired))

	_ = first.Unlock(ctx)
	second, err := locker.TryLock(ctx, "orderID=42")
	fmt.Println(err)
	_ = second.Unlock(ctx)
	// Output:
	// true
	// <nil>
}

func ExampleLocker_Do() {
	locker, done := open()
	defer done()

	err := locker.Do(context.Background(), "orderID=42", func(ctx context.Context) error {
		// Whatever takes the same lock with this ctx re-enters it.
		return locker.Do(ctx, "orderID=42", func(ctx context.Context) error {
			lock, _ := core.FromContext(ctx)
			count, err := lock.Count(ctx)
			fmt.Println("holds:", count)
			return err
		})
	})
	fmt.Println(err)
	// Output:
	// holds: 2
	// <nil>
}

func ExampleWrap() {
	locker, done := open()
	defer done()

	type Order struct{ ID int }
	charge := func(_ context.Context, o Order) (string, error) {
		return fmt.Sprint("charged order ", o.ID), nil
	}
	orderKey := func(o Order) (string, error) { return fmt.Sprint("orderID=", o.ID), nil }

	charge = core.Wrap(locker, orderKey, charge) // one at a time for each order

	fmt.Println(charge(context.Background(), Order{ID: 42}))
	// Output: charged order 42 <nil>
}

func ExampleKeepFor() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	pay := func() error {
		return locker.Do(ctx, "payment:42", func(context.Context) error {
			fmt.Println("paid")
			return nil
		}, core.NoWait(), core.KeepFor(time.Minute))
	}
	_ = pay()
	err := pay() // the same request once more
	fmt.Println(errors.Is(err, core.ErrNotAcquired))
	// Output:
	// paid
	// true
}

func ExampleOwner() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	// The same owner re-enters, here or in another process.
	a, _ := locker.Lock(ctx, "orderID=42", core.Owner("saga-7"))
	b, _ := locker.Lock(ctx, "orderID=42", core.Owner("saga-7"))
	info, _ := locker.Inspect(ctx, "orderID=42")
	fmt.Println(info.Owner, info.Count)

	_ = b.Unlock(ctx)
	_ = a.Unlock(ctx)
	// Output: saga-7 2
}

func ExampleFromContext() {
	locker, done := open()
	defer done()

	_ = locker.Do(context.Background(), "orderID=42", func(ctx context.Context) error {
		lock, ok := core.FromContext(ctx)
		fmt.Println(lock.Key(), ok)
		return nil
	})
	_, ok := core.FromContext(context.Background())
	fmt.Println(ok)
	// Output:
	// orderID=42 true
	// false
}

// Where several locks may be held, each write has the token of its own key.
func ExampleFromContextKey() {
	locker, done := open()
	defer done()

	err := locker.DoAll(context.Background(), []string{"orderID=42", "tenantID=7"}, func(ctx context.Context) error {
		innermost, _ := core.FromContext(ctx)
		order, held := core.FromContextKey(ctx, "orderID=42")
		fmt.Println(innermost.Key(), order.Key(), held)
		_, held = core.FromContextKey(ctx, "orderID=43")
		fmt.Println(held)
		return nil
	})
	fmt.Println(err)
	// Output:
	// tenantID=7 orderID=42 true
	// false
	// <nil>
}

func ExampleDetach() {
	locker, done := open()
	defer done()

	_ = locker.Do(context.Background(), "orderID=42", func(ctx context.Context) error {
		// What this starts must not count as protected by our lock.
		_, err := locker.TryLock(core.Detach(ctx), "orderID=42")
		fmt.Println(errors.Is(err, core.ErrNotAcquired))
		return nil
	})
	// Output: true
}

func ExampleLocker_Inspect() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	lock, _ := locker.Lock(ctx, "orderID=42")
	info, _ := locker.Inspect(ctx, "orderID=42")
	fmt.Println(info.Locked, info.Owner == lock.Owner(), info.Count, info.TTL.Round(time.Minute/2))

	_ = lock.Unlock(ctx)
	info, _ = locker.Inspect(ctx, "orderID=42")
	fmt.Println(info.Locked)
	// Output:
	// true true 1 30s
	// false
}

func ExampleLocker_ForceUnlock() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	lock, _ := locker.Lock(ctx, "orderID=42")
	freed, _ := locker.ForceUnlock(ctx, "orderID=42") // by an operator
	fmt.Println(freed)

	err := lock.Unlock(ctx)
	fmt.Println(errors.Is(err, core.ErrLost))
	// Output:
	// true
	// true
}

func ExampleLocker_Close() {
	locker, done := open()
	defer done()
	lock, _ := locker.Lock(context.Background(), "orderID=42")

	// At shutdown: give the holders some time, then take their locks away.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	fmt.Println(locker.Close(ctx))
	fmt.Println(errors.Is(context.Cause(lock.Context()), core.ErrClosed))

	_, err := locker.Lock(context.Background(), "orderID=43")
	fmt.Println(errors.Is(err, core.ErrClosed))
	// Output:
	// context deadline exceeded
	// true
	// true
}

func ExampleBusyError() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	lock, _ := locker.Lock(ctx, "orderID=42")
	defer lock.Unlock(ctx)

	_, err := locker.Lock(ctx, "orderID=42", core.Wait(10*time.Millisecond))
	var busy *core.BusyError
	if errors.As(err, &busy) {
		fmt.Println(busy.Key, "is busy; try again in", busy.RetryAfter)
	}
	fmt.Println(err)
	// Output:
	// orderID=42 is busy; try again in 1s
	// core: lock not acquired: the wait of 10ms is over, somebody else holds it
}

// Of two calls that each hold what the other one waits for, one is refused at once.
func ExampleErrDeadlock() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	order, _ := locker.Lock(ctx, "orderID=42")
	customer, _ := locker.Lock(ctx, "customerID=7")
	both := func(ctx context.Context, key string, refused chan<- error) {
		refused <- locker.Do(ctx, key, func(context.Context) error { return nil })
	}
	refused := make(chan error)
	go both(order.Context(), "customerID=7", refused)
	go both(customer.Context(), "orderID=42", refused)

	err := <-refused
	fmt.Println(errors.Is(err, core.ErrDeadlock), errors.Is(err, core.ErrNotAcquired))
	fmt.Println("to a client:", err)
	var busy *core.BusyError
	if errors.As(err, &busy) && busy.Key == "orderID=42" {
		_ = customer.Unlock(ctx) // whoever was refused lets go
		fmt.Println("the other one goes on:", <-refused)
		_ = order.Unlock(ctx)
	} else {
		_ = order.Unlock(ctx)
		fmt.Println("the other one goes on:", <-refused)
		_ = customer.Unlock(ctx)
	}
	// Output:
	// true true
	// to a client: core: lock not acquired: calls wait for one another in a circle; take their locks together, with LockAll
	// the other one goes on: <nil>
}

// A holder that was paused for longer than its lease may still write. The store
// refuses it when every write carries the token:
//
//	UPDATE orders SET status = 'paid', fence = $1 WHERE id = 42 AND fence < $1
func ExampleLock_Token() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	var fence int64 // a column of the row
	write := func(token int64) string {
		if fence >= token {
			return "refused"
		}
		fence = token
		return "written"
	}

	paused, _ := locker.Lock(ctx, "orderID=42")
	_, _ = locker.ForceUnlock(ctx, "orderID=42") // its lease ends while it sleeps
	next, _ := locker.Lock(ctx, "orderID=42")

	fmt.Println(write(next.Token()))
	fmt.Println(write(paused.Token()))
	_ = next.Unlock(ctx)
	_ = paused.Unlock(ctx) // core.ErrLost
	// Output:
	// written
	// refused
}

func ExampleDetail() {
	locker, done := open()
	defer done()
	ctx := context.Background()

	lock, _ := locker.Lock(ctx, "orderID=42")
	_, _ = locker.ForceUnlock(ctx, "orderID=42")
	err := lock.Refresh(ctx)

	fmt.Println("to a client:", err)
	fmt.Println("to the log:", core.Detail(err))
	var which *core.LockError
	fmt.Println(errors.As(err, &which), which.Key)
	// Output:
	// to a client: core: lock lost: it was deleted, or somebody else has taken it
	// to the log: core: lock "orderID=42" lost: it was deleted, or somebody else has taken it
	// true orderID=42
}
