//go:build go1.25

package asynqlock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// Many short tasks of one key get through in a few seconds, and few are put off for
// each that runs.
func TestManyShortTasksOfOneKey(t *testing.T) {
	for _, workers := range []int{10, 100} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const tasks = 100
				b := newBubble(t)
				defer b.close()
				for range tasks {
					b.enqueue(order("42"))
				}
				var done atomic.Int32
				b.start(workers, by(b.locker())(does(func(context.Context) error {
					time.Sleep(10 * time.Millisecond) // the work
					done.Add(1)
					return nil
				})))
				began := time.Now()
				for done.Load() < tasks && time.Since(began) < time.Minute {
					time.Sleep(100 * time.Millisecond)
				}
				took := time.Since(began)
				t.Logf("%d tasks in %v, %d refusals", done.Load(), took, b.refused.Load())
				if took > 12*time.Second {
					t.Errorf("%d of %d tasks done after %v", done.Load(), tasks, took)
				}
				if n := b.refused.Load(); n > 10*tasks {
					t.Errorf("%d refusals for %d tasks", n, tasks)
				}
				if errs := b.failures(); len(errs) > 0 {
					t.Error(errs)
				}
			})
		})
	}
}

// putOff returns how long a task is put off whose key is busy, in whole seconds as
// asynq has it: from the second that it falls into.
func putOff(tb testing.TB, guard asynq.MiddlewareFunc, t *asynq.Task) time.Duration {
	tb.Helper()
	err := guard(forbidden(tb)).ProcessTask(background, t)
	wantRefusal(tb, err, core.ErrNotAcquired)
	d := asynqlock.RetryDelay(nil)(0, err, t)
	return max(0, time.Until(time.Unix(time.Now().Add(d).Unix(), 0)))
}

// However many tasks of one key are put off, few come back in a second, and none
// stays away for long.
func TestTasksThatArePutOffComeBackInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			tasks = 1000
			look  = 200 * time.Millisecond
		)
		locker := locktest.New(t)
		release := hold(t, locker, "order_id=42")
		defer release()
		guard := by(locker, core.NoWait())
		began := time.Now()
		due, tried := make([]time.Time, tasks), make([]time.Time, tasks)
		perSecond := map[int]int{}
		for i := range due {
			due[i], tried[i] = began, began
		}
		for time.Since(began) < 100*time.Second {
			for i := range due {
				if due[i].After(time.Now()) {
					continue
				}
				if away := time.Since(tried[i]); away > time.Minute+time.Second {
					t.Errorf("task %d stayed away for %v", i, away)
				}
				due[i], tried[i] = time.Now().Add(putOff(t, guard, order("42"))), time.Now()
				perSecond[int(time.Since(began)/time.Second)]++
			}
			time.Sleep(look)
		}
		for second, n := range perSecond {
			// The first time round there is no way to know.
			if second > 0 && n > 250 {
				t.Errorf("%d refusals in second %d", n, second)
			}
		}
		for i := range due {
			if time.Until(due[i]) > time.Minute {
				t.Errorf("task %d is due in %v", i, time.Until(due[i]))
			}
		}
	})
}

// A task alone is put off for longer the longer it has to wait already: it comes an
// eighth of that too late at most, or a second, and never more than a minute.
func TestDelayGrowsWithTheTimeAKeyIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		release := hold(t, locker, "order_id=42")
		guard := by(locker, core.NoWait())
		began := time.Now()
		tries := 0
		var longest time.Duration
		for time.Since(began) < time.Hour {
			d := putOff(t, guard, order("42"))
			if busy := time.Since(began); d > min(max(busy/8, time.Second), time.Minute) {
				t.Errorf("put off for %v after %v", d, busy)
			}
			longest = max(longest, d)
			tries++
			time.Sleep(max(d, 200*time.Millisecond))
		}
		if tries > 200 || longest < 30*time.Second {
			t.Errorf("tried %d times in an hour, put off for %v at most", tries, longest)
		}
		// Another key has nothing to do with it.
		other := hold(t, locker, "order_id=43")
		if d := putOff(t, guard, order("43")); d > 0 {
			t.Errorf("another key: put off for %v", d)
		}
		other()

		release()
		time.Sleep(time.Second)
		if err := guard(does(nothing)).ProcessTask(background, order("42")); err != nil {
			t.Fatal(err)
		}
		release = hold(t, locker, "order_id=42")
		if d := putOff(t, guard, order("42")); d > 0 {
			t.Errorf("after the key was got: put off for %v", d)
		}
		release()
	})
}

// Tasks that a long holder has kept away are all done soon after it has ended: none
// sleeps on for a minute beside a key that is free.
func TestTasksThatArePutOffAreDoneSoonAfterTheHolder(t *testing.T) {
	for _, held := range []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute} {
		t.Run(held.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const tasks = 60
				b := newBubble(t)
				defer b.close()
				locker := b.locker()
				release := hold(t, locker, "order_id=42")
				for range tasks {
					b.enqueue(order("42"))
				}
				var done atomic.Int32
				b.start(10, by(locker)(does(func(context.Context) error {
					time.Sleep(10 * time.Millisecond) // the work
					done.Add(1)
					return nil
				})))
				time.Sleep(held)
				release()
				began := time.Now()
				for done.Load() < tasks && time.Since(began) < 2*time.Minute {
					time.Sleep(100 * time.Millisecond)
				}
				if took := time.Since(began); took > max(held/8, 5*time.Second)+2*time.Second {
					t.Errorf("%d of %d tasks done %v after the holder", done.Load(), tasks, took)
				}
				if errs := b.failures(); len(errs) > 0 {
					t.Error(errs)
				}
			})
		})
	}
}

// Once a task has got the key, those that are put off do not make the next ones wait.
func TestDelaysAreShortOnceTheKeyIsGot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		guard := by(locker, core.NoWait())
		release := hold(t, locker, "order_id=42")
		due := make([]time.Time, 100)
		for range 50 { // ten seconds
			for i := range due {
				if !due[i].After(time.Now()) {
					due[i] = time.Now().Add(putOff(t, guard, order("42")))
				}
			}
			time.Sleep(200 * time.Millisecond)
		}
		release()
		if err := guard(does(nothing)).ProcessTask(background, order("42")); err != nil {
			t.Fatal(err)
		}
		release = hold(t, locker, "order_id=42")
		defer release()
		for range 20 {
			if d := putOff(t, guard, order("42")); d > time.Second {
				t.Fatalf("put off for %v", d)
			}
		}
	})
}

// What was refused long ago does not count: the key may have been free meanwhile,
// for the tasks of other processes.
func TestDelayForgetsAnotherTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		release := hold(t, locker, "order_id=42")
		defer release()
		guard := by(locker, core.NoWait())
		for range 300 {
			putOff(t, guard, order("42"))
		}
		if d := putOff(t, guard, order("42")); d == 0 {
			t.Error("those before have no effect")
		}
		time.Sleep(2 * time.Minute)
		if d := putOff(t, guard, order("42")); d > 0 {
			t.Errorf("put off for %v", d)
		}
	})
}

// The bound on waiters is asynqlock's only where nobody has set one.
func TestFewTasksWaitForAKey(t *testing.T) {
	first, last := taskContext(t, "first", 25), taskContext(t, "last", 0)
	bound := func(n int) []core.Option { return []core.Option{core.MaxWaiters(n)} }
	for name, c := range map[string]struct {
		ctx             context.Context
		locker, options []core.Option
		want            int
	}{
		"by default":                {ctx: first, want: 4},
		"with a longer wait":        {ctx: first, options: []core.Option{core.Wait(time.Hour)}, want: 4},
		"as the options say":        {ctx: first, options: bound(6), want: 6},
		"as the Locker says":        {ctx: first, locker: bound(2), want: 2},
		"options before Locker":     {ctx: first, locker: bound(2), options: bound(6), want: 6},
		"last attempt":              {ctx: last, want: 20},
		"last attempt, as they say": {ctx: last, options: bound(6), want: 6},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				locker := locktest.New(t, c.locker...)
				release := hold(t, locker, "order_id=42")
				guard := asynqlock.New(asynqlock.Config{Locker: locker, Key: keyfunc.Payload("order_id"), Options: c.options})
				var waiting atomic.Int32
				var all sync.WaitGroup
				for range 20 {
					waiting.Add(1)
					all.Go(func() {
						defer waiting.Add(-1)
						if err := guard(does(nothing)).ProcessTask(c.ctx, order("42")); err != nil {
							wantRefusal(t, err, core.ErrNotAcquired)
						}
					})
				}
				synctest.Wait()
				time.Sleep(500 * time.Millisecond)
				if n := int(waiting.Load()); n != c.want {
					t.Errorf("%d tasks wait, want %d", n, c.want)
				}
				release()
				all.Wait()
			})
		})
	}
}
