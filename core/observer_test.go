//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// ear is an Observer that remembers.
type ear struct {
	mu     sync.Mutex
	events []core.Event
	act    func(context.Context, core.Event) context.Context // nil: nothing
}

func (o *ear) Observe(ctx context.Context, e core.Event) context.Context {
	if e.Kind == core.EventLoad { // comes once a second
		return ctx
	}
	o.mu.Lock()
	o.events = append(o.events, e)
	act := o.act
	o.mu.Unlock()
	if act != nil {
		return act(ctx, e)
	}
	return ctx
}

// take returns what was heard of calls since the last time, each as a line.
func (o *ear) take() []string {
	settle()
	o.mu.Lock()
	defer o.mu.Unlock()
	var lines []string
	for _, e := range o.events {
		if e.Kind < core.EventGrantMissed { // the others come in the background
			lines = append(lines, line(e))
		}
	}
	o.events = nil
	return lines
}

var kinds = map[core.EventKind]string{
	core.EventWaiting:       "waiting",
	core.EventAcquired:      "acquired",
	core.EventBusy:          "busy",
	core.EventFailed:        "failed",
	core.EventReleased:      "released",
	core.EventLost:          "lost",
	core.EventOverdue:       "overdue",
	core.EventRenewalFailed: "renewal failed",
	core.EventRefused:       "refused",
	core.EventGrantMissed:   "grant missed",
	core.EventUnheard:       "unheard",
	core.EventCompensating:  "compensating",
	core.EventCompensated:   "compensated",
}

func line(e core.Event) string {
	s := kinds[e.Kind]
	for _, part := range []struct {
		set  bool
		text string
	}{
		{e.Reentry, "again"},
		{e.Reason != "", e.Reason},
		{e.Name != "", "name=" + e.Name},
		{e.Status != 0, fmt.Sprint("status=", e.Status)},
		{e.Waited != 0, fmt.Sprint("waited=", e.Waited)},
		{e.HeldFor != 0, fmt.Sprint("held=", e.HeldFor)},
	} {
		if part.set {
			s += " " + part.text
		}
	}
	return s
}

func (o *ear) want(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := o.take(); !slices.Equal(got, want) {
		t.Errorf("%s: heard\n\t%s\nwant\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func TestObserversHearALockFromWaitToRelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := &ear{}, &ear{}
		one, two := s.locker(core.Observe(a)), s.locker(core.Observe(b), core.Name("orders"))
		k := take(t, background, one, "k")
		waiting := start(background, two, "k")
		a.want(t, "holder", "waiting", "acquired")
		b.want(t, "waiting call", "waiting name=orders")
		time.Sleep(20 * time.Second) // one renewal passes unheard
		unlock(t, k)
		o := <-waiting
		a.want(t, "holder", "released held=20s")
		b.want(t, "waiting call", "acquired name=orders waited=20s")
		time.Sleep(2 * time.Second)
		unlock(t, o.lock)
		b.want(t, "waiting call", "released name=orders held=2s")
	})
}

func TestObserversAreToldKeyAndError(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &ear{}
		l := s.locker(core.Observe(o))
		k := take(t, background, l, "k")
		_, err := l.TryLock(background, "k")
		unlock(t, k)
		for _, e := range o.events {
			if e.Key != "k" {
				t.Errorf("%s: key %q", line(e), e.Key)
			}
			if busy := e.Kind == core.EventBusy; busy != (e.Err != nil) || busy && e.Err != err {
				t.Errorf("%s: error %v; TryLock returned %v", line(e), e.Err, err)
			}
		}
	})
}

func TestObserversHearWhyALockIsBusy(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		holder, o := take(t, background, s.locker(), "k"), &ear{}
		l := s.locker(core.Observe(o))

		_, err := l.TryLock(background, "k")
		wantBusy(t, err)
		o.want(t, "TryLock", "waiting", "busy no_wait")

		_, err = l.Lock(background, "k", core.Wait(3*time.Second))
		wantBusy(t, err)
		o.want(t, "Wait", "waiting", "busy wait_over waited=3s")

		ctx, cancel := context.WithCancel(background)
		waiting := start(ctx, l, "k")
		_, err = l.Lock(background, "k", core.MaxWaiters(1))
		wantBusy(t, err)
		o.want(t, "MaxWaiters", "waiting", "waiting", "busy max_waiters")

		time.Sleep(time.Second)
		cancel()
		wantErr(t, (<-waiting).err, context.Canceled)
		o.want(t, "cancelled", "busy canceled waited=1s")

		ctx, cancel = context.WithTimeout(background, 2*time.Second)
		defer cancel()
		_, err = l.Lock(ctx, "k")
		wantErr(t, err, context.DeadlineExceeded)
		o.want(t, "deadline", "waiting", "busy deadline waited=2s")
		unlock(t, holder)
	})
}

func TestObserversHearWhyACallFailed(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &ear{}
		l := s.open(core.Observe(o))
		fails := func(what string, ctx context.Context, key string, want error, heard ...string) {
			t.Helper()
			o.take()
			_, err := l.Lock(ctx, key)
			wantErr(t, err, want)
			o.want(t, what, heard...)
		}
		fails("no key", background, "", core.ErrInvalidKey, "waiting", "failed invalid_key")

		s.fail(acquire, refuse("OOM"))
		fails("an error of Redis", background, "k", core.ErrUnavailable, "waiting", "failed unavailable")

		k := take(t, background, l, "k")
		s.Del("lock:k")
		o.take()
		_, err := l.Lock(k.Context(), "k")
		wantErr(t, err, core.ErrLost)
		synctest.Wait()
		heard := o.take()
		slices.Sort(heard) // the call fails in one goroutine, the lock is lost in another: either is heard first
		if want := []string{"failed lost", "lost deleted", "waiting"}; !slices.Equal(heard, want) {
			t.Errorf("a lost lock is re-entered: heard %q, want %q in any order", heard, want)
		}
		wantErr(t, k.Unlock(background), core.ErrLost)

		k = take(t, background, l, "k", core.MaxHold(time.Second))
		time.Sleep(time.Second)
		synctest.Wait()
		fails("a lock held for too long is re-entered", k.Context(), "k", core.ErrMaxHold, "waiting", "failed max_hold")
		unlock(t, k)

		if err := l.Close(background); err != nil {
			t.Error(err)
		}
		fails("closed", background, "k", core.ErrClosed, "waiting", "failed closed")
	})
}

func TestObserversHearHowALockIsLostAndNotOfItsRelease(t *testing.T) {
	for name, test := range map[string]struct {
		opts   []core.Option
		happen func(*embedded, *core.Locker)
		want   []string
	}{
		"deleted": {nil, func(s *embedded, _ *core.Locker) { s.Del("lock:k") }, []string{"lost deleted held=10s"}},
		"a fixed lease": {[]core.Option{core.FixedLease(2 * time.Second)}, func(*embedded, *core.Locker) {},
			[]string{"lost expired held=1.99s"}},
		"Redis is full": {[]core.Option{core.Lease(3 * time.Second)}, func(s *embedded, _ *core.Locker) { s.failAll(hang, renew) },
			[]string{"renewal failed held=2s", "lost expired held=2.99s"}},
		"MaxHold, and nobody unlocks": {[]core.Option{core.MaxHold(4 * time.Second), core.Lease(9 * time.Second)},
			func(*embedded, *core.Locker) {}, []string{"overdue held=4s", "lost max_hold held=11.99s"}},
		"Close": {nil, func(_ *embedded, l *core.Locker) {
			ctx, cancel := context.WithTimeout(background, time.Second)
			defer cancel()
			_ = l.Close(ctx)
		}, []string{"lost closed held=1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				o := &ear{}
				l := s.open(core.Observe(o))
				k := take(t, background, l, "k", test.opts...)
				o.take()
				test.happen(s, l)
				time.Sleep(time.Minute)
				o.want(t, "loss", test.want...)
				if k.Unlock(background) == nil {
					t.Error("Unlock succeeded")
				}
				o.want(t, "Unlock")
				s.heal()
				if err := l.Close(background); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Close takes away what is held, not what Unlock is releasing at that moment.
func TestALockWhoseUnlockIsUnderWayIsNotLostToClose(t *testing.T) {
	for name, test := range map[string]struct {
		fault fault
		want  string
		err   error
	}{
		"released":    {lateReply(1500 * time.Millisecond), "released held=2.5s", nil},
		"unconfirmed": {hang, "released unconfirmed held=3s", core.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				o, logged := &ear{}, &records{}
				l := s.open(core.Observe(o), core.Logger(logged.logger()))
				k := take(t, background, l, "k")
				inner := take(t, k.Context(), l, "k")
				unlock(t, inner)
				time.Sleep(time.Second)
				o.take()
				s.failAll(test.fault, release)
				done := make(chan error, 1)
				go func() { done <- k.Unlock(background) }()
				synctest.Wait()
				wantErr(t, l.Close(within(time.Second)), context.DeadlineExceeded)
				if err := <-done; !errors.Is(err, test.err) {
					t.Errorf("Unlock: %v; want %v", err, test.err)
				}
				o.want(t, "Close", test.want)
				if n := logged.count("latchkey: a lock was lost while held"); n != 0 {
					t.Errorf("%d losses are in the log", n)
				}
				s.heal()
			})
		})
	}
}

// Whoever asks Redis about a lock while it is unlocked finds it free: that is no loss.
func TestALockThatIsUnlockedWhileItIsLookedAtIsNotLost(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o, logged := &ear{}, &records{}
		k := take(t, background, s.locker(core.Observe(o), core.Logger(logged.logger())), "k")
		s.fail(inspect, lateRequest(100*time.Millisecond))
		s.fail(release, lateReply(time.Second))
		counted := make(chan error, 1)
		go func() {
			_, err := k.Count(background)
			counted <- err
		}()
		synctest.Wait()
		unlock(t, k)
		wantErr(t, <-counted, core.ErrNotHeld)
		o.want(t, "Unlock", "waiting", "acquired", "released held=1s")
		if n := logged.count("latchkey: a lock was lost while held"); n != 0 {
			t.Errorf("%d losses are in the log", n)
		}
	})
}

// Of holds that are unlocked at once, the last release that is confirmed ends the lock.
func TestHoldsThatAreUnlockedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &ear{}
		l := s.open(core.Observe(o))
		outer := take(t, background, l, "k")
		inner := take(t, outer.Context(), l, "k")
		o.take()
		s.fail(release, lateReply(500*time.Millisecond))
		s.failAll(hang, release)
		var all sync.WaitGroup
		all.Go(func() { unlock(t, inner) })
		synctest.Wait()
		all.Go(func() { wantErr(t, outer.Unlock(background), core.ErrUnavailable) })
		closed := make(chan error, 1)
		go func() { closed <- l.Close(background) }()
		all.Wait()
		o.want(t, "the unlocks", "released unconfirmed held=2s")
		s.heal()
		if err := <-closed; err != nil {
			t.Error(err)
		}
		s.isFree("k")
	})
}

// A release of an inner hold that was not confirmed at first says nothing of the lock's.
func TestAnInnerHoldHasEndedByTheTimeTheLockIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &ear{}
		l := s.locker(core.Observe(o))
		outer := take(t, background, l, "k")
		inner := take(t, outer.Context(), l, "k")
		o.take()
		s.failAll(hang, release)
		wantErr(t, inner.Unlock(background), core.ErrUnavailable)
		s.heal()
		time.Sleep(8 * time.Second)
		unlock(t, outer)
		o.want(t, "the unlocks", "released held=10s")
	})
}

// Whoever waits in this process has the lock at once, although an earlier release has not
// been answered.
func TestASlowReleaseOfAnInnerHoldHoldsNobodyUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		first, next := start(background, l, "k"), start(background, l, "k")
		outer := (<-first).lock
		inner := take(t, outer.Context(), l, "k")
		s.fail(release, lateReply(1500*time.Millisecond))
		var slow sync.WaitGroup
		slow.Go(func() { unlock(t, inner) })
		synctest.Wait()
		freed := time.Now()
		unlock(t, outer)
		k := (<-next).lock
		wantTime(t, "the next call has the lock", time.Since(freed), 0, 0)
		unlock(t, k)
		slow.Wait()
	})
}

// The holds that Close takes away are on their way to Redis before the holders are told.
func TestCloseReleasesBeforeItTells(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		released := 0
		slow := &ear{act: func(ctx context.Context, e core.Event) context.Context {
			if e.Kind == core.EventLost {
				time.Sleep(time.Second)
				released = len(s.commands(release))
			}
			return ctx
		}}
		l := s.open(core.Observe(slow))
		take(t, background, l, "k")
		wantErr(t, l.Close(within(time.Second)), context.DeadlineExceeded)
		if released != 1 {
			t.Errorf("%d releases were sent by then", released)
		}
		s.isFree("k")
	})
}

func TestALossThatTheReleaseFindsIsHeardOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &ear{}
		k := take(t, background, s.locker(core.Observe(o)), "k")
		s.Del("lock:k")
		time.Sleep(time.Second)
		wantErr(t, k.Unlock(background), core.ErrLost)
		o.want(t, "Unlock", "waiting", "acquired", "lost deleted held=1s")
	})
}

// Observers hear of the acquisition first, also when the lock is lost meanwhile.
func TestALossBeforeTheAcquisitionIsToldComesAfterIt(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &ear{}
		slow := &ear{act: func(ctx context.Context, e core.Event) context.Context {
			if e.Kind == core.EventAcquired {
				s.Del("lock:k")
				time.Sleep(lease)
			}
			return ctx
		}}
		k := take(t, background, s.locker(core.Observe(slow), core.Observe(o)), "k")
		slow.want(t, "the slow one", "waiting", "acquired", "lost deleted")
		o.want(t, "the other one", "waiting", "acquired", "lost deleted")
		wantErr(t, k.Unlock(background), core.ErrLost)
	})
}

func TestAnOverdueLockIsToldAfterItsAcquisition(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &ear{act: func(ctx context.Context, e core.Event) context.Context {
			if e.Kind == core.EventAcquired {
				time.Sleep(2 * time.Second)
			}
			return ctx
		}}
		k := take(t, background, s.locker(core.Observe(o)), "k", core.MaxHold(time.Second))
		o.want(t, "taking", "waiting", "acquired", "overdue")
		unlock(t, k)
		o.want(t, "Unlock", "released")
	})
}

func TestAReentryIsPartOfTheOuterHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &ear{}
		l := s.locker(core.Observe(o))
		outer := take(t, background, l, "k")
		time.Sleep(time.Second)
		other := take(t, outer.Context(), l, "other")
		inner := take(t, other.Context(), l, "k")
		o.want(t, "taking", "waiting", "acquired", "waiting", "acquired", "waiting", "acquired again")
		time.Sleep(time.Second)
		unlock(t, other)
		o.want(t, "another lock", "released held=1s")
		unlock(t, outer) // the hold goes on with the inner one
		o.want(t, "the outer one")
		time.Sleep(time.Second)
		unlock(t, inner)
		o.want(t, "the last one", "released held=3s")
	})
}

// A re-entry fails after the outer handle has gone: nobody else will end the hold.
func TestAReentryThatFailsLastEndsTheHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &ear{}
		l := s.locker(core.Observe(o))
		outer := take(t, background, l, "k")
		s.fail(acquire, hang)
		reentry := start(context.WithoutCancel(outer.Context()), l, "k")
		unlock(t, outer)
		wantErr(t, (<-reentry).err, core.ErrUnavailable)
		s.heal()
		synctest.Wait()
		heard := o.take()
		slices.Sort(heard[3:]) // the call fails in one goroutine, the release is confirmed in another: either is heard first
		if want := []string{"waiting", "acquired", "waiting", "failed unavailable waited=2s", "released held=2s"}; !slices.Equal(heard, want) {
			t.Errorf("heard %q, want %q", heard, want)
		}
	})
}

func TestObserversHearTroubleInTheMiddle(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &ear{}
		l := s.locker(core.Observe(o))
		k := take(t, background, l, "k", core.MaxHold(15*time.Second))
		o.take()
		s.fail(renew, refuse("OOM"), refuse("OOM"))
		time.Sleep(12 * time.Second)
		o.want(t, "renewals", "renewal failed held=10s", "renewal failed held=10.25s")
		time.Sleep(8 * time.Second)
		o.want(t, "MaxHold", "overdue held=15s")
		s.failAll(hang, release)
		wantErr(t, k.Unlock(background), core.ErrUnavailable)
		o.want(t, "Unlock", "released unconfirmed held=22s")
		s.heal()
	})
}

func TestObserversPutThingsIntoTheContext(t *testing.T) {
	type key string
	bubble(t, func(t *testing.T, s *embedded) {
		note := func(name string) *ear {
			return &ear{act: func(ctx context.Context, e core.Event) context.Context {
				seen, _ := ctx.Value(key(name)).(string)
				other, _ := ctx.Value(key("first")).(string)
				want := map[core.EventKind]string{core.EventAcquired: "waiting", core.EventReleased: "acquired"}[e.Kind]
				if seen != want || name == "second" && e.Kind != core.EventReleased && other != kinds[e.Kind] {
					t.Errorf("%s hears of %s with %q, and %q of the first one", name, kinds[e.Kind], seen, other)
				}
				return context.WithValue(ctx, key(name), kinds[e.Kind])
			}}
		}
		none := &ear{act: func(context.Context, core.Event) context.Context { return nil }}
		l := s.locker(core.Observe(note("first")), core.Observe(none), core.Observe(note("second")))
		err := l.Do(background, "k", func(ctx context.Context) error {
			for _, name := range []key{"first", "second"} {
				if ctx.Value(name) != "acquired" {
					t.Errorf("the function sees %v", ctx.Value(name))
				}
			}
			if _, held := core.FromContext(ctx); !held {
				t.Error("the context has lost the lock")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestAnObserverThatPanicsHarmsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		logged, after := &records{}, &ear{}
		bad := &ear{act: func(context.Context, core.Event) context.Context { panic("oh no") }}
		l := s.locker(core.Observe(bad), core.Observe(after), core.Logger(logged.logger()))
		k := take(t, background, l, "k")
		time.Sleep(2 * time.Second)
		unlock(t, k)
		after.want(t, "the next one", "waiting", "acquired", "released held=2s")
		if n := logged.count("an Observer panicked"); n != 3 {
			t.Errorf("%d lines: %v", n, logged.all())
		}
	})
}

func TestNotify(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &ear{}
		l := s.locker(core.Observe(o), core.Name("all"))
		refusal := core.Event{Kind: core.EventRefused, Err: &core.BusyError{}}
		adapter.Notify(background, l, refusal)
		adapter.Notify(background, l, refusal, core.Name("orders"))
		adapter.Notify(background, l, core.Event{Kind: core.EventRefused, Name: "own", Reason: "setup", Status: 500}, core.Name("orders"))
		adapter.Notify(background, l, refusal, core.Lease(-1))
		o.want(t, "Notify", "refused wait_over name=all", "refused wait_over name=orders", "refused setup name=own status=500")
		adapter.Notify(background, s.locker(), refusal) // nobody listens
	})
}

func TestNames(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &ear{}
		l := s.locker(core.Observe(o), core.Name("all"))
		unlock(t, take(t, background, l, "k"))
		unlock(t, take(t, background, l, "k", core.Name("orders"), core.Name("pay\xffments")))
		unlock(t, take(t, background, l, "k", core.Name("")))
		o.want(t, "names",
			"waiting name=all", "acquired name=all", "released name=all",
			"waiting name=pay\uFFFDments", "acquired name=pay\uFFFDments", "released name=pay\uFFFDments",
			"waiting", "acquired", "released")
	})
}

// Whatever becomes of the calls, in the end none waits and nothing is held.
func TestObserversHearAnEndOfEverything(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &ear{}
		var all sync.WaitGroup
		for n := range 3 {
			l := s.locker(core.Observe(o), core.Lease(time.Second))
			for i := range 20 {
				all.Go(func() {
					for j := range 10 {
						ctx, cancel := context.WithTimeout(background, time.Duration(i*j+1)*10*time.Millisecond)
						_ = l.Do(ctx, []string{"k", "k", fmt.Sprint(n, i)}[i%3], func(context.Context) error {
							time.Sleep(time.Duration(i) * 10 * time.Millisecond)
							return nil
						}, core.MaxWaiters(15))
						cancel()
					}
				})
			}
		}
		for range 5 {
			time.Sleep(500 * time.Millisecond)
			s.outage()
			time.Sleep(1500 * time.Millisecond)
			s.heal()
			time.Sleep(time.Second)
			s.Del("lock:k")
		}
		all.Wait()
		time.Sleep(10 * time.Second)
		count := map[core.EventKind]int{}
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, e := range o.events {
			count[e.Kind]++
		}
		if n := count[core.EventAcquired] + count[core.EventBusy] + count[core.EventFailed]; n != 600 || count[core.EventWaiting] != 600 {
			t.Errorf("%d calls began and %d ended, of 600", count[core.EventWaiting], n)
		}
		if a, b := count[core.EventAcquired], count[core.EventReleased]+count[core.EventLost]; a != b || b == 0 {
			t.Errorf("%d locks were acquired, %d ended", a, b)
		}
		for _, kind := range []core.EventKind{core.EventAcquired, core.EventBusy, core.EventFailed, core.EventReleased, core.EventLost} {
			if count[kind] == 0 {
				t.Errorf("nothing was %s: %v", kinds[kind], count)
			}
		}
	})
}

func TestLogLevels(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		logged := &records{}
		l := s.locker(core.Logger(logged.logger()))
		lost := take(t, background, l, "lost")
		s.fail(renew, refuse("OOM"))
		overdue := take(t, background, l, "overdue", core.MaxHold(11*time.Second))
		time.Sleep(11 * time.Second)
		for range 2 {
			if freed, err := l.ForceUnlock(background, "lost"); err != nil {
				t.Error(freed, err)
			}
		}
		<-lost.Context().Done()
		synctest.Wait()
		wantErr(t, lost.Unlock(background), core.ErrLost)
		unlock(t, overdue)
		levels := map[string]slog.Level{}
		for _, rec := range logged.lines {
			levels[rec.Message] = rec.Level
		}
		for message, want := range map[string]slog.Level{
			"latchkey: a renewal failed and is repeated":           slog.LevelWarn,
			"latchkey: a lock is held longer than MaxHold permits": slog.LevelWarn,
			"latchkey: a lock was lost while held":                 slog.LevelError,
			"latchkey: a lock was freed by ForceUnlock":            slog.LevelInfo,
		} {
			if level, ok := levels[message]; !ok || level != want || logged.count(message) != 1 {
				t.Errorf("%s: %d times, level %v; want %v", message, logged.count(message), level, want)
			}
		}
	})
}

func TestBadObservers(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		_, err := core.New(s.client(), core.Observe(nil))
		wantMisuse(t, err, "Observe")
		_, err = s.locker().Lock(background, "k", core.Observe(&ear{}))
		wantMisuse(t, err, "option of New")
		if errors.Is(err, core.ErrInvalidKey) {
			t.Error(err)
		}
	})
}

// All events of a call and of its lock have the form that the call asks for, so that gauges go
// back to 0.
func TestObserversHearTheForm(t *testing.T) {
	for form, opts := range map[string][]core.Option{"exclusive": nil, "shared": {core.Shared()}, "permits": {core.Permits(1)}} {
		t.Run(form, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				o := &ear{}
				l := s.locker(core.Observe(o))
				outer := take(t, background, s.locker(), "k", core.MaxHold(time.Second)) // of another Locker, which the next one enters
				k := take(t, outer.Context(), l, "k", opts...)
				take(t, k.Context(), l, "k", opts...)
				_, err := l.TryLock(background, "k", opts...)
				wantBusy(t, err)
				adapter.Notify(background, l, core.Event{Kind: core.EventRefused, Err: err}, opts...)
				time.Sleep(time.Minute)
				synctest.Wait()
				heard := map[string]bool{}
				for _, e := range o.events {
					heard[kinds[e.Kind]] = true
					if e.Form != form && e.Kind < core.EventGrantMissed {
						t.Errorf("%s: form %q, want %q", line(e), e.Form, form)
					}
				}
				for _, kind := range []string{"waiting", "acquired", "busy", "overdue", "lost", "refused"} {
					if !heard[kind] {
						t.Errorf("%s was not heard", kind)
					}
				}
			})
		})
	}
}

func TestObserversHearHowManyKeysACallWants(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &ear{}
		l := s.locker(core.Observe(o))
		wants := func(keys int, of ...string) {
			t.Helper()
			for _, e := range o.events {
				if want := slices.Contains(of, kinds[e.Kind]); want != (e.Keys == keys) || !want && e.Keys != 0 {
					t.Errorf("%s: %d keys, want %d of %q", line(e), e.Keys, keys, of)
				}
			}
			o.take()
		}
		unlock(t, take(t, background, l, "a"))
		wants(1, "waiting", "acquired")
		defer unlock(t, take(t, background, s.locker(), "b"))
		_, err := l.LockAll(background, []string{"a", "b", "c", "a"}, core.NoWait())
		wantBusy(t, err)
		synctest.Wait()
		wants(3, "waiting", "acquired", "busy")
	})
}

// What a program does wrong is not told as an outage of Redis.
func TestObserversHearOfUpgradesAndTickets(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &ear{}
		l := s.locker(core.Observe(o))
		reader := take(t, background, l, "k", core.Shared())
		o.take()
		_, err := l.Lock(reader.Context(), "k")
		wantErr(t, err, core.ErrUpgrade)
		o.want(t, "upgrade", "waiting", "failed upgrade")
		_, err = l.Lock(background, "k", core.Owner(reader.ShareOwner()))
		wantErr(t, err, core.ErrUpgrade)
		o.want(t, "upgrade by Owner", "waiting", "failed upgrade")
		_, err = l.Resume(background, "other", "no ticket")
		wantErr(t, err, core.ErrTicket)
		o.want(t, "ticket", "waiting", "failed ticket")
		unlock(t, reader)
		k := take(t, background, l, "other")
		ticket, err := k.Handover(background, time.Minute)
		wantErr(t, err, nil)
		k, err = l.Resume(background, "other", ticket)
		wantErr(t, err, nil)
		unlock(t, k)
		o.want(t, "handed over", "released", "waiting", "acquired", "released", "waiting", "acquired", "released")
	})
}

// looker is an Observer that takes a Snapshot of everything at each event.
type looker struct{ locker atomic.Pointer[core.Locker] }

func (o *looker) Observe(context.Context, core.Event) context.Context {
	if l := o.locker.Load(); l != nil {
		l.Snapshot()
	}
	return nil
}

// An Observer may take a Snapshot, also when an entry of a wait queue is given up.
func TestObserverMayTakeASnapshot(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &looker{}
		l := s.locker(core.Observe(o))
		o.locker.Store(l)
		k := take(t, background, s.locker(), "k")
		ctx, cancel := context.WithCancel(background)
		reader := start(ctx, l, "k", core.Shared())
		writer := start(background, l, "k")
		cancel()
		wantErr(t, (<-reader).err, context.Canceled)
		time.Sleep(2 * time.Second)
		unlock(t, k)
		unlock(t, (<-writer).lock)
	})
}
