package core_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// all returns all that was heard, with the keys.
func (o *ear) all() (lines []string) {
	settle()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.events {
		of := ""
		if e.Key != "" {
			of = " of " + e.Key
		}
		lines = append(lines, line(e)+of)
	}
	return lines
}

func TestObserversHearWhatIsCompensated(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &ear{}
		l := s.locker(core.Observe(o))
		s.failAll(loseReply, acquire)
		_, err := l.TryLock(background, "order:{7}")
		wantErr(t, err, core.ErrUnavailable)
		s.heal()
		time.Sleep(2 * time.Second)
		var got []string
		for _, e := range o.all() {
			if strings.HasPrefix(e, "compensat") {
				got = append(got, e)
			}
		}
		if len(got) < 2 || len(got)%2 != 0 || got[0] != "compensating of order:{7}" || got[len(got)-1] != "compensated of order:{7}" {
			t.Errorf("heard: %q", got)
		}
		s.isFree("order:{7}")
	})
}

// Until Redis has subscribed nobody, waiting calls poll. The log says it once, and not at each attempt.
func TestObserversHearThatCallsPoll(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &ear{}
		logged := &records{}
		l := s.locker(core.Observe(o), core.Logger(logged.logger()))
		k := take(t, background, s.locker(), "k")
		s.failAll(refuse("NOPERM"), "subscribe")
		waiting := start(background, l, "k")
		time.Sleep(10 * time.Second)
		unlock(t, k)
		unlock(t, (<-waiting).lock)
		if heard := o.all(); !slices.Contains(heard, "unheard") || logged.count("wake-ups are not heard; waiting calls poll") != 1 {
			t.Errorf("heard: %q; logged: %q", heard, logged.all())
		}
	})
}

func TestObserversHearOfGrantsThatComeLate(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &ear{}
		l := s.grantsArrive(t, func() { time.Sleep(1200 * time.Millisecond) }, core.Observe(o))
		waiting := s.granted(t, l)
		unlock(t, (<-waiting).lock)
		if heard := o.all(); !slices.Contains(heard, "grant missed") {
			t.Errorf("heard: %q", heard)
		}
	})
}
