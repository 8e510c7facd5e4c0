//go:build go1.25

package asynqlock_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// A key with many tasks is used nearly all the time, and the others hardly notice.
func TestParkedTasksFollowOneAnother(t *testing.T) {
	for _, c := range []struct {
		name           string
		servers        int
		workers        int
		opts           []core.Option
		most           int           // at once
		hot, others    time.Duration // by when they are to be done
		refusalsPerHot float64
	}{
		{name: "one server", servers: 1, workers: 10, most: 1, hot: 11 * time.Second, others: 3 * time.Second, refusalsPerHot: 1},
		{name: "many workers", servers: 1, workers: 100, most: 1, hot: 11 * time.Second, others: time.Second, refusalsPerHot: 1.5},
		{name: "two servers", servers: 2, workers: 10, most: 1, hot: 11 * time.Second, others: 2 * time.Second, refusalsPerHot: 1.5},
		{
			name: "permits", servers: 1, workers: 10, opts: []core.Option{core.Permits(2)}, most: 2,
			hot: 6 * time.Second, others: 4 * time.Second, refusalsPerHot: 1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t, 90*time.Millisecond)
				defer s.close()
				for i := range 100 {
					s.enqueues(1, "42")
					s.enqueues(1, fmt.Sprint("other ", i))
				}
				began := time.Now()
				for range c.servers {
					s.open(c.workers, c.opts...)
				}
				s.wantDone(200, c.hot)
				for id, last := range s.last {
					if took := last.Sub(began); id != "42" && took > c.others {
						t.Errorf("a task with a key of its own was done after %v", took)
					}
				}
				if s.most > c.most {
					t.Errorf("%d tasks of a key at once, of %d", s.most, c.most)
				}
				if per := float64(s.refused.Load()) / 100; per > c.refusalsPerHot {
					t.Errorf("%.2f refusals for each task", per)
				}
			})
		})
	}
}

// Tasks that are done quickly do not wait for the next regular scan.
func TestParkedTasksThatAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 2*time.Millisecond)
		defer s.close()
		config := s.config(s.locker())
		config.Workers, config.TaskCheckInterval = 2, 5*time.Millisecond
		s.start(10, asynqlock.New(config)(s), func(a *asynq.Config) { a.TaskCheckInterval = config.TaskCheckInterval })
		s.enqueues(200, "42")
		s.wantDone(200, time.Second)
	})
}

// Tasks of a key that stays busy do not keep workers from others, nor come back all the time.
func TestParkedTasksOfABlockedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 10*time.Millisecond)
		defer s.close()
		locker := s.open(5)
		release := s.holds(locker, "42")
		s.enqueues(30, "42")
		time.Sleep(10 * time.Second)
		before := s.refused.Load()
		began := time.Now()
		for i := range 30 {
			s.enqueues(1, fmt.Sprint("other ", i))
			time.Sleep(time.Second)
		}
		if refused := s.refused.Load() - before; refused > 40 {
			t.Errorf("%d refusals in %v", refused, time.Since(began))
		}
		s.wantDone(30, time.Second)
		release()
		s.wantDone(60, 3*time.Second)
	})
}

// A process that dies costs the tasks that it has parked two minutes at most.
func TestParkedTasksComeBackByThemselves(t *testing.T) {
	for _, c := range []struct {
		name   string
		opts   []asynq.Option
		within time.Duration
	}{
		{name: "usually", within: 2*time.Minute + 10*time.Second},
		{name: "before their deadline", opts: []asynq.Option{asynq.Timeout(time.Minute)}, within: 40 * time.Second},
		{name: "soon, when that is near", opts: []asynq.Option{asynq.Timeout(10 * time.Second)}, within: 15 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t, 10*time.Millisecond)
				defer s.close()
				release := s.holds(s.locker(), "42")
				s.open(5)
				s.enqueues(20, "42", c.opts...)
				for s.refused.Load() < 20 {
					time.Sleep(10 * time.Millisecond)
				}
				s.blind.Store(true) // it has none run any more
				s.stops[len(s.stops)-1]()
				s.stops = s.stops[:len(s.stops)-1]
				release()
				s.inspector = asynq.NewInspectorFromRedisClient(s.client)
				s.open(5)
				s.wantDone(20, c.within)
			})
		})
	}
}

// asynq archives what fails on its last attempt.
func TestLastAttemptsAreNotParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 10*time.Millisecond)
		defer s.close()
		release := s.holds(s.open(10), "42")
		s.enqueues(10, "42", asynq.MaxRetry(0))
		time.Sleep(5 * time.Second)
		release()
		s.wantDone(10, time.Second)
	})
}

// Nothing stays of parked tasks when all are done.
func TestNothingStaysOfParkedTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 10*time.Millisecond)
		defer s.close()
		s.open(10)
		for range 2 {
			done := s.done()
			s.enqueues(30, "42")
			s.wantDone(done+30, time.Minute)
			time.Sleep(time.Second)
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			if strings.Contains(string(stacks), "(*parking).scan(") {
				t.Error("there is a goroutine for them")
			}
		}
	})
}

// Each key of several has its place, and a task is parked beside the one that is busy.
func TestParkedTasksOfSeveralKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 50*time.Millisecond)
		defer s.close()
		config := s.config(s.locker())
		config.Key, config.Keys = nil, keyfunc.All("account", keyfunc.Payload("order_id"), keyfunc.Payload("to"))
		s.start(10, asynqlock.New(config)(s))
		for i := range 60 {
			s.enqueue(asynq.NewTask("transfer", fmt.Appendf(nil, `{"order_id":"%d","to":"%d"}`, i%3, (i+1)%3)))
		}
		s.wantDone(60, 5*time.Second)
	})
}

func TestBadSettingsOfParkedTasks(t *testing.T) {
	inspector := new(asynq.Inspector)
	for name, c := range map[string]asynqlock.Config{
		"with Drop":              {Inspector: inspector, OnBusy: asynqlock.Drop},
		"workers":                {Inspector: inspector, Workers: -1},
		"how often asynq checks": {Inspector: inspector, TaskCheckInterval: -1},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "asynqlock: Config.") {
					t.Errorf("panic: %q", text)
				}
			}()
			c.Key = keyfunc.Payload("order_id")
			asynqlock.New(c)
		})
	}
}
