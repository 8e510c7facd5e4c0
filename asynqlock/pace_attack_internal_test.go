package asynqlock

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// Once a key has been got again, what a long holder did to its pace is over: a task
// that then meets it busy for a moment comes back soon.
func TestPaceAfterALongHolder(t *testing.T) {
	for _, tasks := range []int{1, 5, 20, 100, 1000} {
		t.Run(strconv.Itoa(tasks), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPace()
				p.acquired("42")
				end := time.Now().Add(10 * time.Minute)
				for range tasks {
					go func() {
						for time.Now().Before(end) {
							time.Sleep(p.refused("42") + time.Second + rand.N(200*time.Millisecond))
						}
					}()
				}
				time.Sleep(time.Until(end) - time.Second)
				p.acquired("42") // the holder is gone
				var worst time.Duration
				for range 5 {
					time.Sleep(10 * time.Millisecond) // busy for 10 ms only
					worst = max(worst, p.refused("42"))
					p.acquired("42")
				}
				if worst > time.Second {
					t.Errorf("%d parked tasks: a task is put off for %v because of a key that has been busy for 10 ms", tasks, worst)
				}
				time.Sleep(3 * time.Minute)
			})
		})
	}
}
