//go:build go1.25

package watermilllock_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/latchkey-go/latchkey/adapters/watermilllock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/locktest"
)

// handlers is how many there are of the topic "orders". Each has a GoChannel of its own, which sends one message at a time. Others would
// wait for a mutex there, which stops the clock of a bubble: so a test publishes one.
const handlers = 10

// start runs a Router.
func start(t *testing.T, m message.HandlerMiddleware, handle message.NoPublishHandlerFunc) (publish func()) {
	t.Helper()
	logger := watermill.NopLogger{}
	var channels []*gochannel.GoChannel
	router, err := message.NewRouter(message.RouterConfig{}, logger)
	if err != nil {
		t.Fatal(err)
	}
	router.AddMiddleware(m)
	for i := range handlers {
		channels = append(channels, gochannel.NewGoChannel(gochannel.Config{}, logger))
		router.AddNoPublisherHandler(strconv.Itoa(i), "orders", channels[i], handle)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- router.Run(context.Background()) }()
	<-router.Running()
	t.Cleanup(func() {
		if err := router.Close(); err != nil {
			t.Error(err)
		}
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	return func() {
		for _, c := range channels {
			if err := c.Publish("orders", newMessage()); err != nil {
				t.Error(err)
			}
		}
	}
}

// All handlers get a message of the key: one of them runs at a time, and all run.
func TestRouterRunsOneMessageOfAKeyAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		var running, most, runs atomic.Int64
		publish := start(t, watermilllock.With(locker).ByTemplate("{type}:{payload.orderID}"), func(m *message.Message) error {
			if lock, _ := core.FromContext(m.Context()); lock.Key() != "orders:42" {
				t.Errorf("the key is %q", lock.Key())
			}
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(4 * time.Second) // some wait longer than 5 s, and come again
			running.Add(-1)
			runs.Add(1)
			return nil
		})
		publish()
		time.Sleep(5 * time.Minute)
		if runs.Load() != handlers || most.Load() != 1 {
			t.Errorf("%d runs of %d, %d at once", runs.Load(), handlers, most.Load())
		}
	})
}

// A message that was refused comes again, at the pace of its waits, and runs when the key is free.
func TestRouterNacksWhatHasWaitedInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := &refusals{}
		locker := locktest.New(t, core.Observe(refused))
		var runs atomic.Int64
		publish := start(t, watermilllock.With(locker).ByPayload("orderID"), func(*message.Message) error { runs.Add(1); return nil })
		release := locktest.Hold(t, locker, key)
		publish()
		time.Sleep(time.Minute + time.Second)
		refused.mu.Lock()
		if n := len(refused.names); runs.Load() != 0 || n < 11*handlers || n > 12*handlers { // 12 in a minute, of each
			t.Errorf("%d runs, refused %d times", runs.Load(), n)
		}
		refused.mu.Unlock()
		release()
		time.Sleep(time.Second)
		if runs.Load() != handlers {
			t.Errorf("%d runs", runs.Load())
		}
	})
}

// A message that waits for its lock does not hinder a Router that is closed.
func TestRouterClosesWhileMessagesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		release := locktest.Hold(t, locker, key)
		t.Cleanup(release)
		var began time.Time
		t.Cleanup(func() {
			if took := time.Since(began); took > time.Second {
				t.Errorf("it has taken %v", took)
			}
		})
		publish := start(t, watermilllock.With(locker, core.Wait(time.Hour)).ByPayload("orderID"), func(*message.Message) error {
			t.Error("the handler has run")
			return nil
		})
		publish()
		time.Sleep(time.Minute)
		began = time.Now()
	})
}
