//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// Nobody renews a lock after Close, so a handover that ends later does not bring it back.
func TestCloseDuringHandover(t *testing.T) {
	errJob := errors.New("no")
	for what, tc := range map[string]struct {
		fault fault         // of the request
		job   time.Duration // how long it takes to start it
		fails error
		ended time.Duration // Handover, after Close has begun
		free  time.Duration // the lock
	}{
		"a slow job fails":                   {job: 1500 * time.Millisecond, fails: errJob, ended: 1500 * time.Millisecond, free: 1500 * time.Millisecond},
		"a job fails when Close has ended":   {job: time.Minute, fails: errJob, ended: time.Minute, free: time.Minute},
		"Redis is silent":                    {fault: hang, ended: 2 * time.Second, free: time.Second},
		"its answer is lost":                 {fault: lateReply(10 * time.Second), ended: 2 * time.Second, free: 2 * time.Second},
		"a slow job is started":              {job: 1500 * time.Millisecond, ended: 1500 * time.Millisecond, free: 2 * time.Minute},
		"a job is started after Close ended": {job: time.Minute, ended: time.Minute, free: 2 * time.Minute},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l, other := s.open(), s.locker()
				k := take(t, background, l, "k")
				if tc.fault != nil {
					s.fail("hand_over", tc.fault)
				}
				began := time.Now()
				var handover error
				var took time.Duration
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					handover = adapter.Handover(background, k, "job", 2*time.Minute, func() error { time.Sleep(tc.job); return tc.fails })
					took = time.Since(began)
				}()
				synctest.Wait()
				free := start(background, other, "k")
				wantErr(t, l.Close(within(time.Second)), context.DeadlineExceeded)
				wantErr(t, context.Cause(k.Context()), core.ErrClosed)
				wantTime(t, "Close returned", time.Since(began), time.Second, 3*time.Second)
				<-ended
				wantTime(t, "Handover ended", took, tc.ended, tc.ended+100*time.Millisecond)
				if tc.fault == nil && tc.fails == nil {
					if err := errors.Join(handover, k.Unlock(background)); err != nil {
						t.Error(err)
					}
				} else {
					wantErr(t, handover, core.ErrClosed)
					wantErr(t, k.Unlock(background), core.ErrClosed)
				}
				o := <-free
				wantTime(t, "the next one has it", o.took, tc.free, tc.free+time.Second)
				unlock(t, o.lock)
			})
		})
	}
}

// A lock that was handed over is in nobody's way, although Close was faster: whoever has the ticket gets it, and what
// has handed it over has succeeded.
func TestHandoverThatCloseOvertakes(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.open()
		var ticket string
		done := make(chan error, 1)
		s.fail("hand_over", lateReply(1500*time.Millisecond))
		go func() {
			done <- l.Do(background, "k", func(ctx context.Context) (err error) {
				k, _ := core.FromContext(ctx)
				ticket, err = k.Handover(background, time.Minute)
				wantErr(t, context.Cause(ctx), core.ErrClosed)
				return err
			})
		}()
		synctest.Wait()
		wantErr(t, l.Close(within(time.Second)), context.DeadlineExceeded)
		wantErr(t, <-done)
		k, err := s.locker().Resume(background, "k", ticket)
		wantErr(t, err)
		unlock(t, k)
	})
}

// Whether an inner handle is open, and that none is, is decided once.
func TestHandoverBesideUnlockOfAnInnerHandle(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a := s.locker()
		for range 100 {
			outer := take(t, background, a, "k")
			inner := take(t, outer.Context(), a, "k")
			waiting := start(background, a, "k")
			time.Sleep(time.Millisecond) // or the lock is not passed on to it
			var unlocked atomic.Bool
			go func() {
				unlock(t, inner)
				unlocked.Store(true)
			}()
			for {
				last := unlocked.Load()
				ticket, err := outer.Handover(background, time.Minute)
				if err == nil {
					resumed, err := a.Resume(background, "k", ticket)
					if err != nil {
						t.Fatal(err)
					}
					unlock(t, resumed)
					break
				}
				wantErr(t, err, core.ErrNotHeld)
				if last {
					t.Errorf("the outer handle is alone, and: %v", err)
					_ = outer.Unlock(background)
					_ = (<-waiting).lock.Unlock(background)
					return
				}
			}
			unlock(t, (<-waiting).lock)
		}
	})
}

// A lock that is parked for longer than its lease lasted is held as before.
func TestHandoverIsTakenBackAfterTheLease(t *testing.T) {
	for what, opts := range map[string][]core.Option{"renewed": nil, "held for long": {core.MaxHold(time.Hour)}} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				k := take(t, background, s.locker(), "k", opts...)
				why := errors.New("no")
				wantErr(t, adapter.Handover(background, k, "job", time.Hour, func() error { time.Sleep(3 * lease); return why }), why)
				time.Sleep(3 * lease)
				if k.Context().Err() != nil {
					t.Fatalf("the lock is gone: %v", context.Cause(k.Context()))
				}
				unlock(t, k)
			})
		})
	}
}

// What is sent again counts once: the time runs from the first copy. Nobody else has the lock before
// its holder is told.
func TestHandoverThatIsSentAgainLastsFromTheFirstCopy(t *testing.T) {
	brokenLater := func(s *embedded, p *peer, cmd string, args []string) bool {
		s.pass(nowhere(), cmd, args)
		time.Sleep(time.Second)
		p.Close()
		return true
	}
	for what, tc := range map[string]struct {
		faults []fault // of hand_over
		ttl    time.Duration
		job    time.Duration
	}{
		"parked":                   {[]fault{brokenLater}, 5 * time.Second, time.Minute},
		"taken back":               {[]fault{lateReply(0), lateReply(10 * time.Second)}, 20 * time.Second, 0},
		"taken back, never parked": {[]fault{hang}, 20 * time.Second, 0},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				k := take(t, background, s.locker(), "k")
				next := start(background, s.locker(), "k")
				time.Sleep(lease/3 - time.Second)
				s.fail("hand_over", tc.faults...)
				told := make(chan time.Time, 1)
				go func() {
					when, _ := endOf(k.Context())
					told <- when
				}()
				go func() {
					_ = adapter.Handover(background, k, "job", tc.ttl, func() error { time.Sleep(tc.job); return errors.New("no") })
				}()
				s.failAll(hang, renew)
				o := <-next
				had := time.Now()
				synctest.Wait() // both may happen at one instant
				if len(told) == 0 || (<-told).After(had) {
					t.Error("somebody else has the lock, and its holder was not told")
				}
				unlock(t, o.lock)
				s.heal()
				time.Sleep(2 * time.Minute)
			})
		})
	}
}
