package core_test

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// A wait that is over ends, although there is reason to ask once more.
// Taken out, the call asks a silent Redis again and again, for Timeout each.
func TestWaitThatIsOverEndsInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.locker(), s.locker()
		k := take(t, background, other, "k")
		longest := time.Duration(0)
		for range 12 {
			waiting := start(background, l, "k", core.Wait(time.Second))
			waits(t, waiting)
			time.Sleep(200 * time.Millisecond)
			s.failAll(hang, acquire)
			stop := make(chan struct{})
			woken := make(chan struct{})
			go func() {
				defer close(woken)
				for {
					select {
					case <-stop:
						return
					case <-time.After(100 * time.Millisecond):
						s.Publish("redisson_lock__channel:{lock:k}", "0")
					}
				}
			}()
			o := <-waiting
			longest = max(longest, o.took)
			close(stop)
			<-woken
			s.heal()
			time.Sleep(10 * time.Second)
		}
		wantTime(t, "Lock with a wait of 1s returned", longest, time.Second, 3*time.Second+prompt)
		unlock(t, k)
	})
}
