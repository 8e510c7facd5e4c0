//go:build go1.25

package asynqlock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/core"
)

// A job that finds its key locked is done once the key is free, though it has come back
// to the lock again and again: nothing is lost at the lock, and nothing counts as a failure
// (laravel/framework 60042).
func TestNoJobIsLostAtALock(t *testing.T) {
	for name, parks := range map[string]bool{"put off": false, "parked": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t, 10*time.Millisecond)
				defer s.close()
				for range 2 {
					config := s.config(s.locker())
					if !parks {
						config.Inspector, config.Workers, config.TaskCheckInterval = nil, 0, 0
					}
					s.start(10, asynqlock.New(config)(s))
				}
				release := s.holds(s.locker(), "42")
				s.enqueues(8, "42", asynq.MaxRetry(1), asynq.Timeout(30*time.Second))
				time.Sleep(70 * time.Second)
				release()
				s.wantDone(8, time.Minute)
				if info, err := s.inspector.GetQueueInfo("default"); err != nil || info.Archived+info.Retry+info.Pending > 0 {
					t.Errorf("in the queue: %+v (%v)", info, err)
				}
			})
		})
	}
}

// The permits of a worker that died are free when their leases are over, all of them, and no more
// (rails/solid_queue 597).
func TestNoPermitLeaksWhenAWorkerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, time.Second)
		defer s.close()
		client := s.dial()
		defer client.Close()
		var dead atomic.Bool
		client.AddHook(blindness{&dead})
		locker, err := core.New(client)
		if err != nil {
			t.Fatal(err)
		}
		defer locker.Close(background)
		var worker sync.WaitGroup
		defer worker.Wait()
		began := make(chan bool)
		for range 2 {
			worker.Go(func() {
				_ = asynqlock.ByPayload("order_id", asynqlock.Locker(locker), core.Permits(2))(does(func(ctx context.Context) error {
					began <- true
					<-ctx.Done()
					return nil
				})).ProcessTask(background, order("42"))
			})
		}
		<-began
		<-began
		dead.Store(true)
		defer dead.Store(false)

		s.open(10, core.Permits(2))
		s.enqueues(6, "42")
		time.Sleep(20 * time.Second)
		if n := s.done(); n > 0 {
			t.Errorf("%d tasks have run beside two others", n)
		}
		s.wantDone(6, 25*time.Second)
		if s.most != 2 {
			t.Errorf("%d tasks at once, want 2", s.most)
		}
	})
}
