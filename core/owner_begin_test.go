package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

func TestOwnerBeginNamesAndLetsNobodyEnter(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(core.KeepFor(time.Minute)), s.locker()
		job := adapter.OwnerBegin("job:")
		first := take(t, background, a, "k", job)
		if !strings.HasPrefix(first.Owner(), "job:") || s.held("k") != first.Owner()+"=1" {
			t.Errorf("owner %s; Redis shows %s", first.Owner(), s.held("k"))
		}
		if processOf(t, first.Owner()) != a.Snapshot().Process {
			t.Errorf("%s tells another process", first.Owner())
		}
		for _, l := range []*core.Locker{a, b} {
			_, err := l.TryLock(background, "k", job)
			wantBusy(t, err)
		}
		inner := take(t, first.Context(), a, "k", adapter.OwnerBegin("other:"))
		if inner.Owner() != first.Owner() {
			t.Errorf("a re-entry has the owner %s", inner.Owner())
		}
		unlock(t, inner, first)
		inWindow(t, b, "k", time.Minute)
	})
}

// Whoever gets the lock next, from a release of another process, is shown by its own name.
func TestOwnerBeginOfACallThatWaits(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		k := take(t, background, a, "k")
		waiting := start(background, b, "k", adapter.OwnerBegin("job:"))
		unlock(t, k)
		o := <-waiting
		if o.err != nil || !strings.HasPrefix(s.held("k"), "job:") {
			t.Fatalf("%v; Redis shows %s", o.err, s.held("k"))
		}
		unlock(t, o.lock)
	})
}
