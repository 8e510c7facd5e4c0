//go:build go1.25

package asynqlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Three instances, each with a scheduler and a server, enqueue the same periodic
// task; their clocks differ by up to two seconds.
func TestPeriodicTasksOfThreeInstances(t *testing.T) {
	const interval = 20 * time.Second
	window := func(policy asynqlock.BusyPolicy, d time.Duration) asynqlock.Config {
		return asynqlock.Config{OnBusy: policy, Options: []core.Option{core.KeepFor(d)}}
	}
	// It is a long time to look ten times a second.
	rarely := func(c *asynq.Config) {
		c.TaskCheckInterval, c.DelayedTaskCheckInterval = time.Second, time.Second
	}
	type result struct{ runs, parked, archived, failures int }
	for name, c := range map[string]struct {
		config  asynqlock.Config
		options []asynq.Option
		broken  bool // the first run fails for good
		right   bool
		sign    func(r result, ticks int) bool // of what is wrong
	}{
		"Drop, three quarters": {config: window(asynqlock.Drop, interval*3/4), right: true},
		"Drop, the interval": {
			config: window(asynqlock.Drop, interval),
			sign:   func(r result, ticks int) bool { return r.runs < ticks && r.parked == 0 },
		},
		"Retry, the interval": {config: window(asynqlock.Retry, interval), sign: func(r result, ticks int) bool { return r.parked >= ticks }},
		"Retry, three quarters": {
			config: window(asynqlock.Retry, interval*3/4),
			sign:   func(r result, ticks int) bool { return r.parked >= ticks },
		},
		"Unique": {
			// It ends with the task, which is done before the next instance's clock ticks.
			options: []asynq.Option{asynq.Unique(interval * 3 / 4)},
			sign:    func(r result, ticks int) bool { return r.runs > ticks },
		},
		"TaskID and Retention": {
			options: []asynq.Option{asynq.TaskID("report"), asynq.Retention(interval / 4)},
			right:   true,
		},
		"TaskID of an archived task": {
			options: []asynq.Option{asynq.TaskID("report"), asynq.Retention(interval / 4), asynq.MaxRetry(0)},
			broken:  true,
			sign:    func(r result, _ int) bool { return r.runs == 1 && r.archived == 1 },
		},
		"Drop after a failure for good": {
			config:  window(asynqlock.Drop, interval*3/4),
			options: []asynq.Option{asynq.MaxRetry(0)},
			broken:  true,
			// The failure opens no window: another instance's task runs at once.
			sign: func(r result, ticks int) bool { return r.runs == ticks+1 && r.archived == 1 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			ticks := 5
			if name == "Drop, the interval" {
				ticks = 15 // most are not lost
			}
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				defer b.close()
				var runs atomic.Int32
				for range 3 {
					cfg := c.config
					cfg.Locker, cfg.Key = b.locker(), keyfunc.TaskType()
					b.start(4, asynqlock.New(cfg)(does(func(context.Context) error {
						if runs.Add(1) == 1 && c.broken {
							return asynq.SkipRetry
						}
						time.Sleep(50 * time.Millisecond) // the work
						return nil
					})), rarely)
				}
				for range 3 {
					b.schedule(asynq.NewTask("report", nil), "@every "+interval.String(), c.options...)
					time.Sleep(time.Second)
				}
				time.Sleep(time.Duration(ticks+1)*interval - interval/2) // before the next tick
				info, err := asynq.NewInspectorFromRedisClient(b.client).GetQueueInfo("default")
				if err != nil {
					t.Fatal(err)
				}
				r := result{int(runs.Load()), info.Retry + info.Pending, info.Archived, len(b.failures())}
				t.Logf("%d ticks: %+v", ticks, r)
				switch {
				case c.right && (r != result{runs: ticks}):
					t.Errorf("%+v, want a run for each of %d ticks and no more", r, ticks)
				case !c.right && !c.sign(r, ticks):
					t.Errorf("%+v does not show what the documentation says", r)
				}
			})
		})
	}
}
