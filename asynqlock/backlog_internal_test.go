//go:build go1.25

package asynqlock

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// However many keys are busy, a bounded number is remembered, and the busiest is
// among them.
func TestBacklogsRememberABoundedNumberOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newBacklogs()
		for i := range 20 * keysPerGeneration {
			p.nextRetry(strconv.Itoa(i))
			if i%8 == 0 {
				p.nextRetry("42")
			}
			if n := len(p.young) + len(p.old); n > 2*keysPerGeneration {
				t.Fatalf("%d keys are remembered", n)
			}
		}
		if d := time.Until(p.nextRetry("42")); d < maxRetryDelay/2 {
			t.Errorf("the busiest key is due in %v", d)
		}
		p.acquired("42")
		time.Sleep(2 * maxRetryDelay)
		if d := time.Until(p.nextRetry("42")); d >= time.Second {
			t.Errorf("after a while a key is due in %v", d)
		}
	})
}

func TestBacklogsAreSafeForConcurrentUse(t *testing.T) {
	p, began := newBacklogs(), time.Now()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 2 * keysPerGeneration {
				key := strconv.Itoa(j * (i%2 + 1))
				if due := p.nextRetry(key); due.Before(began) || time.Until(due) > maxRetryDelay {
					t.Errorf("put off until %v", due)
				}
				p.acquired(key)
			}
		})
	}
	all.Wait()
}

// queue is a key's tasks that are put off, as asynq keeps them, without what a worker's wait
// adds. It returns how many were done, and the refusals in each second.
func queue(p *backlogs, tasks int, work, during time.Duration) (done int, refusals map[int]int) {
	began := time.Now()
	due := make([]time.Time, tasks)
	free := began // when the key is
	refusals = map[int]int{}
	for time.Since(began) < during && done < tasks {
		for _, i := range rand.Perm(len(due)) {
			now := time.Now()
			switch {
			case due[i].Truncate(time.Second).After(now):
			case !free.After(now):
				p.acquired("42")
				free = now.Add(work)
				due[i] = began.Add(1000 * time.Hour)
				done++
			default:
				due[i] = p.nextRetry("42")
				refusals[int(now.Sub(began)/time.Second)]++
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return done, refusals
}

// A key that is got again and again is no reason for all to come back at once.
func TestPaceOfManyTasksWhileTheKeyIsGot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, refusals := queue(newBacklogs(), 3000, 10*time.Millisecond, time.Minute)
		for second, n := range refusals {
			// The first time round there is no way to know.
			if second > 0 && n > 250 {
				t.Errorf("%d refusals in second %d", n, second)
			}
		}
	})
}

// Where tasks take long one after the other, the many that are put off come back
// accordingly: a few for each that runs.
func TestPaceIsThatOfTheTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done, refusals := queue(newBacklogs(), 100, 10*time.Second, 10*time.Minute)
		n := 0
		for second, r := range refusals {
			if second >= 60 { // until then the pace is not known
				n += r
			}
		}
		t.Logf("%d refusals, %d tasks done", n, done)
		if n > 30*done {
			t.Errorf("%d refusals for %d tasks", n, done)
		}
		if done < 55 {
			t.Errorf("%d tasks done", done)
		}
	})
}

// While one holds the key for some seconds, those behind it are not tried all the time.
func TestPaceBehindAHolderOfSomeSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, refusals := queue(newBacklogs(), 100, time.Hour, 20*time.Second)
		n := 0
		for second, r := range refusals {
			if second >= 5 {
				n += r
			}
		}
		if n > 40*15 {
			t.Errorf("%d refusals in 15 seconds", n)
		}
	})
}
