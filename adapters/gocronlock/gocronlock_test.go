//go:build go1.25

package gocronlock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey/adapters/gocronlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// process is a scheduler with a job, as several processes have one.
type process struct {
	gocron.Scheduler
	runs    atomic.Int64
	refused []error
}

// every is the interval of the job.
const every = 10 * time.Second

func newProcess(t *testing.T, of gocron.SchedulerOption, job func()) *process {
	t.Helper()
	s, err := gocron.NewScheduler(of)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Scheduler: s}
	_, err = s.NewJob(gocron.DurationJob(every), gocron.NewTask(func() { p.runs.Add(1); job() }), gocron.WithName("report"),
		gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { p.refused = append(p.refused, err) })))
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	return p
}

func newLocker(t *testing.T) *core.Locker {
	return locktest.New(t, core.Logger(slog.New(slog.DiscardHandler)))
}

func shutdown(t *testing.T, s gocron.Scheduler) {
	t.Helper()
	if err := s.Shutdown(); err != nil {
		t.Error(err)
	}
}

// total counts the runs since the last call.
func total(processes []*process) (runs int) {
	synctest.Wait()
	for _, p := range processes {
		runs += int(p.runs.Swap(0))
	}
	return runs
}

func TestElector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := newLocker(t)
		var processes []*process
		var electors []*gocronlock.Elector
		var stop []context.CancelFunc
		stopped := make(chan error)
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			e := new(gocronlock.Elector)
			go func() { stopped <- e.Run(ctx, locker, "scheduler", core.Lease(every/2)) }()
			processes = append(processes, newProcess(t, gocron.WithDistributedElector(e), func() {}))
			electors, stop = append(electors, e), append(stop, cancel)
		}
		leader := func() int {
			synctest.Wait()
			found := -1
			for i, e := range electors {
				switch err := e.IsLeader(t.Context()); {
				case err == nil && found >= 0:
					t.Errorf("%d and %d lead", found, i)
				case err == nil:
					found = i
				case err != gocronlock.ErrNotLeader:
					t.Error(err)
				}
			}
			return found
		}
		time.Sleep(4*every + time.Second)
		first := leader()
		if first < 0 || processes[first].runs.Load() != 4 || total(processes) != 4 {
			t.Fatalf("process %d leads, and its job has not run all 4 times", first)
		}

		locktest.Lose(t, locker, "scheduler") // it leads again, or another does
		time.Sleep(4 * every)
		if runs := total(processes); leader() < 0 || runs != 4 {
			t.Errorf("process %d leads, %d runs in 4 intervals", leader(), runs)
		}

		end := locktest.Outage(t, locker)
		time.Sleep(every)
		if leader() >= 0 {
			t.Errorf("process %d leads while Redis is away", leader())
		}
		total(processes)
		time.Sleep(3 * every)
		if runs := total(processes); runs != 0 {
			t.Errorf("%d runs while Redis is away", runs)
		}
		end()
		time.Sleep(4 * every)
		if runs := total(processes); runs != 4 {
			t.Errorf("%d runs in 4 intervals after the outage", runs)
		}

		for range 3 { // each in turn leaves
			i := leader()
			if i < 0 {
				t.Fatal("nobody leads")
			}
			shutdown(t, processes[i])
			stop[i]()
			if err := <-stopped; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			total(processes)
			time.Sleep(2 * every)
			if runs := total(processes); leader() >= 0 && runs != 2 {
				t.Errorf("%d runs in 2 intervals", runs)
			}
		}
		if leader() >= 0 {
			t.Error("who has left still leads")
		}
	})
}

// Schedulers that were started at different times, and a job that takes no time.
func TestLockerRunsAShortJobOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := newLocker(t)
		var processes []*process
		for range 3 {
			processes = append(processes, newProcess(t, gocron.WithDistributedLocker(gocronlock.NewLocker(locker, every*3/4)), func() {}))
			time.Sleep(every / 6)
		}
		time.Sleep(20 * every)
		if runs := total(processes); runs != 20 {
			t.Errorf("%d runs in 20 intervals", runs)
		}
		for _, p := range processes {
			for _, err := range p.refused {
				if busy := (*core.BusyError)(nil); !errors.As(err, &busy) || !busy.Done {
					t.Errorf("refused with %v; want one that says that the job was done", err)
				}
			}
			shutdown(t, p)
		}
	})
}

// A job that is longer than its interval, and than a lease, runs once at a time.
func TestLockerRunsALongJobAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := newLocker(t)
		var running, most, leave atomic.Int64
		var processes []*process
		for range 3 {
			processes = append(processes, newProcess(t, gocron.WithDistributedLocker(gocronlock.NewLocker(locker, every*3/4)), func() {
				most.Store(max(most.Load(), running.Add(1)))
				if leave.Load() == 0 {
					time.Sleep(every * 5 / 2)
				}
				running.Add(-1)
			}))
			time.Sleep(every / 6)
		}
		time.Sleep(30 * every)
		if runs := total(processes); most.Load() != 1 || runs < 9 {
			t.Errorf("%d at once, %d runs", most.Load(), runs)
		}
		leave.Store(1)
		time.Sleep(3 * every) // Shutdown polls while a job runs, without letting the fake clock go on
		for _, p := range processes {
			shutdown(t, p)
		}
	})
}

func TestNoRunWithoutTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := newLocker(t)
		release := locktest.Hold(t, locker, "cron=report")
		p := newProcess(t, gocron.WithDistributedLocker(gocronlock.NewLocker(locker, every*3/4)), func() {})
		time.Sleep(every + time.Second)
		end := locktest.Outage(t, locker)
		time.Sleep(every)
		synctest.Wait()
		if p.runs.Load() != 0 || len(p.refused) != 2 ||
			!errors.Is(p.refused[0], core.ErrNotAcquired) || !errors.Is(p.refused[1], core.ErrUnavailable) {
			t.Errorf("%d runs, refused with %v", p.runs.Load(), p.refused)
		}
		end()
		release()
		time.Sleep(every)
		if synctest.Wait(); p.runs.Load() != 1 {
			t.Errorf("%d runs", p.runs.Load())
		}
		shutdown(t, p)
	})
}

func TestSetUpMistakesPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := newLocker(t)
		for name, f := range map[string]func(){
			"no Locker":  func() { gocronlock.NewLocker(nil, every) },
			"bad window": func() { gocronlock.NewLocker(locker, -1) },
			"bad option": func() { gocronlock.NewLocker(locker, every, core.Lease(-1)) },
		} {
			func() {
				defer func() {
					if text, _ := recover().(string); !strings.HasPrefix(text, "gocronlock: ") {
						t.Errorf("%s: %q", name, text)
					}
				}()
				f()
			}()
		}
	})
}
