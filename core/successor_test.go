package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// release.lua ends only the hold that it is sent for. The release of a holder whose
// lease is over may be under way when the next one is inside already.
// Taken out, that late release frees the successor's lock, and a third is inside
// with him. Tried: this test then fails with "two are inside".
func TestLateReleaseLeavesTheSuccessorsLockAlone(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, c := s.locker(), s.locker(), s.locker()
		k := take(t, background, a, "k")
		waiting := start(background, b, "k")
		s.failAll(refuse("LOADING Redis is loading"), renew)
		s.failAll(lateRequest(2*time.Second), release)
		_, cause := endOf(k.Context()) // and its release is on its way
		wantErr(t, cause, core.ErrLost)
		successor := (<-waiting).lock
		s.heal()
		time.Sleep(5 * time.Second) // it has arrived
		if third, err := c.TryLock(background, "k"); err == nil {
			t.Error("two are inside")
			unlock(t, third)
		}
		if err := context.Cause(successor.Context()); err != nil {
			t.Errorf("the successor lost it: %v", err)
		}
		_ = successor.Unlock(background)
		wantErr(t, k.Unlock(background), core.ErrLost)
	})
}
