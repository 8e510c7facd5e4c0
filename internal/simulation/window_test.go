package simulation

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/checker"
)

// Redis counts a dedup window in whole milliseconds of its clock, so that it may end up
// to one too early, and no more.
func TestWorkDoneAgainInADedupWindowIsFound(t *testing.T) {
	at := func(token int64, d time.Duration) visit {
		v := visit{Visit: checker.Visit{Key: "k", Token: token, Outcome: checker.Confirmed}}
		v.Called, v.Returned = int64(time.Second+d), int64(time.Second+d)
		return v
	}
	first := at(1, 0)
	first.Kept, first.Window = true, 3*time.Millisecond
	for after, repeated := range map[time.Duration]bool{
		1900 * time.Microsecond: true,
		2100 * time.Microsecond: false,
	} {
		v := verdict{}
		v.repeated(&cycle{visits: []visit{first, at(2, after)}})
		if found := len(v.found) > 0; found != repeated {
			t.Errorf("done again %v after the first time, with a window of %v: %q", after, first.Window, v.found)
		}
	}
}
