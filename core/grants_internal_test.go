package core

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
)

// The question of a head may fail between the message of a grant and the choice of that head. The entry is given up
// then, and the hold that it had must not become a lock.
func TestEntryThatIsGivenUpBeforeTheChoice(t *testing.T) {
	unconnected(t, func(t *testing.T, l *Locker) {
		for _, givenUp := range []bool{false, true} {
			w, _ := l.queues.Join("k", "", new(want), nil)
			wait := func() waitqueue.Reason {
				return w.Wait(t.Context(), func(waitqueue.State) time.Duration { return time.Second }, time.Time{}, nil).Reason
			}
			wait() // the first one asks at once
			w.Entry(func(*want, *entry) *entry { return new(entry) })
			ended := make(chan waitqueue.Reason, 1)
			go func() { ended <- wait() }()
			synctest.Wait()
			found := l.queues.Find("k")[0]
			if givenUp {
				found.Entry.spend()
			}
			chosen := l.queues.Choose("k", found, (*entry).spend)
			if (chosen == nil) != givenUp {
				t.Errorf("given up: %v; chosen: %v", givenUp, chosen != nil)
			}
			if chosen != nil {
				chosen.Give(grant{})
			}
			<-ended
			w.Leave()
		}
	})
}
