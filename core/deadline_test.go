package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// The holder's deadline counts from before the request was sent, whatever started
// the lease: Redis began to count before the answer came.
// Taken out, a holder whose answer was slow believes in the lock for that long
// after Redis has given it to the next one. Tried, for each of the four: this test
// then fails with "two are inside".
func TestDeadlineCountsFromBeforeTheRequest(t *testing.T) {
	slow := lateReply(1500 * time.Millisecond)
	for name, begin := range map[string]func(t *testing.T, s *embedded, l *core.Locker) []*core.Lock{
		"acquisition": func(t *testing.T, s *embedded, l *core.Locker) []*core.Lock {
			s.fail(acquire, slow)
			return []*core.Lock{take(t, background, l, "k")}
		},
		"re-entry": func(t *testing.T, s *embedded, l *core.Locker) []*core.Lock {
			k := take(t, background, l, "k")
			time.Sleep(5 * time.Second)
			s.fail(acquire, slow)
			return []*core.Lock{k, take(t, k.Context(), l, "k")}
		},
		"renewal": func(t *testing.T, s *embedded, l *core.Locker) []*core.Lock {
			k := take(t, background, l, "k")
			s.fail(renew, slow) // at 10 s
			time.Sleep(15 * time.Second)
			return []*core.Lock{k}
		},
		"refresh": func(t *testing.T, s *embedded, l *core.Locker) []*core.Lock {
			k := take(t, background, l, "k")
			time.Sleep(5 * time.Second)
			s.fail(renew, slow)
			if err := k.Refresh(background); err != nil {
				t.Error(err)
			}
			return []*core.Lock{k}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b := s.locker(), s.locker()
				holds := begin(t, s, a)
				s.failAll(refuse("LOADING Redis is loading"), renew)
				o := <-start(background, b, "k")
				if o.err != nil {
					t.Fatal(o.err)
				}
				for _, k := range holds {
					if k.Context().Err() == nil {
						t.Error("two are inside")
					}
				}
				s.heal()
				unlock(t, o.lock)
				for _, k := range holds {
					wantErr(t, context.Cause(k.Context()), core.ErrLost)
					wantErr(t, k.Unlock(background), core.ErrLost)
				}
			})
		})
	}
}

// Unlock ends within one Timeout, however often it tries.
func TestUnlockOfASilentRedisTakesOneTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k")
		waiting := start(background, l, "k")
		s.failAll(hang, acquire, release)
		began := time.Now()
		wantErr(t, k.Unlock(background), core.ErrUnavailable)
		wantTime(t, "Unlock returned", time.Since(began), 0, 2*time.Second)
		s.heal()
		unlock(t, (<-waiting).lock)
	})
}
