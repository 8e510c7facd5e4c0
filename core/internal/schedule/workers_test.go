//go:build go1.25

package schedule_test

import (
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
)

// working counts the goroutines of Workers, with a task and without.
func working() int {
	synctest.Wait()
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return strings.Count(string(stacks), "schedule.(*Workers).work(")
}

func wantWorking(t *testing.T, when string, want int) {
	t.Helper()
	if n := working(); n != want {
		t.Errorf("%s: %d goroutines; want %d", when, n, want)
	}
}

func workers(t *testing.T, test func(t *testing.T, w *schedule.Workers)) {
	synctest.Test(t, func(t *testing.T) {
		var w schedule.Workers
		test(t, &w)
		<-w.Stop()
	})
}

func TestAWorkerIsUsedAgain(t *testing.T) {
	workers(t, func(t *testing.T, w *schedule.Workers) {
		ran := 0
		for range 10 {
			w.Start(func() { ran++ })
			wantWorking(t, "one task after the other", 1)
			time.Sleep(190 * ms)
		}
		if ran != 10 {
			t.Errorf("%d tasks ran; want 10", ran)
		}
		time.Sleep(9 * ms)
		wantWorking(t, "199 ms after the last task", 1)
		time.Sleep(ms)
		wantWorking(t, "200 ms after the last task", 0)
		w.Start(func() { ran++ })
		synctest.Wait()
		if ran != 11 {
			t.Error("after all workers have gone, a task does not run")
		}
	})
}

func TestTasksComeAsWorkersLeave(t *testing.T) {
	workers(t, func(t *testing.T, w *schedule.Workers) {
		for round := range 200 {
			var ran [16]atomic.Int32
			for i := range ran {
				w.Start(func() {
					ran[i].Add(1)
					time.Sleep(ms)
				})
			}
			time.Sleep(201 * ms)
			for i := range ran {
				if n := ran[i].Load(); n != 1 {
					t.Fatalf("in round %d a task ran %d times", round, n)
				}
			}
		}
	})
}

func TestNotAllWorkersStay(t *testing.T) {
	workers(t, func(t *testing.T, w *schedule.Workers) {
		for range 100 {
			w.Start(func() { time.Sleep(ms) })
		}
		wantWorking(t, "with 100 tasks", 100)
		time.Sleep(2 * ms)
		wantWorking(t, "after 100 tasks", 64)
	})
}

func TestABusyWorkerHoldsNobodyUp(t *testing.T) {
	workers(t, func(t *testing.T, w *schedule.Workers) {
		for range 3 {
			w.Start(func() { time.Sleep(time.Minute) })
		}
		ran := false
		w.Start(func() { ran = true })
		synctest.Wait()
		if !ran {
			t.Error("a task waits for others")
		}
	})
}

func TestFewWorkersStayIdle(t *testing.T) {
	workers(t, func(t *testing.T, w *schedule.Workers) {
		for range 100 {
			w.Start(func() { time.Sleep(time.Second) })
		}
		wantWorking(t, "with a task each", 100)
		time.Sleep(time.Second)
		wantWorking(t, "idle", 64)
		time.Sleep(200 * ms)
		wantWorking(t, "later", 0)
	})
}

type sleep time.Duration

func (s *sleep) Run() { time.Sleep(time.Duration(*s)) }

func TestWaitIsOverWithTheLastTask(t *testing.T) {
	workers(t, func(t *testing.T, w *schedule.Workers) {
		start := time.Now()
		short, long := sleep(time.Second), sleep(time.Minute)
		w.Begin(&short)
		w.Begin(&long)
		time.Sleep(30 * time.Second)
		first, second := w.Stop(), w.Stop()
		w.Start(func() {
			time.Sleep(time.Second)
			w.Start(func() { time.Sleep(time.Minute) })
		})
		<-first
		<-second
		if took := time.Since(start); took != 91*time.Second {
			t.Errorf("Wait was over after %v; want 91s", took)
		}
		wantWorking(t, "after Wait", 0)
		<-w.Stop()
	})
}

func TestWaitSendsIdleWorkersHome(t *testing.T) {
	workers(t, func(t *testing.T, w *schedule.Workers) {
		for range 5 {
			w.Start(func() {})
		}
		wantIdle := time.Now()
		synctest.Wait()
		<-w.Stop()
		wantWorking(t, "after Wait", 0)
		w.Start(func() {})
		<-w.Stop()
		if !time.Now().Equal(wantIdle) {
			t.Errorf("Wait took %v", time.Since(wantIdle))
		}
	})
}
