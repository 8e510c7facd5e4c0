//go:build go1.25

package asynqlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
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

// waits is the key of the marker of order 42.
const waits = `KeepOne=order\:pay:order_id=42`

// keeper guards tasks of order 42 with KeepOne, without a server.
type keeper struct {
	tb     testing.TB
	locker *core.Locker
	tasks  map[string]context.Context
	guard  asynq.MiddlewareFunc
}

// withLocker gives a keeper a Locker with options of its own.
func (k *keeper) withLocker(locker []core.Option, opts ...core.Option) {
	k.locker = locktest.New(k.tb, locker...)
	k.guard = asynqlock.With(k.locker, asynqlock.OnBusy(asynqlock.KeepOne)).ByPayload("order_id", opts...)
}

// keepers runs a test in a bubble. The tasks are "first", "second" and "third", and "last", which is on its last attempt.
func keepers(t *testing.T, test func(t *testing.T, k *keeper), opts ...core.Option) {
	tasks := map[string]context.Context{"last": taskContext(t, "last", 0)}
	for _, id := range []string{"first", "second", "third"} {
		tasks[id] = taskContext(t, id, 25)
	}
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{tb: t, tasks: tasks}
		k.withLocker(nil, opts...)
		test(t, k)
	})
}

// dropped fails the test unless a task is dropped.
func (k *keeper) dropped(id string) {
	k.tb.Helper()
	wantRefusal(k.tb, k.guard(forbidden(k.tb)).ProcessTask(k.tasks[id], order("42")), core.ErrNotAcquired, asynq.RevokeTask)
}

// comesAgain fails the test unless a task is put off, without a failure.
func (k *keeper) comesAgain(id string) {
	k.tb.Helper()
	err := k.guard(forbidden(k.tb)).ProcessTask(k.tasks[id], order("42"))
	wantRefusal(k.tb, err)
	wantNot(k.tb, err, asynq.RevokeTask, asynq.SkipRetry)
}

// runs fails the test unless a task runs, and does what is given.
func (k *keeper) runs(id string, do func()) {
	k.tb.Helper()
	ran := false
	err := k.guard(does(func(context.Context) error { ran = true; do(); return nil })).ProcessTask(k.tasks[id], order("42"))
	if err != nil || !ran {
		k.tb.Errorf("task %s has run: %v, %v", id, ran, err)
	}
}

func (k *keeper) hold(key string, opts ...core.Option) (release func()) {
	k.tb.Helper()
	return hold(k.tb, k.locker, key, opts...)
}

// The first that finds the key busy waits, also when it comes again, and the others are dropped, until its handler starts.
func TestKeepOneIsTheFirst(t *testing.T) {
	keepers(t, func(t *testing.T, k *keeper) {
		release := k.hold("order_id=42")
		k.comesAgain("first")
		k.dropped("second")
		k.dropped("third")
		for range 30 {
			time.Sleep(time.Minute)
			k.comesAgain("first")
			k.dropped("second")
		}
		release()
		k.runs("first", func() {
			k.comesAgain("third")
			k.dropped("second")
			k.dropped("first") // asynq delivers twice what it has lost sight of
		})
		k.runs("third", func() {})
		if info, err := k.locker.Inspect(t.Context(), waits); err != nil || info.Locked {
			t.Errorf("afterwards: %+v, %v", info, err)
		}
	})
}

// One that comes when the key is free runs beside nobody, and the one that waits stays that.
func TestKeepOneOvertaken(t *testing.T) {
	keepers(t, func(t *testing.T, k *keeper) {
		release := k.hold("order_id=42")
		k.comesAgain("first")
		release()
		k.runs("second", func() {
			k.dropped("third")
			k.comesAgain("first")
		})
		k.runs("first", func() {})
	})
}

// A marker that is back while its task runs, as after a failover or by another run of that, is noticed, and what it has dropped is
// followed by one more run.
func TestKeepOneComesBack(t *testing.T) {
	keepers(t, func(t *testing.T, k *keeper) {
		runs := 0
		k.runs("first", func() {
			if runs++; runs < 3 {
				k.comesAgain("first")
				k.dropped("second")
			}
		})
		if runs != 3 {
			t.Errorf("%d runs", runs)
		}
		broken := errors.New("broken")
		err := k.guard(does(func(context.Context) error { k.comesAgain("first"); return broken })).ProcessTask(k.tasks["first"], order("42"))
		wantFailure(t, err, broken)
		defer k.hold("order_id=42")()
		k.comesAgain("second")
	})
}

// If the one that waits is deleted, another can be it after five minutes.
func TestKeepOneDeleted(t *testing.T) {
	keepers(t, func(t *testing.T, k *keeper) {
		defer k.hold("order_id=42")()
		k.comesAgain("first")
		time.Sleep(5*time.Minute - 2*time.Second) // and what comesAgain has waited
		k.dropped("second")
		time.Sleep(2 * time.Second)
		k.comesAgain("second")
		k.dropped("third")
		k.dropped("first")
	})
}

// A long wait in a worker ends before the marker does.
func TestKeepOneWaitsLong(t *testing.T) {
	keepers(t, func(t *testing.T, k *keeper) {
		defer k.hold("order_id=42")()
		began := time.Now()
		k.comesAgain("first")
		if waited := time.Since(began); waited > 3*time.Minute {
			t.Errorf("it has waited %v", waited)
		}
		k.dropped("second")
	}, core.Wait(time.Hour))
}

// A handler that fails, or is killed, has been started: the next trigger may wait, and the task comes as any other.
func TestKeepOneFails(t *testing.T) {
	keepers(t, func(t *testing.T, k *keeper) {
		release := k.hold("order_id=42")
		k.comesAgain("first")
		release()
		broken := errors.New("broken")
		err := k.guard(does(func(context.Context) error { k.comesAgain("second"); return broken })).ProcessTask(k.tasks["first"], order("42"))
		wantFailure(t, err, broken)
		release = k.hold("order_id=42")
		k.dropped("first")
		release()
		k.runs("second", func() {})
	})
}

// asynq archives a task that is refused on its last attempt, so nobody is dropped because of it.
func TestKeepOneOnTheLastAttempt(t *testing.T) {
	keepers(t, func(t *testing.T, k *keeper) {
		release := k.hold("order_id=42")
		k.comesAgain("last")
		k.comesAgain("first")
		k.dropped("last")
		release()
		k.runs("first", func() {
			go k.dropped("last") // after it has waited in vain
			time.Sleep(time.Second)
			k.comesAgain("second")
			time.Sleep(2 * time.Minute)
		})
		k.runs("last", func() {})
	})
	k := map[string]context.Context{"retried": taskContext(t, "one", 25), "last": taskContext(t, "one", 0)}
	keepers(t, func(t *testing.T, other *keeper) {
		other.tasks = map[string]context.Context{"retried": k["retried"], "last": k["last"], "second": other.tasks["second"]}
		defer other.hold("order_id=42")()
		other.guard = asynqlock.New(asynqlock.Config{
			Locker: other.locker, Key: keyfunc.Payload("order_id"), OnBusy: asynqlock.KeepOne, LastWait: 10 * time.Minute,
		})
		other.comesAgain("retried")
		began := time.Now()
		other.comesAgain("last") // and asynq archives it
		if waited := time.Since(began); waited != 10*time.Minute {
			t.Errorf("it has waited %v", waited)
		}
		other.comesAgain("retried")
		var waits sync.WaitGroup
		waits.Go(func() { other.comesAgain("last") })
		time.Sleep(time.Second)
		other.comesAgain("second") // although "last" has the marker of "retried"
		waits.Wait()
	})
}

// With a dedup window one task waits for its end, wherever the window was said.
func TestKeepOneInAWindow(t *testing.T) {
	for _, ofLocker := range []bool{true, false} {
		keepers(t, func(t *testing.T, k *keeper) {
			if ofLocker {
				k.withLocker([]core.Option{core.KeepFor(time.Hour)})
			}
			for range 2 {
				began := time.Now()
				k.runs("first", func() { k.comesAgain("second"); k.dropped("third") })
				k.dropped("third")
				waited := time.Now()
				k.comesAgain("second")
				if time.Since(waited) > 0 {
					t.Error("it has waited in its worker for a window of an hour")
				}
				time.Sleep(time.Until(began.Add(time.Hour - time.Second)))
				k.dropped("third")
				time.Sleep(time.Second)
				k.runs("second", func() {})
				time.Sleep(time.Hour)
			}
		}, core.KeepFor(time.Hour))
	}
}

// Tasks of each type have a handler of their own: one of each waits.
func TestKeepOneOfEachType(t *testing.T) {
	keepers(t, func(t *testing.T, k *keeper) {
		defer k.hold("order_id=42")()
		long := strings.Repeat("x", 2000)
		for _, kind := range []string{"order:pay", "order:cancel", long, long + "y"} {
			task := asynq.NewTask(kind, []byte(`{"order_id":"42"}`))
			wantNot(t, k.guard(forbidden(t)).ProcessTask(k.tasks["first"], task), asynq.RevokeTask)
			wantErr(t, k.guard(forbidden(t)).ProcessTask(k.tasks["second"], task), asynq.RevokeTask)
		}
	})
}

// What KeepOne cannot be combined with is refused when it is set up, or by an error that says so.
func TestKeepOneIsForOneExclusiveKey(t *testing.T) {
	key := keyfunc.Payload("order_id")
	inspector := asynq.NewInspector(asynq.RedisClientOpt{Addr: "127.0.0.1:1"})
	defer inspector.Close()
	with := asynqlock.With(nil, asynqlock.OnBusy(asynqlock.KeepOne))
	for name, build := range map[string]func(){
		"Keys":          func() { with.ByAll(keyfunc.All("a", key)) },
		"Shared":        func() { with.New(asynqlock.Config{Key: key, Shared: isOrder}) },
		"Permits":       func() { with.New(asynqlock.Config{Key: key, Permits: permits}) },
		"core.Permits":  func() { with.By(key, core.Permits(2)) },
		"core.Shared":   func() { with.By(key, core.Shared()) },
		"Config.Weight": func() { with.New(asynqlock.Config{Key: key, Weight: permits, Options: []core.Option{core.Permits(2)}}) },
		"Inspector":     func() { with.New(asynqlock.Config{Key: key, Inspector: inspector}) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, "KeepOne") {
					t.Errorf("%s: panic %q", name, text)
				}
			}()
			build()
		}()
	}
	var clients []redis.UniversalClient
	for _, port := range []string{"1", "2", "3"} {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
		defer client.Close()
		clients = append(clients, client)
	}
	quorum, err := core.NewQuorum(clients)
	if err != nil {
		t.Fatal(err)
	}
	defer quorum.Close(background)
	err = asynqlock.With(quorum, asynqlock.OnBusy(asynqlock.KeepOne)).By(key)(forbidden(t)).ProcessTask(background, order("42"))
	wantFailure(t, err)
	if !strings.Contains(err.Error(), "core.NewQuorum") {
		t.Error(err)
	}
}
