package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// A fixed lease ends at the moment at which a re-entry is answered. Either comes first.
// Taken out, the race detector finds that what is known of the re-entry's copies is read without the lock.
func TestFixedLeaseEndsWhenAReentryIsAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Timeout(time.Minute))
		for i := range 30 {
			key := fmt.Sprint(i)
			outer := take(t, background, l, key, core.FixedLease(time.Second))
			s.fail(acquire, lateReply(990*time.Millisecond)) // the local deadline
			done := start(context.WithoutCancel(outer.Context()), l, key)
			wantErr(t, (<-done).err, core.ErrLost)
			wantErr(t, outer.Unlock(background), core.ErrLost)
		}
	})
}
