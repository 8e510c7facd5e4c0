package core_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// outages are failures of a whole server.
var outages = map[string]func(*embedded){
	"unreachable":   (*embedded).outage,
	"server errors": func(s *embedded) { s.failAll(refuse("MISCONF Redis cannot save"), acquire) },
	"loading":       func(s *embedded) { s.failAll(refuse("LOADING Redis is loading"), acquire) },
	"silent":        func(s *embedded) { s.failAll(hang, acquire) },
}

func TestFreshCallFailsAtOnceInAnOutage(t *testing.T) {
	for name, hurt := range outages {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				hurt(s)
				began := time.Now()
				_, err := l.Lock(background, "k", core.Wait(time.Hour))
				wantErr(t, err, core.ErrUnavailable)
				wantNot(t, err, core.ErrNotAcquired)
				limit := time.Duration(0)
				switch name {
				case "unreachable":
					limit = 2 * 500 * time.Millisecond // go-redis dials five times, and we send twice
				case "silent", "loading":
					limit = 2 * time.Second
				}
				wantTime(t, "failed", time.Since(began), 0, limit)
				s.heal()
			})
		})
	}
}

func TestTheCauseOfAnOutageIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		s.fail(acquire, refuse("NOPERM this user has no permissions"))
		_, err := l.Lock(background, "k")
		var answer redis.Error
		if !errors.As(err, &answer) || !redis.HasErrorPrefix(err, "NOPERM") {
			t.Errorf("error %v does not keep what Redis answered", err)
		}
		s.outage()
		_, err = s.locker().Lock(background, "k")
		wantErr(t, err, core.ErrUnavailable, errDown)
		s.heal()

		holder := take(t, background, l, "k")
		late, cancel := context.WithTimeout(background, 3*time.Second)
		defer cancel()
		waiting := []<-chan outcome{start(late, l, "k")}
		for range 2 {
			waiting = append(waiting, start(background, l, "k", core.Wait(3*time.Second)))
		}
		time.Sleep(500 * time.Millisecond)
		s.failAll(refuse("NOREPLICAS Not enough good replicas to write."), acquire)
		for _, w := range waiting {
			o := <-w
			wantErr(t, o.err, core.ErrUnavailable)
			if !redis.HasErrorPrefix(o.err, "NOREPLICAS") {
				t.Errorf("error %v of a call that has waited does not keep what Redis answered", core.Detail(o.err))
			}
		}
		s.heal()
		unlock(t, holder)
	})
}

// A dial that failed surely sent nothing: it is tried once more.
func TestWhatNeverLeftIsSentOnceMore(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		s.outage()
		go func() {
			time.Sleep(600 * time.Millisecond) // go-redis gives up after 400 to 500 ms
			s.heal()
		}()
		unlock(t, take(t, background, l, "k"))
	})
}

func TestWaitingCallOutlivesABlip(t *testing.T) {
	for name, hurt := range outages {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b := s.locker(), s.locker()
				holder := take(t, background, a, "k")
				head, behind := start(background, b, "k"), start(background, b, "k")
				time.Sleep(3 * time.Second)
				hurt(s)
				time.Sleep(3500 * time.Millisecond)
				s.heal()
				time.Sleep(5 * time.Second)
				waits(t, head)
				waits(t, behind)
				unlock(t, holder)
				o := <-head
				if o.err != nil {
					t.Fatal(o.err)
				}
				wantTime(t, "woken", o.took, 11500*time.Millisecond, 12500*time.Millisecond)
				unlock(t, o.lock)
				unlock(t, (<-behind).lock)
				time.Sleep(3 * time.Second)
				s.isFree("k")
			})
		})
	}
}

func TestWaitingCallsGiveUpAfterFiveSecondsOfSilence(t *testing.T) {
	for name, hurt := range outages {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b := s.locker(), s.locker()
				holder := take(t, background, a, "k")
				head, behind := start(background, b, "k"), start(background, b, "k")
				time.Sleep(10 * time.Second)
				hurt(s)
				for _, w := range []<-chan outcome{head, behind} {
					o := <-w
					wantErr(t, o.err, core.ErrUnavailable)
					wantNot(t, o.err, core.ErrNotAcquired)
					// One poll until the silence is noticed, one exchange beyond it; where Redis refuses, another of the next call.
					wantTime(t, "gave up", o.took, 15*time.Second, 20*time.Second)
				}
				s.heal()
				time.Sleep(time.Second)
				unlock(t, holder)
			})
		})
	}
}

func TestWaitEndsInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		holder := take(t, background, a, "k")
		ctx, cancel := context.WithCancelCause(background)
		w := start(ctx, b, "k")
		time.Sleep(2 * time.Second)
		s.failAll(hang, acquire)
		time.Sleep(2500 * time.Millisecond)
		cancel(errEnough)
		o := <-w
		wantErr(t, o.err, core.ErrNotAcquired, context.Canceled, errEnough)
		wantTime(t, "returned", o.took, 4500*time.Millisecond, 4500*time.Millisecond)
		s.heal()
		unlock(t, holder)
		time.Sleep(3 * time.Second)
		s.isFree("k")
	})
}

// The reply that brings the lock to a waiting call gets lost.
func TestInvariant3WaitingCallWhoseReplyIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		holder := take(t, background, a, "k")
		w := start(background, b, "k")
		time.Sleep(time.Second)
		s.fail(acquire, loseReply)
		unlock(t, holder)
		o := <-w
		if o.err != nil {
			t.Fatal(o.err)
		}
		wantTime(t, "served", o.took, time.Second, 2*time.Second)
		if got := s.held("k"); got != o.lock.Owner()+"=1" {
			t.Errorf("Redis shows %q", got)
		}
		unlock(t, o.lock)
		s.isFree("k")
	})
}

// A release that was done, and whose copies Redis refuses until they end, is no loss.
func TestUnlockOfWhichCopiesAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.open(core.Timeout(time.Second))
		k := take(t, background, l, "k")
		s.fail("release", loseReply)
		s.fail("release", slices.Repeat([]fault{refuse("BUSY Redis is busy running a script")}, 5)...)
		unlock(t, k)
		wantErr(t, l.Close(background))
	})
}

// An answer that took longer than the lease brings nothing.
// Taken out, Lock returns a lock that is over in Redis, and another may be inside.
// Tried: this test then fails with "error is <nil>; want … redis unavailable".
func TestInvariant1AnswerOlderThanTheLeaseIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Timeout(10 * time.Second))
		s.fail(acquire, lateReply(2*time.Second))
		_, err := l.Lock(background, "k", core.Lease(time.Second))
		wantErr(t, err, core.ErrUnavailable)
		time.Sleep(time.Second)
		s.isFree("k")
	})
}
