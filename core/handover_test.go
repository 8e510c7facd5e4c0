//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

func parkedBy(t *testing.T, k *core.Lock, ttl time.Duration) string {
	t.Helper()
	ticket, err := k.Handover(background, ttl)
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, context.Cause(k.Context()), core.ErrHandedOver)
	unlock(t, k)
	return ticket
}

// A lock goes from one process to another, and nobody comes between.
func TestHandover(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, c := s.locker(), s.locker(), s.locker()
		k := take(t, background, a, "k")
		waiting := start(background, c, "k")
		ticket := parkedBy(t, k, time.Minute)
		wantErr(t, k.Abort(background))
		time.Sleep(30 * time.Second)
		waits(t, waiting)

		_, err := b.Resume(background, "k", "another ticket")
		wantErr(t, err, core.ErrTicket)
		resumed, err := b.Resume(background, "k", ticket)
		if err != nil {
			t.Fatal(err)
		}
		if resumed.Token() <= k.Token() {
			t.Errorf("token %d after %d", resumed.Token(), k.Token())
		}
		_, err = c.Resume(background, "k", ticket)
		wantBusy(t, err)
		time.Sleep(2 * time.Minute) // it is renewed
		waits(t, waiting)
		inner := take(t, resumed.Context(), b, "k")
		if n, err := resumed.Count(background); n != 2 || err != nil {
			t.Errorf("%d holds, %v", n, err)
		}
		unlock(t, inner)
		_, err = resumed.Handover(background, time.Minute)
		wantErr(t, err, core.ErrNotHeld)
		unlock(t, resumed)
		unlock(t, (<-waiting).lock)
		_, err = b.Resume(background, "k", ticket)
		wantErr(t, err, core.ErrTicket)
	})
}

// Work that has failed is tried again by the same ticket, as often as need be.
func TestResumedLockIsParkedAgain(t *testing.T) {
	for what, end := range map[string]func(t *testing.T, k *core.Lock){
		"aborted": func(t *testing.T, k *core.Lock) { wantErr(t, k.Abort(background)) },
		"lost":    func(t *testing.T, k *core.Lock) { _, err := endOf(k.Context()); wantErr(t, err, core.ErrLost) },
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b := s.locker(), s.locker()
				ticket := parkedBy(t, take(t, background, a, "k"), time.Minute)
				waiting := start(background, a, "k")
				var last *core.Lock
				for range 3 {
					k, err := b.Resume(background, "k", ticket, core.FixedLease(10*time.Second))
					if err != nil {
						t.Fatal(err)
					}
					if last != nil && k.Token() <= last.Token() {
						t.Errorf("token %d after %d", k.Token(), last.Token())
					}
					last = k
					end(t, k)
					time.Sleep(50 * time.Second)
					waits(t, waiting)
				}
				o := <-waiting // a minute after the last one
				unlock(t, o.lock)
				_, err := b.Resume(background, "k", ticket)
				wantErr(t, err, core.ErrTicket)
			})
		})
	}
}

// When nobody knows what became of a handover until the lock is lost, it ends: also when a request to have it held as
// before arrives later than its release.
func TestHandoverOfALockThatIsLostMeanwhile(t *testing.T) {
	for what, tc := range map[string]struct {
		late  time.Duration // that request
		hangs int           // so many after it
	}{
		"at about the same time":               {680 * time.Millisecond, 2},
		"a little later":                       {710 * time.Millisecond, 2},
		"later":                                {800 * time.Millisecond, 2},
		"when it would not be parked any more": {2 * time.Second, 2},
		"and Redis is silent after it":         {710 * time.Millisecond, 8},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l, other := s.open(core.Timeout(300*time.Millisecond)), s.locker()
				k := take(t, background, l, "k")
				s.fail("hand_over", lateRequest(350*time.Millisecond), lateRequest(tc.late))
				s.fail("hand_over", slices.Repeat([]fault{hang}, tc.hangs)...)
				_, err := k.Handover(background, time.Second)
				wantErr(t, err, core.ErrLost)
				wantErr(t, k.Unlock(background), core.ErrLost)
				wantErr(t, l.Close(background))
				time.Sleep(2 * time.Second)
				unlock(t, take(t, background, other, "k", core.NoWait()))
				if n := len(s.commands("hand_over")); n != tc.hangs+3 { // the last one ends the lock
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

// A window that was dropped stays so: the work that the lock goes along with does not open it.
func TestHandoverAfterDropWindow(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k", core.KeepFor(time.Hour))
		k.DropWindow()
		resumed, err := l.Resume(background, "k", parkedBy(t, k, time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, resumed)
		s.isFree("k")
	})
}

// What came of the work says the one who resumed the lock, also when others inside end later.
func TestResumedLockIsLeftBeforeTheOthers(t *testing.T) {
	for what, tc := range map[string]struct {
		outer, inner func(*core.Lock, context.Context) error
		done         bool
	}{
		"failed": {(*core.Lock).Abort, (*core.Lock).Unlock, false},
		"done":   {(*core.Lock).Unlock, (*core.Lock).Abort, true},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a := s.locker()
				ticket := parkedBy(t, take(t, background, a, "k", core.KeepFor(time.Hour)), time.Minute)
				for range 2 { // what was said of a former try does not count
					k, err := a.Resume(background, "k", ticket)
					if err != nil {
						t.Fatal(err)
					}
					inner := take(t, k.Context(), a, "k")
					third := take(t, k.Context(), a, "k")
					wantErr(t, tc.outer(k, background))
					wantErr(t, tc.inner(inner, background))
					wantErr(t, tc.inner(third, background))
					info, err := a.Inspect(background, "k")
					if err != nil || (info.State == core.StateParked) == tc.done {
						t.Errorf("the lock is %+v, %v", info, err)
					}
					if tc.done {
						inWindow(t, a, "k", time.Hour)
						return
					}
				}
				k, err := a.Resume(background, "k", ticket)
				if err != nil {
					t.Fatal(err)
				}
				unlock(t, k)
				inWindow(t, a, "k", time.Hour)
			})
		})
	}
}

// Work that has failed for good is not tried again: its lock is free at once, without a window, also when others inside
// end later.
func TestResumedLockWhoseTicketIsVoid(t *testing.T) {
	for what, end := range map[string]func(*core.Lock, context.Context) error{"Unlock": (*core.Lock).Unlock, "Abort": (*core.Lock).Abort} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b := s.locker(), s.locker()
				ticket := parkedBy(t, take(t, background, a, "k", core.KeepFor(time.Hour)), time.Hour)
				waiting := start(background, b, "k")
				k, err := a.Resume(background, "k", ticket)
				if err != nil {
					t.Fatal(err)
				}
				inner := take(t, k.Context(), a, "k")
				adapter.VoidTicket(k)
				wantErr(t, end(k, background))
				waits(t, waiting)
				unlock(t, inner)
				isServed(t, "who waits", waiting, prompt)
				s.isFree("k")
				_, err = a.Resume(background, "k", ticket)
				wantErr(t, err, core.ErrTicket)
			})
		})
	}
}

func TestTicketThatNobodyUses(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		ticket := parkedBy(t, take(t, background, a, "k"), 20*time.Second)
		o := <-start(background, b, "k")
		wantTime(t, "free", o.took, 20*time.Second-prompt, 20*time.Second+prompt)
		unlock(t, o.lock)
		_, err := a.Resume(background, "k", ticket)
		wantErr(t, err, core.ErrTicket)
		ticket = parkedBy(t, take(t, background, a, "k"), 20*time.Second)
		if freed, err := b.ForceUnlock(background, "k"); !freed || err != nil {
			t.Error(freed, err)
		}
		_, err = a.Resume(background, "k", ticket)
		wantErr(t, err, core.ErrTicket)
	})
}

// What cannot be handed over is held as before.
func TestHandoverThatIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		outer := take(t, background, a, "k")
		inner := take(t, outer.Context(), a, "k")
		for _, k := range []*core.Lock{outer, inner} {
			_, err := k.Handover(background, time.Minute)
			wantErr(t, err, core.ErrNotHeld)
		}
		unlock(t, inner)
		foreign := take(t, background, b, "k", core.Owner(outer.ShareOwner()))
		_, err := outer.Handover(background, time.Minute)
		wantErr(t, err, core.ErrNotHeld)
		unlock(t, foreign)
		for _, ttl := range []time.Duration{0, -1, 367 * 24 * time.Hour} {
			if _, err := outer.Handover(background, ttl); err == nil {
				t.Errorf("handed over for %v", ttl)
			}
		}
		ended, cancel := context.WithCancel(background)
		cancel()
		_, err = outer.Handover(ended, time.Minute)
		wantErr(t, err, context.Canceled)
		time.Sleep(time.Minute)
		if outer.Context().Err() != nil {
			t.Errorf("the lock is gone: %v", context.Cause(outer.Context()))
		}
		unlock(t, outer)
		_, err = outer.Handover(background, time.Minute)
		wantErr(t, err, core.ErrNotHeld)

		first := take(t, background, a, "k")
		second := take(t, background, b, "k", core.Owner(first.ShareOwner())) // inside, also when it is the last
		unlock(t, first)
		_, err = second.Handover(background, time.Minute)
		wantErr(t, err, core.ErrNotHeld)
		unlock(t, second)

		sharer := take(t, background, a, "k", core.Shared())
		_, err = sharer.Handover(background, time.Minute)
		wantErr(t, err, core.ErrNotHeld)
		unlock(t, sharer)
	})
}

// When what was to resume the lock has not started, the lock is the caller's as before.
func TestHandoverIsTakenBack(t *testing.T) {
	for what, opts := range map[string][]core.Option{"renewed": nil, "fixed": {core.FixedLease(time.Minute)}, "owner": {core.Owner("o")}} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b := s.locker(), s.locker()
				k := take(t, background, a, "k", opts...)
				waiting := start(background, b, "k")
				why := errors.New("no")
				err := adapter.Handover(background, k, "ticket", 5*time.Second, func() error {
					waits(t, waiting)
					return why
				})
				wantErr(t, err, why)
				time.Sleep(50 * time.Second)
				waits(t, waiting)
				if k.Context().Err() != nil {
					t.Fatalf("the lock is gone: %v", context.Cause(k.Context()))
				}
				_, err = b.Resume(background, "k", "ticket")
				wantErr(t, err, core.ErrTicket)
				unlock(t, k)
				unlock(t, (<-waiting).lock)
			})
		})
	}
}

// Nothing prolongs a fixed lease.
func TestFixedLeaseThatIsTakenBackEndsAsBefore(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		k, began := take(t, background, s.locker(), "k", core.FixedLease(time.Minute)), time.Now()
		time.Sleep(20 * time.Second)
		why := errors.New("no")
		wantErr(t, adapter.Handover(background, k, "ticket", 5*time.Second, func() error { return why }), why)
		<-k.Context().Done()
		wantErr(t, context.Cause(k.Context()), core.ErrLost)
		wantTime(t, "it ended", time.Since(began), 59*time.Second, time.Minute)
	})
}

// A request whose answer is lost is taken back, also when it arrives later.
func TestHandoverWithoutAnAnswer(t *testing.T) {
	for what, f := range map[string]fault{
		"lost on its way":   hang,
		"its answer is":     lateReply(10 * time.Second),
		"it arrives later":  lateRequest(10 * time.Second),
		"connection broken": loseReply,
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b := s.locker(), s.locker()
				k := take(t, background, a, "k")
				waiting := start(background, b, "k")
				s.fail("hand_over", f)
				ticket, err := k.Handover(background, 5*time.Second)
				if what == "connection broken" { // it is sent again
					resumed, err := b.Resume(background, "k", ticket)
					if err != nil {
						t.Fatal(err)
					}
					unlock(t, resumed)
				} else {
					wantErr(t, err, core.ErrUnavailable)
					wantNot(t, err, core.ErrLost)
					time.Sleep(time.Minute)
					waits(t, waiting)
					if n, err := k.Count(background); n != 1 || err != nil {
						t.Errorf("%d holds, %v", n, err)
					}
				}
				unlock(t, k)
				unlock(t, (<-waiting).lock)
			})
		})
	}
}

// One that Redis has done, and whose copy it refuses, is taken back as well: else the lock is parked for nobody.
func TestHandoverOfWhichACopyIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k")
		s.fail("hand_over", loseReply, refuse("NOPERM this user has no permissions"))
		_, err := k.Handover(background, time.Hour)
		wantErr(t, err, core.ErrUnavailable)
		time.Sleep(time.Minute)
		if n, err := k.Count(background); n != 1 || err != nil {
			t.Errorf("%d holds, %v", n, err)
		}
		unlock(t, k)
		unlock(t, take(t, background, s.locker(), "k", core.NoWait()))
	})
}

// Redis may refuse to take a lock back, for as long as somebody needs to mend that: it is told, and asked now and then.
func TestHandoverWhoseTakingBackIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		log, why := new(records), errors.New("no")
		k := take(t, background, s.locker(core.Logger(log.logger())), "k")
		asked := 0
		refused := func(s *embedded, p *peer, cmd string, args []string) bool {
			asked++
			return refuse("NOPERM this user has no permissions")(s, p, cmd, args)
		}
		time.AfterFunc(10*time.Second, s.heal)
		err := adapter.Handover(background, k, "job", time.Hour, func() error {
			s.failAll(refused, "hand_over")
			return why
		})
		wantErr(t, err, why)
		wantNot(t, err, core.ErrLost)
		if told := log.texts("taking a lock back"); len(told) == 0 || !strings.Contains(told[0], "NOPERM") {
			t.Errorf("the log has %q", told)
		}
		if asked > 30 {
			t.Errorf("Redis was asked %d times", asked)
		}
		unlock(t, k)
	})
}

// A lock that may be parked for a short time is not believed in for longer, nor one that may not
// be parked for longer than its lease.
func TestHandoverThatStaysUnanswered(t *testing.T) {
	for ttl, ends := range map[time.Duration]time.Duration{5 * time.Second: 5 * time.Second, time.Hour: lease} {
		t.Run(ttl.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b := s.locker(), s.locker()
				k := take(t, background, a, "k")
				s.fail("hand_over", lateReply(10*time.Second))
				s.failAll(hang, "hand_over")
				began := time.Now()
				at := make(chan time.Time, 1)
				go func() {
					when, _ := endOf(k.Context())
					at <- when
				}()
				_, err := k.Handover(background, ttl)
				wantErr(t, err, core.ErrUnavailable, core.ErrLost)
				wantTime(t, "lost", (<-at).Sub(began), ends-time.Second, ends)
				wantErr(t, k.Unlock(background), core.ErrLost)
				s.heal() // it is not parked for nobody
				isServed(t, "the next one", start(background, b, "k"), 2*time.Second)
			})
		})
	}
}

// Who unlocks while the lock is being handed over in vain leaves nothing behind.
func TestUnlockDuringHandover(t *testing.T) {
	for what, f := range map[string]fault{
		"the job is not started": lateReply(time.Millisecond),
		"Redis refuses": func(s *embedded, p *peer, cmd string, args []string) bool {
			time.Sleep(time.Millisecond)
			return refuse("ERR no")(s, p, cmd, args)
		},
		"the answer is lost": lateReply(10 * time.Second),
		"it arrives later":   lateRequest(10 * time.Second),
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b := s.locker(), s.locker()
				k := take(t, background, a, "k")
				s.fail("hand_over", f)
				done := make(chan error, 1)
				go func() {
					done <- adapter.Handover(background, k, "job", time.Minute, func() error { return errors.New("no") })
				}()
				time.Sleep(time.Millisecond / 2)
				wantErr(t, k.Unlock(background), core.ErrNotHeld)
				if err := <-done; err == nil {
					t.Error("handed over")
				}
				isServed(t, "the next one", start(background, b, "k"), prompt)
			})
		})
	}
}

// A call that is about to enter a lock when its handover begins is refused. If that fails, the lock is held as before.
func TestReentryDuringHandover(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		why, begun, refused, failed := errors.New("no"), make(chan bool), make(chan bool), make(chan error, 1)
		l := s.locker()
		k := take(t, background, l, "k")
		handOver := func() {
			go func() {
				failed <- adapter.Handover(background, k, "job", time.Minute, func() error {
					close(begun)
					<-refused
					return why
				})
			}()
			<-begun
		}
		_, err := l.Lock(&foundThen{k.Context(), handOver}, "k")
		wantErr(t, err, core.ErrLost)
		_, err = l.Lock(k.Context(), "k") // it would wait for the lock of its own context, should that be taken back
		wantErr(t, err, core.ErrLost)
		close(refused)
		wantErr(t, <-failed, why)
		if k.Context().Err() != nil {
			t.Errorf("the lock is gone: %v", context.Cause(k.Context()))
		}
		unlock(t, k)
	})
}

// A renewal that found the lock parked does not say that it is lost, once it was taken back.
func TestRenewalOfAParkedLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		k := take(t, background, s.locker(), "k")
		sent, parked, found, back := make(chan bool), make(chan bool), make(chan bool), make(chan bool)
		s.fail(renew, func(s *embedded, p *peer, cmd string, args []string) bool {
			close(sent)
			<-parked
			s.pass(p, cmd, args)
			close(found)
			<-back
			return true
		})
		<-sent
		why := errors.New("no")
		wantErr(t, adapter.Handover(background, k, "job", time.Minute, func() error {
			close(parked)
			<-found
			return why
		}), why)
		close(back)
		time.Sleep(2 * lease)
		if k.Context().Err() != nil {
			t.Errorf("the lock is gone: %v", context.Cause(k.Context()))
		}
		unlock(t, k)
	})
}

// Nor does an answer to Count.
func TestCountOfAParkedLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		k := take(t, background, s.locker(), "k")
		s.fail(inspect, func(s *embedded, p *peer, cmd string, args []string) bool {
			time.Sleep(time.Second)
			return lateReply(time.Second/2)(s, p, cmd, args)
		})
		counted := make(chan error, 1)
		go func() {
			n, err := k.Count(background)
			if n != 1 && err == nil {
				t.Errorf("%d holds", n)
			}
			counted <- err
		}()
		synctest.Wait()
		why := errors.New("no")
		wantErr(t, adapter.Handover(background, k, "job", time.Minute, func() error { time.Sleep(1200 * time.Millisecond); return why }), why)
		wantErr(t, <-counted)
		unlock(t, k)
	})
}

// The release of a resumed lock may be confirmed only after its lease: then the lock is free, if the work was
// done. After a failure it is parked again, and so it is when somebody else has resumed it since, who has it.
func TestReleaseOfAResumedLockAfterItsLease(t *testing.T) {
	const lease = 5 * time.Second
	for what, tc := range map[string]struct {
		end    func(*core.Lock, context.Context) error
		owner  []core.Option
		others bool // resume it before the release arrives
		fail   bool // and have failed by then
		parked bool
	}{
		"done":                     {end: (*core.Lock).Unlock},
		"done, by a task":          {end: (*core.Lock).Unlock, owner: []core.Option{adapter.OwnerBegin("task:")}},
		"failed":                   {end: (*core.Lock).Abort, parked: true},
		"done, resumed by another": {end: (*core.Lock).Unlock, others: true, parked: true},
		"done, and another failed": {end: (*core.Lock).Unlock, others: true, fail: true, parked: true},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b, c := s.locker(), s.locker(core.Lease(lease)), s.locker()
				ticket := parkedBy(t, take(t, background, a, "k"), time.Hour)
				k, err := b.Resume(background, "k", ticket, tc.owner...)
				if err != nil {
					t.Fatal(err)
				}
				s.failAll(func(s *embedded, p *peer, cmd string, args []string) bool {
					return slices.Contains(args, k.Owner()) && loseRequest(s, p, cmd, args)
				}, release)
				began := time.Now()
				wantErr(t, tc.end(k, background), core.ErrUnavailable)
				time.Sleep(lease + 100*time.Millisecond - time.Since(began))
				if tc.others {
					next, err := c.Resume(background, "k", ticket)
					if err != nil {
						t.Fatal(err)
					}
					if tc.fail {
						wantErr(t, next.Abort(background))
					} else {
						defer unlock(t, next)
					}
				}
				s.heal()
				time.Sleep(time.Second)
				if got := s.Exists("lock:k"); got != tc.parked {
					t.Errorf("the lock is there: %v", got)
				}
			})
		})
	}
}

// Nothing of a lock that was handed over, or is of an idempotent request, goes on in the lock of those who
// share it next.
func TestNothingOfALockThatEndedGoesOn(t *testing.T) {
	ends := func(t *testing.T, s *embedded, end func() error) {
		waiting := start(background, s.locker(), "k", core.Shared(), core.FixedLease(time.Minute))
		waits(t, waiting)
		succeed(t, end())
		o := <-waiting
		succeed(t, o.err)
		if mode, ttl := s.HGet("lock:k", "mode"), s.TTL("lock:k"); mode != "s" || ttl > time.Minute {
			t.Errorf("the lock has mode %q for %v", mode, ttl)
		}
		unlock(t, o.lock)
	}
	t.Run("handed over", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded) {
			ticket := parkedBy(t, take(t, background, s.locker(), "k"), time.Hour)
			k, err := s.locker().Resume(background, "k", ticket)
			succeed(t, err)
			ends(t, s, func() error { return k.Unlock(background) })
		})
	})
	t.Run("idempotent request", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded) {
			k := take(t, background, s.locker(), "k", attemptAt(request))
			ends(t, s, func() error { return k.Abort(background) })
		})
	})
}

// A resumed lock whose answer is lost is parked again.
func TestResumeWithoutAnAnswer(t *testing.T) {
	for what, f := range map[string]fault{"lost on its way": hang, "its answer is": lateReply(10 * time.Second), "it arrives later": lateRequest(10 * time.Second), "connection broken": loseReply} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b := s.locker(), s.locker()
				ticket := parkedBy(t, take(t, background, a, "k"), time.Hour)
				s.fail(acquire, f)
				first, err := b.Resume(background, "k", ticket)
				if what == "connection broken" { // it is sent again
					if err != nil {
						t.Fatal(err)
					}
					unlock(t, first)
					return
				}
				wantErr(t, err, core.ErrUnavailable)
				time.Sleep(20 * time.Second)
				k, err := b.Resume(background, "k", ticket)
				if err != nil {
					t.Fatal(err)
				}
				unlock(t, k)
			})
		})
	}
}

// The dedup window goes along.
func TestWindowIsHandedOver(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		ticket := parkedBy(t, take(t, background, a, "k", core.KeepFor(time.Hour)), time.Minute)
		k, err := b.Resume(background, "k", ticket)
		if err != nil {
			t.Fatal(err)
		}
		wantErr(t, k.Abort(background))
		k, err = b.Resume(background, "k", ticket)
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, k)
		_, err = a.TryLock(background, "k")
		if busy := wantBusy(t, err); !busy.Done {
			t.Errorf("no window: %v", err)
		}
	})
}

func parkedFor(t *testing.T, k *core.Lock, ticket string) {
	t.Helper()
	if err := adapter.Handover(background, k, ticket, time.Minute, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// A call that has the ticket of a job resumes the lock, and competes without it.
func TestCallWithATicket(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		free := take(t, background, b, "k", adapter.Ticket("job"))
		unlock(t, free)
		k := take(t, background, a, "k")
		parkedFor(t, k, "job")
		_, err := b.TryLock(background, "k", adapter.Ticket("another"))
		wantBusy(t, err)
		o := <-start(background, b, "k", adapter.Ticket("job"))
		if o.err != nil || o.took > prompt {
			t.Fatal(o.err, o.took)
		}
		unlock(t, o.lock)
	})
}

// Others who wait cannot have the lock: who has the ticket is not behind them.
func TestCallWithATicketDoesNotWaitBehindOthers(t *testing.T) {
	for what, opts := range map[string][]core.Option{
		"queued":      nil,
		"one of many": {core.MaxWaiters(1)},
		"owner":       {adapter.OwnerBegin("task:")},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b := s.locker(), s.locker()
				k := take(t, background, a, "k")
				waiting := start(background, b, "k", append(opts, adapter.Ticket("another"))...)
				waits(t, waiting)
				parkedFor(t, k, "job")
				o := <-start(background, b, "k", append(opts, adapter.Ticket("job"), core.Wait(time.Second))...)
				if o.err != nil || o.took > prompt {
					t.Fatal(o.err, o.took)
				}
				waits(t, waiting)
				unlock(t, o.lock)
				unlock(t, (<-waiting).lock)
			})
		})
	}
}

// One of the locks is that of the ticket. After a failure, also for another one, it is parked again.
func TestCallForSeveralKeysWithATicket(t *testing.T) {
	for what, opts := range map[string][]core.Option{"waits": nil, "does not wait": {core.NoWait()}} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b := s.locker(), s.locker()
				k := take(t, background, a, "2")
				parkedFor(t, k, "job")
				m, err := b.LockAll(background, []string{"1", "2", "3"}, append(opts, adapter.Ticket("job"))...)
				if err != nil {
					t.Fatal(err)
				}
				if err := m.Abort(background); err != nil {
					t.Error(err)
				}
				for _, key := range []string{"1", "3"} {
					unlock(t, take(t, background, a, key))
				}
				third := take(t, background, a, "3")
				_, err = b.LockAll(background, []string{"1", "2", "3"}, core.NoWait(), adapter.Ticket("job"))
				wantBusy(t, err)
				unlock(t, third)
				_, err = a.TryLock(background, "2")
				wantBusy(t, err)
				m, err = b.LockAll(background, []string{"1", "2", "3"}, append(opts, adapter.Ticket("job"))...)
				if err != nil {
					t.Fatal(err)
				}
				if err := m.Unlock(background); err != nil {
					t.Error(err)
				}
				unlock(t, take(t, background, a, "2"))
			})
		})
	}
}

// A copy of the acquisition may arrive when the lock was handed over, and is free again.
func TestHandoverOfALockOfWhichAnAcquisitionArrivesLate(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		s.fail(acquire, func(s *embedded, p *peer, cmd string, args []string) bool {
			time.AfterFunc(time.Second, func() { s.pass(nowhere(), cmd, args) })
			return loseRequest(s, p, cmd, args)
		})
		k := take(t, background, l, "k")
		ticket, err := k.Handover(background, time.Minute)
		wantErr(t, err)
		resumed, err := l.Resume(background, "k", ticket)
		wantErr(t, err)
		unlock(t, resumed)
		time.Sleep(2 * time.Second)
		s.isFree("k")
	})
}
