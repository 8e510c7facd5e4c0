//go:build go1.25

package core_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

const (
	waitQueue = "lock:{lock:k}:queue"
	wakeupOfK = "redisson_lock__channel:{lock:k}"
)

// hear passes on what is published on a channel, until the test ends.
func (s *embedded) hear(channel string) <-chan string {
	sub := s.client().Subscribe(background, channel)
	if _, err := sub.Receive(background); err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() { _ = sub.Close() })
	heard := make(chan string, 1000)
	go func() {
		for {
			m, err := sub.ReceiveMessage(background)
			if err != nil {
				return
			}
			heard <- m.Payload
		}
	}()
	return heard
}

// isServed is a call that gets the lock within a time, and unlocks it.
func isServed(t *testing.T, what string, waiting <-chan outcome, within time.Duration) {
	t.Helper()
	began := time.Now()
	o := <-waiting
	if o.err != nil {
		t.Fatalf("%s: %v", what, o.err)
	}
	wantTime(t, what+" had it", time.Since(began), 0, within)
	unlock(t, o.lock)
}

// What a hand-off costs does not depend on how many processes wait: one release, and one
// message that carries the grant.
// Taken out, every process asks at every release, and which one is served is chance.
func TestProcessesAreServedInOrderOfArrival(t *testing.T) {
	for _, n := range []int{2, 12} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				k := take(t, background, s.locker(), "k")
				served := make(chan int, n)
				for i := range n {
					waiting := start(background, s.locker(), "k")
					time.Sleep(time.Millisecond)
					go func() {
						o := <-waiting
						if o.err != nil {
							t.Error(o.err)
							return
						}
						served <- i
						unlock(t, o.lock)
					}()
				}
				scripts, messages := s.scripts(), len(s.commands("publish"))
				unlock(t, k)
				for i := range n {
					if got := <-served; got != i {
						t.Errorf("process %d was served as number %d", got, i)
					}
				}
				synctest.Wait()
				if used := s.scripts() - scripts; used != n+1 {
					t.Errorf("%d scripts for %d hand-offs and the last release", used, n)
				}
				// The last release tells all; another second is over for those outside the queue.
				if used := len(s.commands("publish")) - messages; used > n+2 {
					t.Errorf("%d messages for %d hand-offs", used, n)
				}
			})
		})
	}
}

func TestQueueOfProcessesEnds(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		k := take(t, background, s.locker(), "k")
		first := start(background, s.locker(), "k")
		time.Sleep(time.Millisecond)
		second := start(background, s.locker(), "k")
		unlock(t, k)
		isServed(t, "the first", first, prompt)
		isServed(t, "the second", second, prompt)
		time.Sleep(5 * time.Second)
		if s.Exists(waitQueue) {
			t.Error("the queue is still in Redis")
		}
	})
}

// Whoever waits in the queue and cannot come must not hold up the others.
func TestPlacesOfThoseWhoDoNotCome(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, s *embedded)
		from    time.Duration
		to      time.Duration
	}{
		"dead": {func(_ *testing.T, s *embedded) {
			mustAdd(s, "dead:1")
		}, 0, prompt},
		"left, on a connection that broke": {func(t *testing.T, s *embedded) {
			l := s.locker()
			ctx, cancel := context.WithCancel(background)
			left := start(ctx, l, "k")
			places, err := s.ZMembers(waitQueue)
			if err != nil || len(places) != 1 {
				t.Fatal(places, err)
			}
			s.fail(release, loseRequest)
			cancel()
			<-left
			time.Sleep(100 * time.Millisecond)
			if s.Exists(waitQueue) {
				t.Fatal("who leaves keeps its place")
			}
			time.Sleep(10 * time.Second) // a process that listens and does not wait is let go first
		}, 0, prompt},
		"frozen": {func(_ *testing.T, s *embedded) {
			mustAdd(s, "frozen:1")
			s.hear(processChannel("frozen"))
		}, 250 * time.Millisecond, 2*time.Second + prompt},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				k := take(t, background, s.locker(), "k")
				c.prepare(t, s)
				waiting := start(background, s.locker(), "k")
				time.Sleep(10 * time.Millisecond)
				var last <-chan outcome
				if c.from == 0 {
					last = start(background, s.locker(), "k")
				}
				asked, began := len(s.commands(acquire)), time.Now()
				unlock(t, k)
				o := <-waiting
				if o.err != nil {
					t.Fatal(o.err)
				}
				wantTime(t, "the next had it", time.Since(began), c.from, c.to)
				used := len(s.commands(acquire)) - asked
				unlock(t, o.lock)
				if c.from > 0 {
					return // who comes next is chance
				}
				if used != 0 {
					t.Errorf("it was granted, and asked for %d times", used)
				}
				isServed(t, "the last", last, prompt)
			})
		})
	}
}

// A process that has just come may be the next before it has subscribed. It is passed over,
// and the first again once it has.
// Taken out, it has to ask, and the others let it go first for 250 ms of every 650.
func TestProcessThatIsNextBeforeItHasSubscribed(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		k := take(t, background, s.locker(), "k")
		s.fail("subscribe", lateRequest(30*time.Millisecond))
		newcomer := start(background, s.locker(), "k")
		waits(t, newcomer)
		time.Sleep(time.Millisecond) // to be the first
		second := start(background, s.locker(), "k")
		waits(t, second)
		unlock(t, k)
		k = (<-second).lock
		time.Sleep(50 * time.Millisecond)
		last := start(background, s.locker(), "k")
		waits(t, last)
		unlock(t, k)
		isServed(t, "who was passed over", newcomer, prompt)
		isServed(t, "the last", last, prompt)
	})
}

// A process that died before it had subscribed does not stay in a queue that never ends.
func TestDeadProcessesLeaveAQueueThatGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		lockers := []*core.Locker{s.locker(), s.locker()}
		k := take(t, background, lockers[0], "k")
		mustAdd(s, "dead:1")
		for i := range 12 {
			waiting := start(background, lockers[(i+1)%2], "k")
			time.Sleep(300 * time.Millisecond)
			unlock(t, k)
			k = (<-waiting).lock
		}
		if members, _ := s.ZMembers(waitQueue); slices.Contains(members, "dead:1") {
			t.Error(members)
		}
		unlock(t, k)
	})
}

// mustAdd enters a hold into the queue, since a second.
func mustAdd(s *embedded, hold string) {
	s.tb.Helper()
	since := float64(time.Now().Add(-time.Second - time.Millisecond).UnixMicro())
	if _, err := s.ZAdd(waitQueue, since, hold); err != nil {
		s.tb.Fatal(err)
	}
	if mode := s.HGet("lock:k", "mode"); !strings.HasSuffix(mode, "+") {
		s.HSet("lock:k", "mode", mode+"+")
	}
}

// processChannel is that on which a process is told of its holds.
func processChannel(process string) string {
	return wakeupOfK + ":" + redistest.Digest(process)
}

// A Redisson client is outside of the queue. It is told again and again, and has the
// lock to itself then for a moment.
// Taken out, it gets the lock only when nobody of ours waits.
func TestOthersGetTheirTurn(t *testing.T) {
	for name, tc := range map[string]struct {
		processes int
		section   time.Duration
	}{
		"one process":                    {1, 4 * time.Millisecond},
		"three processes":                {3, 4 * time.Millisecond},
		"one process, long sections":     {1, 1500 * time.Millisecond}, // the next calls ask meanwhile
		"two processes, long sections":   {2, 1500 * time.Millisecond},
		"three processes, long sections": {3, 1500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				ctx, cancel := context.WithCancel(background)
				var working sync.WaitGroup
				for range tc.processes {
					l := s.locker()
					for range 3 {
						working.Go(func() { work(ctx, t, l, tc.section) })
					}
				}
				told := s.hear(wakeupOfK)
				chances := 0
				const sections = 20
				end := time.After(max(sections*tc.section, time.Second))
				for open := true; open; {
					select {
					case <-told:
						time.Sleep(2 * time.Millisecond)
						if !s.Exists("lock:k") {
							chances++
						}
					case <-end:
						open = false
					}
				}
				if chances < sections/4 {
					t.Errorf("it could have had the lock %d times", chances)
				}
				cancel()
				working.Wait()
			})
		})
	}
}

// A release that has to be repeated in the background lets them go first, too.
func TestOthersGetTheirTurnAfterALateRelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k")
		next := start(background, l, "k")
		time.Sleep(2 * time.Second) // it asks again, and is queued
		told := s.hear(wakeupOfK)
		s.failAll(loseRequest, release)
		wantErr(t, k.Unlock(background), core.ErrUnavailable)
		time.Sleep(30 * time.Millisecond) // by which the call has asked, and is refused
		s.heal()
		if message := <-told; message != "00" {
			t.Errorf("told %q", message)
		}
		time.Sleep(2 * time.Millisecond)
		if s.Exists("lock:k") {
			t.Error("nobody else could have the lock")
		}
		unlock(t, (<-next).lock)
	})
}

// work holds the lock for so long again and again.
func work(ctx context.Context, t *testing.T, l *core.Locker, d time.Duration) {
	for ctx.Err() == nil {
		k, err := l.Lock(ctx, "k")
		if err != nil {
			return
		}
		time.Sleep(d)
		unlock(t, k)
	}
}

// What several calls of a process do one after the other takes one release, and a renewal
// at most: who gives the lock away is in the queue again at once.
func TestProcessesTakeTurns(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		ctx, cancel := context.WithCancel(background)
		var working sync.WaitGroup
		for range 2 {
			l := s.locker()
			for range 5 {
				working.Go(func() { work(ctx, t, l, 4*time.Millisecond) })
			}
		}
		time.Sleep(time.Second)
		scripts, releases := s.scripts(), len(s.commands(release))
		time.Sleep(time.Second)
		scripts, releases = s.scripts()-scripts, len(s.commands(release))-releases
		if releases < 50 || releases > 150 || scripts > 2*releases+3 { // one in 10 ms
			t.Errorf("%d scripts for %d releases of a process", scripts, releases)
		}
		cancel()
		working.Wait()
	})
}

// A process that its release has put into the queue leaves it when its last call gives up.
func TestLastCallLeavesTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		first := take(t, background, a, "k")
		ctx, cancel := context.WithCancel(background)
		second := start(background, a, "k")
		waits(t, second)
		third, other := start(ctx, a, "k"), start(background, b, "k")
		time.Sleep(time.Millisecond)
		unlock(t, first) // passes it on
		k := (<-second).lock
		time.Sleep(20 * time.Millisecond)
		unlock(t, k) // it goes to the others
		k = (<-other).lock
		if places, _ := s.ZMembers(waitQueue); len(places) != 1 {
			t.Errorf("in the queue: %v", places)
		}
		cancel()
		<-third
		synctest.Wait()
		if places, _ := s.ZMembers(waitQueue); len(places) != 0 {
			t.Errorf("still in the queue: %v", places)
		}
		unlock(t, k)
	})
}

// Calls that chose their owner wait apart, but in the same process.
func TestCallsWithOwnersOfTheirOwnAreServed(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		k := take(t, background, s.locker(), "k")
		l := s.locker()
		calls := []<-chan outcome{
			start(background, l, "k", core.Owner("x")),
			start(background, l, "k", core.Owner("y")),
			start(background, l, "k"),
		}
		served := make(chan time.Time, len(calls))
		for _, c := range calls {
			go func() {
				o := <-c
				if o.err != nil {
					t.Error(o.err)
					return
				}
				unlock(t, o.lock)
				served <- time.Now()
			}()
		}
		time.Sleep(10 * time.Second)
		began := time.Now()
		unlock(t, k)
		for range calls {
			wantTime(t, "served", (<-served).Sub(began), 0, 2*prompt)
		}
	})
}
