//go:build go1.25

package acquire

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
)

// onLookup is the hash of a ring, which go-redis asks for the server of a channel.
type onLookup func()

func (f onLookup) Get(string) string { f(); return "one" }

// A release that subscribes because calls wait, while the last of them leaves, leaves no subscription behind.
func TestReleaseKeepsNoSubscriptionForCallsThatHaveLeft(t *testing.T) {
	for name, leavesMeanwhile := range map[string]bool{"they leave later": false, "they leave meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			lookedUp := func() {}
			ring := func() redis.UniversalClient {
				return redis.NewRing(&redis.RingOptions{
					Addrs: map[string]string{"one": "127.0.0.1:1"}, HeartbeatFrequency: time.Hour,
					NewConsistentHash: func([]string) redis.ConsistentHash { return onLookup(func() { lookedUp() }) },
				})
			}
			by(t, ring, func(t *testing.T, a *Acquirer) {
				name := store.NewName("lock:", "k")
				h, err := lease.New(t.Context(), &a.Registry, lease.AcquiredLock{
					Acquisition: lease.Acquisition{Name: name, Owner: "k"}, Times: life.Times{Ends: schedule.Now().Add(time.Hour)},
				}, lease.Conditions{})
				if err != nil {
					t.Fatal(err)
				}
				c := &call{acquirer: a, spec: specOf(t.Context(), name, usual)}
				w, _ := a.queues.Join(name.Lock(), "", &c.spec, nil)
				q := queuedCall{call: c, waiter: w}
				leave := func() { q.leaveQueue(w.Took(waitqueue.Taken{Until: time.Now()})) }
				if leavesMeanwhile {
					lookedUp = func() { lookedUp = func() {}; leave() }
				}
				left, _, _ := h.Leave()
				r := release{acquirer: a, Departure: left, command: left.ReleaseCommand(store.Done)}
				outcome := r.confirm(t.Context(), store.Released{Found: true, Heard: 1}, nil)
				if err := left.Retire(outcome); err != nil {
					t.Error(err)
				}
				if !leavesMeanwhile {
					leave()
				}
				time.Sleep(10 * time.Minute)
				select {
				case <-a.subscribers.Stop():
				default:
					t.Error("there is a subscription, and nobody waits")
				}
			})
		})
	}
}
