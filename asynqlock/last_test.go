//go:build go1.25

package asynqlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

var (
	errNoMoney  = errors.New("no money")
	errHarmless = errors.New("harmless")
)

func returns(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

// untilItEnds returns err after the task's context has ended.
func untilItEnds(err error) func(context.Context) error {
	return func(ctx context.Context) error { <-ctx.Done(); return err }
}

func panics(context.Context) error { panic(errNoMoney) }

func goesPastABound(context.Context) error {
	var bounds []int
	return errors.New(fmt.Sprint(bounds[len(bounds)]))
}

// A lock that was handed over to a task ends with it, and is parked again for a task that may come again.
func TestHandedOverLockEndsWithItsTask(t *testing.T) {
	minute := asynq.Timeout(time.Minute)
	for name, c := range map[string]struct {
		opts   []asynq.Option
		work   func(context.Context) error
		parked bool
		runs   int // until it is asked; 0: 1
	}{
		"SkipRetry":                {work: returns(fmt.Errorf("%w: %w", errNoMoney, asynq.SkipRetry))},
		"RevokeTask":               {work: returns(fmt.Errorf("%w: %w", errNoMoney, asynq.RevokeTask))},
		"the last attempt":         {work: returns(errNoMoney), opts: []asynq.Option{asynq.MaxRetry(0)}},
		"the last of two":          {work: returns(errNoMoney), opts: []asynq.Option{asynq.MaxRetry(1)}, runs: 2},
		"the last panics":          {work: panics, opts: []asynq.Option{asynq.MaxRetry(0)}},
		"the runtime panics":       {work: goesPastABound, opts: []asynq.Option{asynq.MaxRetry(0)}},
		"the last is too late":     {work: untilItEnds(errNoMoney), opts: []asynq.Option{asynq.MaxRetry(0), minute}},
		"the last, not a failure":  {work: returns(errHarmless), opts: []asynq.Option{asynq.MaxRetry(0)}},
		"a failure":                {work: returns(errNoMoney), parked: true},
		"a panic":                  {work: panics, parked: true},
		"not a failure":            {work: returns(errHarmless), opts: []asynq.Option{asynq.MaxRetry(1)}, runs: 3, parked: true},
		"too late to skip retries": {work: untilItEnds(asynq.SkipRetry), opts: []asynq.Option{minute}, parked: true},
		"too late to be revoked":   {work: untilItEnds(asynq.RevokeTask), opts: []asynq.Option{minute}, parked: true},
		"of which asynq hears none": {
			work: func(context.Context) error { runtime.Goexit(); return nil },
			opts: []asynq.Option{asynq.MaxRetry(0)}, parked: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				defer b.close()
				runs := make(chan bool, 10)
				b.start(2, by(b.locker())(does(func(ctx context.Context) error {
					defer func() { runs <- true }()
					return c.work(ctx)
				})), func(a *asynq.Config) {
					a.IsFailure = asynqlock.IsFailure(func(err error) bool { return !errors.Is(err, errHarmless) })
					a.RetryDelayFunc = asynqlock.RetryDelay(func(int, error, *asynq.Task) time.Duration { return 20 * time.Second })
				})
				other := b.locker()
				lock, err := b.locker().Lock(background, "order_id=42", core.KeepFor(time.Hour))
				if err != nil {
					t.Fatal(err)
				}
				if err := b.handsOver(10*time.Minute, order("42"), c.opts...)(lock); err != nil {
					t.Fatal(err)
				}
				for range max(c.runs, 1) {
					<-runs
				}
				time.Sleep(time.Second)
				if info, err := other.Inspect(background, "order_id=42"); err != nil || (info.State == core.StateParked) != c.parked || info.Locked != c.parked {
					t.Errorf("the lock is %+v, %v; want parked: %v", info, err, c.parked)
				}
			})
		})
	}
}

// A server that is shut down gives back a task that has no retry left: its lock is parked for it.
func TestHandedOverLockOfATaskThatIsGivenBack(t *testing.T) {
	t.Parallel()
	f := open(t)
	g := newGate()
	first := f.start(by(f.locker())(g), func(c *asynq.Config) { c.ShutdownTimeout = 50 * time.Millisecond })
	shop := f.locker()
	click(t, shop, func(lock *core.Lock) error {
		_, err := asynqlock.Enqueue(background, f.client, lock, order("42"), time.Hour, asynq.TaskID("clicked"), asynq.MaxRetry(0))
		return err
	})
	await(t, g.entered, "the first run")
	first.Shutdown()
	if info, ok := f.state("clicked"); !ok || info.State != asynq.TaskStatePending {
		t.Fatalf("the task is %+v, want pending", info)
	}
	g.leave <- errNoMoney
	redistest.Await(t, patience, "the lock to be parked again", func() bool {
		info, err := shop.Inspect(background, "order_id=42")
		return err == nil && (info.State == core.StateParked || !info.Locked)
	})
	if !isLocked(t, shop, "order_id=42") {
		t.Error("it is free")
	}
	f.start(by(f.locker())(g))
	await(t, g.entered, "the second run")
	g.leave <- nil
	f.awaitGone("clicked")
}

// What asynq itself says of a task whose lock has ended with it.
func TestTaskWhoseHandedOverLockEndsDoesNotComeAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		work     func(context.Context) error
		maxRetry int
		archived bool
	}{
		"SkipRetry":        {returns(asynq.SkipRetry), 25, true},
		"RevokeTask":       {returns(asynq.RevokeTask), 25, false},
		"the last attempt": {returns(errNoMoney), 0, true},
		"the last panics":  {panics, 0, true},
		"not a failure":    {returns(errHarmless), 0, true},
		"too late":         {untilItEnds(errHarmless), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t)
			f.start(by(f.locker())(does(c.work)), func(a *asynq.Config) {
				a.IsFailure = asynqlock.IsFailure(func(err error) bool { return !errors.Is(err, errHarmless) })
			})
			shop := f.locker()
			click(t, shop, func(lock *core.Lock) error {
				_, err := asynqlock.Enqueue(background, f.client, lock, order("42"), time.Hour,
					asynq.TaskID("clicked"), asynq.MaxRetry(c.maxRetry), asynq.Timeout(time.Second))
				return err
			})
			if c.archived {
				f.awaitState("clicked", asynq.TaskStateArchived)
			} else {
				f.awaitGone("clicked")
			}
			redistest.Await(t, patience, "the lock to be free", func() bool { return !isLocked(t, shop, "order_id=42") })
		})
	}
}

// A task that is refused on its last attempt does not come back, and others are not put off for it.
func TestRefusedLastAttemptsPutNobodyOff(t *testing.T) {
	last, usual := taskContext(t, "last", 0), taskContext(t, "usual", 25)
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		defer b.close()
		defer hold(t, b.locker(), "order_id=42")()
		guard := by(b.locker(), core.NoWait())
		for range 100 {
			wantRefusal(t, guard(forbidden(t)).ProcessTask(last, order("42")), core.ErrNotAcquired)
		}
		err := guard(forbidden(t)).ProcessTask(usual, order("42"))
		if d := asynqlock.RetryDelay(nil)(0, err, order("42")); d > 100*time.Millisecond {
			t.Errorf("put off for %v", d)
		}
	})
}
