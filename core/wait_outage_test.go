package core_test

import (
	"context"
	"fmt"
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

// A wait that ends while Redis fails says so: nobody knows whether the lock is busy. One
// failure just before the end says nothing.
func TestWaitThatEndsWhileRedisFailsIsUnavailable(t *testing.T) {
	for name, fail := range map[string]func(s *embedded){
		"connections are refused": (*embedded).outage,
		"no answer":               func(s *embedded) { s.failAll(hang, acquire) },
		"errors":                  func(s *embedded) { s.failAll(refuse("LOADING Redis is loading"), acquire) },
	} {
		for at, want := range map[time.Duration]error{time.Second: core.ErrUnavailable, 2700 * time.Millisecond: core.ErrNotAcquired} {
			t.Run(fmt.Sprintf("%s for the last %v", name, 3*time.Second-at), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					l, other := s.locker(), s.locker()
					k := take(t, background, other, "k")
					head := start(background, l, "k", core.Wait(3*time.Second))
					behind := start(background, l, "k", core.Wait(3*time.Second))
					impatient := start(within(3*time.Second), l, "k")
					cancelled, cancel := context.WithCancelCause(background)
					gone := start(cancelled, l, "k")
					time.Sleep(at)
					fail(s)
					time.Sleep(3*time.Second - at)
					cancel(errEnough)
					o := <-head // which may have asked last just before the end, and waits for that
					if want == core.ErrUnavailable || o.took < 3500*time.Millisecond {
						wantErr(t, o.err, want)
					}
					wantErr(t, (<-behind).err, want)
					wantErr(t, (<-impatient).err, want, context.DeadlineExceeded)
					wantErr(t, (<-gone).err, core.ErrNotAcquired, errEnough)
					s.heal()
					time.Sleep(5 * time.Second)
					unlock(t, k)
				})
			})
		}
	}
}

// The deadline of the only call that waits may end while it asks, and between.
func TestDeadlineOfTheHeadWhileRedisFails(t *testing.T) {
	for name, fail := range map[string]fault{"while it asks": hang, "between": refuse("LOADING Redis is loading")} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l, other := s.locker(), s.locker()
				k := take(t, background, other, "k")
				waiting := start(within(3*time.Second), l, "k")
				s.failAll(fail, acquire)
				wantErr(t, (<-waiting).err, core.ErrUnavailable, context.DeadlineExceeded)
				s.heal()
				time.Sleep(5 * time.Second)
				unlock(t, k)
			})
		})
	}
}
