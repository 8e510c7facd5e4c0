//go:build go1.25

package asynqlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// However many keys are blocked, tasks of others find workers.
func TestOthersBesideManyBlockedKeys(t *testing.T) {
	for _, keys := range []int{8, 30} {
		t.Run(fmt.Sprint(keys), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t, 10*time.Millisecond)
				defer s.close()
				locker := s.open(10)
				var releases []func()
				for k := range keys {
					releases = append(releases, s.holds(locker, fmt.Sprint("k", k)))
					s.enqueues(20, fmt.Sprint("k", k))
				}
				time.Sleep(90 * time.Second)
				var took []time.Duration
				for i := range 50 {
					began, done := time.Now(), s.done()
					s.enqueues(1, fmt.Sprint("other ", i))
					for s.done() == done {
						time.Sleep(time.Millisecond)
					}
					took = append(took, time.Since(began))
				}
				if slowest := slices.Max(took); slowest > 500*time.Millisecond {
					t.Errorf("a task with a key of its own took %v", slowest)
				}
				for _, release := range releases {
					release()
				}
				s.wantDone(50+20*keys, 20*time.Second)
			})
		})
	}
}

// Processes take one another's tasks, which keeps none from promoting more.
func TestParkedTasksOfTwoProcesses(t *testing.T) {
	for _, c := range []struct {
		check, within time.Duration
	}{
		{20 * time.Millisecond, 8 * time.Second},
		{100 * time.Millisecond, 20 * time.Second},
	} {
		t.Run(c.check.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t, 10*time.Millisecond)
				defer s.close()
				for range 2 {
					config := s.config(s.locker())
					config.TaskCheckInterval = c.check
					s.start(10, asynqlock.New(config)(s), func(a *asynq.Config) { a.TaskCheckInterval = c.check })
				}
				s.enqueues(600, "42")
				s.wantDone(600, c.within)
			})
		})
	}
}

// What is around the middleware may say more about an error.
func TestParkedTasksWhoseErrorIsWrapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 10*time.Millisecond)
		defer s.close()
		guarded := asynqlock.New(s.config(s.locker()))(s)
		s.start(10, asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			if err := guarded.ProcessTask(ctx, t); err != nil {
				return fmt.Errorf("shop: %w", err)
			}
			return nil
		}))
		s.enqueues(100, "42")
		s.wantDone(100, 5*time.Second)
	})
}

// asynq survives what panics, and so do the places of the tasks that wait.
func TestParkedTasksAfterPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 10*time.Millisecond)
		defer s.close()
		config, panics := s.config(s.locker()), true
		config.Permits = func(*asynq.Task) int {
			if panics {
				panic("no plan")
			}
			return 1
		}
		s.start(10, asynqlock.New(config)(s))
		s.enqueues(10, "42", asynq.MaxRetry(0))
		time.Sleep(time.Second)
		synctest.Wait()
		if panics = false; len(s.failed) != 10 {
			t.Errorf("%d of 10 have failed", len(s.failed))
		}
		s.failed = nil
		s.enqueues(100, "42")
		s.wantDone(100, 5*time.Second)
	})
}

// A task that was parked still has the lock that was handed over to it.
func TestParkedTaskOfAHandedOverLock(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []string
	}{
		{"an earlier run has it", []string{"order_id=42"}},
		{"another key is busy", []string{"order_id=42", "order_id=43"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t, 10*time.Millisecond)
				defer s.close()
				config, runs := s.config(s.locker()), 0
				config.Key, config.Keys = nil, func(keyfunc.Task) ([]string, error) { return c.keys, nil }
				s.start(10, asynqlock.New(config)(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
					if runs++; runs == 1 && len(c.keys) == 1 {
						time.Sleep(90 * time.Second) // asynq has given it up by then
						return errors.New("too late")
					}
					return nil
				})))
				release := s.holds(s.locker(), "43")
				click(t, s.locker(), s.handsOver(time.Hour, order("42"), asynq.TaskID("clicked"), asynq.Timeout(time.Minute)))
				time.Sleep(10 * time.Second)
				release()
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				if want := 3 - len(c.keys); runs != want {
					t.Errorf("it has run %d times, want %d", runs, want)
				}
			})
		})
	}
}
