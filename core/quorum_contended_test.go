package core_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// onTheNetwork delays a command as a network does.
func onTheNetwork(*embedded, *peer, string, []string) bool {
	time.Sleep(200*time.Microsecond + rand.N(400*time.Microsecond))
	return false
}

// everyScript is all that a Locker asks of a member, write_token included.
var everyScript = []string{acquire, release, renew, inspect, force, ""}

// Calls that compete for a key come apart although the third vote never comes: who has
// one vote and one refusal does not wait for it.
// Taken out, two calls keep one vote each for the time-out, again and again. Tried:
// this test then fails with "… grants took …".
func TestQuorumContendersDoNotWaitForAMemberThatIsAway(t *testing.T) {
	for name, away := range map[string]func(*embedded){
		"silent":  func(s *embedded) { s.failAll(hang, everyScript...) },
		"nothing": func(*embedded) {},
		"dead":    func(s *embedded) { s.outage() },
	} {
		t.Run(name, func(t *testing.T) {
			quorum(t, func(t *testing.T, servers []*embedded, a, b *core.Locker) {
				for _, s := range servers {
					s.failAll(onTheNetwork, everyScript...)
				}
				away(servers[2])
				lockers := []*core.Locker{a, b}
				const each = 25
				var longest time.Duration
				var crowd sync.WaitGroup
				began := time.Now()
				for i := range 8 {
					crowd.Go(func() {
						for range each {
							asked := time.Now()
							k, err := lockers[i%2].Lock(background, "k")
							if err != nil {
								t.Error(err)
								return
							}
							longest = max(longest, time.Since(asked)) // under the lock
							unlock(t, k)
						}
					})
				}
				crowd.Wait()
				took := time.Since(began)
				t.Logf("%d grants took %v, %.0f a second; the longest wait was %v",
					8*each, took, 8*each/took.Seconds(), longest)
				servers[2].heal()
				_, _ = a.Close(background), b.Close(background)
				time.Sleep(2 * time.Second) // go-redis looks once a second whether it can dial again
			})
		})
	}
}
