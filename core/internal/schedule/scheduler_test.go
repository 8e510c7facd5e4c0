//go:build go1.25

package schedule_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
)

const ms = time.Millisecond

// event logs when it is called, and then does something.
type event struct {
	schedule.Timer
	name string
	log  *log
	then func()
}

func (e *event) Due(now schedule.Time) {
	e.log.add(fmt.Sprintf("%s %v", e.name, now.Sub(e.log.start)))
	if e.then != nil {
		e.then()
	}
}

type log struct {
	start schedule.Time
	mu    sync.Mutex
	lines []string
}

func (l *log) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *log) want(t *testing.T, lines ...string) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.lines, lines) {
		t.Errorf("events: %q; want %q", l.lines, lines)
	}
	l.lines = nil
}

// bench is a Scheduler in a bubble.
type bench struct {
	*schedule.Scheduler
	workers *schedule.Workers
	log     *log
}

func bubble(t *testing.T, test func(t *testing.T, b bench)) {
	synctest.Test(t, func(t *testing.T) {
		l, w := &log{start: schedule.Now()}, &schedule.Workers{}
		b := bench{schedule.New(w, func() { l.add("flush") }), w, l}
		defer func() {
			b.Stop()
			<-w.Stop()
		}()
		test(t, b)
	})
}

func (b bench) event(name string) *event { return &event{name: name, log: b.log} }

func (b bench) in(d time.Duration) schedule.Time { return b.log.start.Add(d) }

// endsAt checks when the last goroutine ends.
func (b bench) endsAt(t *testing.T, want time.Duration) {
	t.Helper()
	<-b.workers.Stop()
	if at := schedule.Now().Sub(b.log.start); at != want {
		t.Errorf("the goroutine ended at %v; want %v", at, want)
	}
}

func TestEventsComeAtTheirTimesInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, b bench) {
		for _, d := range []time.Duration{30, 10, 50, 20, 40} {
			b.Set(b.event(fmt.Sprint(int(d))), b.in(d*ms))
			synctest.Wait() // an earlier one moves the goroutine's timer forward
		}
		time.Sleep(40 * ms)
		b.log.want(t, "10 10ms", "flush", "20 20ms", "flush", "30 30ms", "flush", "40 40ms", "flush")
		time.Sleep(time.Second)
		b.log.want(t, "50 50ms", "flush")
	})
}

func TestWhatIsDueTogetherIsFlushedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, b bench) {
		slow := b.event("slow")
		slow.then = func() { time.Sleep(20 * ms) }
		b.Set(slow, b.in(10*ms))
		for _, d := range []time.Duration{20, 20, 20, 25} {
			b.Set(b.event("late"), b.in(d*ms))
		}
		time.Sleep(time.Second)
		b.log.want(t, "slow 10ms", "flush", "late 30ms", "late 30ms", "late 30ms", "late 30ms", "flush")
	})
}

func TestAnEventMovesAndIsRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, b bench) {
		at := b.in(20 * ms)
		x, y, z, first := b.event("x"), b.event("y"), b.event("z"), b.event("first")
		for _, e := range []*event{first, x, y, z} {
			b.Set(e, at)
		}
		b.Remove(x)
		b.Remove(x)
		b.Set(y, b.in(10*ms))
		b.Set(z, b.in(30*ms))
		b.Set(z, b.in(40*ms))
		time.Sleep(time.Second)
		b.log.want(t, "y 10ms", "flush", "first 20ms", "flush", "z 40ms", "flush")
		b.Remove(z)
	})
}

func TestAnEventSetsItselfAgain(t *testing.T) {
	bubble(t, func(t *testing.T, b bench) {
		e := b.event("e")
		e.then = func() {
			if now := schedule.Now(); now < b.in(2*time.Second) {
				b.Set(e, now.Add(time.Second))
			}
		}
		b.Set(e, schedule.Now())
		time.Sleep(time.Minute)
		b.log.want(t, "e 0s", "flush", "e 1s", "flush", "e 2s", "flush")
	})
}

func TestTheGoroutineLingers(t *testing.T) {
	t.Run("after an event", func(t *testing.T) {
		bubble(t, func(t *testing.T, b bench) {
			b.Set(b.event("e"), b.in(time.Second))
			b.endsAt(t, 1200*ms)
		})
	})
	t.Run("after the last event was removed", func(t *testing.T) {
		bubble(t, func(t *testing.T, b bench) {
			e := b.event("e")
			for range 10 {
				b.Set(e, schedule.Now().Add(time.Hour))
				time.Sleep(150 * ms)
				b.Remove(e)
				time.Sleep(150 * ms)
			}
			b.endsAt(t, 9*150*ms+10*150*ms+200*ms)
		})
	})
	t.Run("not while something is scheduled", func(t *testing.T) {
		bubble(t, func(t *testing.T, b bench) {
			e, other := b.event("e"), b.event("other")
			b.Set(e, b.in(time.Hour))
			b.Set(other, b.in(time.Minute))
			b.Remove(e)
			b.endsAt(t, time.Minute+200*ms)
			b.log.want(t, "other 1m0s", "flush")
		})
	})
	t.Run("and starts again", func(t *testing.T) {
		bubble(t, func(t *testing.T, b bench) {
			b.Set(b.event("e"), b.in(0))
			time.Sleep(time.Minute)
			b.Set(b.event("f"), b.in(time.Hour))
			time.Sleep(time.Hour)
			b.log.want(t, "e 0s", "flush", "f 1h0m0s", "flush")
		})
	})
}

func TestStop(t *testing.T) {
	for name, setUp := range map[string]func(b bench){
		"before anything": func(bench) {},
		"with events": func(b bench) {
			b.Set(b.event("e"), b.in(time.Second))
			b.Set(b.event("f"), b.in(time.Minute))
		},
		"lingering": func(b bench) {
			e := b.event("e")
			b.Set(e, b.in(time.Second))
			b.Remove(e)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b bench) {
				setUp(b)
				late := b.event("late")
				b.Set(late, b.in(time.Second))
				time.Sleep(ms)
				b.Stop()
				b.Remove(late)
				b.Set(late, b.in(ms))
				b.endsAt(t, ms)
				time.Sleep(time.Hour)
				b.log.want(t)
			})
		})
	}
}

func TestStopLetsTheEventUnderWayReturn(t *testing.T) {
	bubble(t, func(t *testing.T, b bench) {
		e := b.event("e")
		e.then = func() { time.Sleep(time.Second) }
		b.Set(e, b.in(0))
		synctest.Wait()
		b.Stop()
		b.endsAt(t, time.Second)
		b.log.want(t, "e 0s", "flush")
	})
}

// Locks come and go all the time; events of one time, one after the other, cost no memory.
func TestSetAndRemoveAllocateNothing(t *testing.T) {
	var w schedule.Workers
	s := schedule.New(&w, func() {})
	defer func() {
		s.Stop()
		<-w.Stop()
	}()
	e, f, at := &event{}, &event{}, schedule.Now().Add(time.Hour)
	if n := testing.AllocsPerRun(100, func() {
		at++
		s.Set(e, at)
		s.Set(f, at)
		s.Remove(e)
		s.Remove(f)
	}); n > 0 {
		t.Errorf("%v allocations; want none", n)
	}
}

func TestConcurrentUse(t *testing.T) {
	bubble(t, func(t *testing.T, b bench) {
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				e := b.event("e")
				for i := range 1000 {
					b.Set(e, schedule.Now().Add(time.Duration(i%3)*ms))
					if i%7 == 0 {
						time.Sleep(ms)
					}
					b.Remove(e)
				}
			})
		}
		callers.Wait()
		start := schedule.Now().Sub(b.log.start)
		b.Set(b.event("last"), b.in(start))
		time.Sleep(time.Second)
		b.log.mu.Lock()
		defer b.log.mu.Unlock()
		if last := b.log.lines[len(b.log.lines)-2]; last != fmt.Sprint("last ", start) {
			t.Errorf("after all others came %q", last)
		}
		b.log.lines = nil
	})
}
