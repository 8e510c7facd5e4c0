//go:build go1.25

package core_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// channelOfAWaitingCall is that of the process of the one call that waits for the lock.
func (s *embedded) channelOfAWaitingCall() string {
	for _, channel := range s.PubSubChannels("") {
		if strings.HasPrefix(channel, wakeupOfK+":") {
			return channel
		}
	}
	s.tb.Fatal("nobody waits")
	return ""
}

// Whoever may publish, has heard a real grant and knows who had the lock, makes up others: none
// starts a call beside the holder, or costs a command.
// Taken out (holds that are counted, a grant that names the hold itself), two are inside.
func TestInvariant1ForgedGrantStartsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, a := s.locker(), s.locker()
		k := take(t, background, a, "k")
		waiting := start(background, l, "k")
		waits(t, waiting)
		own := s.channelOfAWaitingCall()
		grants := s.hear(own)
		time.Sleep(time.Second)
		unlock(t, k)
		before := (<-waiting).lock
		heard, owner := strings.Fields(<-grants)[0], before.Owner() // as the lock page shows it
		unlock(t, before)

		k = take(t, background, a, "k")
		waiting = start(background, l, "k")
		waits(t, waiting)
		asked := s.scripts()
		process, number, _ := strings.Cut(owner, ":")
		used, _ := strconv.Atoi(number)
		guesses := []string{heard, redistest.Digest(heard), redistest.Digest(owner)}
		for i := range 20 {
			next := fmt.Sprint(process, ":", used+i)
			guesses = append(guesses, next, redistest.Digest(next))
		}
		for _, guess := range guesses {
			now := time.Now().UnixMicro()
			s.Publish(own, fmt.Sprint(guess, " ", now, " ", now))
		}
		waits(t, waiting)
		if n := s.scripts() - asked; n > 0 {
			t.Errorf("%d commands", n)
		}
		if err := k.Context().Err(); err != nil {
			t.Error(err)
		}
		unlock(t, k)
		isServed(t, "the call that waits", waiting, prompt)
	})
}

// Messages that mean nothing, or not for this process, cost no command, and one that says
// that the lock is open one, after the time in which others go first, however often.
func TestFloodOfMessages(t *testing.T) {
	const many = 500
	for text, commands := range map[string]int{
		"junk":                               0,
		strings.Repeat("a ", 1<<10):          0,
		redistest.Digest("x:1") + " 700 700": 0,
		"00":                                 0,
		"open":                               5,
	} {
		t.Run(fmt.Sprintf("%.20s", text), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				k := take(t, background, s.locker(), "k", core.Lease(time.Hour))
				waiting := start(background, s.locker(), "k")
				waits(t, waiting)
				own := s.channelOfAWaitingCall()
				asked := s.scripts()
				goroutines := blockedIn(ofCore...)
				for range many {
					s.Publish(own, text)
				}
				synctest.Wait()
				if n := blockedIn(ofCore...); n > goroutines {
					t.Errorf("%d goroutines, before %d", n, goroutines)
				}
				time.Sleep(10 * time.Millisecond)
				if n := s.scripts() - asked; n > commands {
					t.Errorf("%d commands, want %d at most", n, commands)
				}
				unlock(t, k)
				isServed(t, "the call that waits", waiting, prompt)
			})
		})
	}
}
