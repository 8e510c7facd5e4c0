package core_test

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// A member that has refused is asked once more, and that question may arrive after the release of the lock.
// Taken out, the member has the lock for a lease, for nobody.
func TestReleaseEndsAGrantOfTheSecondQuestion(t *testing.T) {
	quorum(t, func(t *testing.T, servers []*embedded, a, _ *core.Locker) {
		servers[2].HSet("lock:k", "stranger", "1")
		servers[2].SetTTL("lock:k", time.Hour)
		for _, s := range servers[:2] {
			s.fail(acquire, lateRequest(3*time.Millisecond))
		}
		servers[2].fail(acquire, lateRequest(0), lateRequest(300*time.Millisecond)) // busy, and then late
		time.AfterFunc(2*time.Millisecond, func() { servers[2].Del("lock:k") })
		k := take(t, background, a, "k")
		time.Sleep(5 * time.Millisecond)
		unlock(t, k)
		time.Sleep(2 * time.Second)
		for i, s := range servers {
			if s.Exists("lock:k") {
				t.Errorf("member %d still has the lock, for %v", i, s.TTL("lock:k"))
			}
		}
	})
}
