//go:build go1.25

package schedule_test

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
)

// What others have written is called in order, whatever becomes of it, and ends with its goroutine.
func TestQueueCallsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q schedule.Queue
		var got []int
		for i := range 9 {
			q.Put(func() {
				got = append(got, i)
				switch i % 3 {
				case 0:
					panic(i)
				case 1:
					runtime.Goexit()
				}
				time.Sleep(time.Minute)
			}, 100)
		}
		<-q.Empty()
		if !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}) || !q.IsEmpty() {
			t.Errorf("called %v", got)
		}
	})
}

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q schedule.Queue
		goes, n := make(chan struct{}), 0
		put := func() bool { return q.Put(func() { <-goes; n++ }, 3) }
		for i := range 5 {
			if ok := put(); ok != (i < 3) {
				t.Errorf("put %d: %v", i, ok)
			}
		}
		close(goes)
		<-q.Empty()
		if n != 3 || !put() {
			t.Errorf("%d were called", n)
		}
		<-q.Empty()
	})
}
