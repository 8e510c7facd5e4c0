package core_test

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// isMade checks that who asks from elsewhere does not get to make the attempt that is being made.
func isMade(t *testing.T, elsewhere *core.Locker) {
	t.Helper()
	for _, refuseUnknown := range []bool{false, true} {
		_, err := elsewhere.TryLock(background, "k", adapter.Attempt(request, kept, refuseUnknown))
		if busy := wantBusy(t, err); busy.Done {
			t.Errorf("done: %v", busy)
		}
	}
}

// aws-powertools/powertools-lambda-python#8386: a call that had no deadline of its own was taken for an orphan while it ran,
// and a second one ran beside it. Here the lease is renewed for as long as the work lasts, whether or not it has a deadline.
func TestPowertoolsPython8386LiveAttemptTakenForAnOrphan(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		k := attempts(t, a, 1, core.Lease(10*time.Minute))
		for range 30 {
			time.Sleep(kept / 10) // three times as long as an answer is kept
			isMade(t, b)
		}
		answer(t, k, "paid")
		wantAnswer(t, b, "paid")
	})
}

// aws-powertools/powertools-lambda-typescript#5678: a record that said nothing of its end was taken over at once by a second
// instance, whose result replaced it. Here an attempt is live until its lease is over, also when nothing is heard of it meanwhile.
func TestPowertoolsTypeScript5678LiveAttemptTakenForAnOrphan(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		k := attempts(t, a, 1)
		time.Sleep(lease/3 + time.Second) // it has been renewed
		s.outage()
		time.Sleep(lease*2/3 + time.Second)
		s.heal()
		isMade(t, b)
		time.Sleep(time.Second) // the renewal has arrived
		isMade(t, b)
		answer(t, k, "of the first")
		wantAnswer(t, b, "of the first")
	})
}
