//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// Readers go together, in one process and in several, and a writer goes alone.
func TestSharersGoTogether(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		readers := []*core.Lock{
			take(t, background, a, "k", core.Shared()),
			take(t, background, a, "k", core.Shared()),
			take(t, background, b, "k", core.Shared()),
		}
		_, err := b.TryLock(background, "k")
		wantBusy(t, err)
		for i, k := range readers[1:] {
			if k.Token() <= readers[i].Token() {
				t.Errorf("token %d after %d", k.Token(), readers[i].Token())
			}
		}
		writer := start(background, b, "k")
		time.Sleep(time.Millisecond) // those who come in one µs are in any order
		behind := []<-chan outcome{start(background, a, "k", core.Shared()), start(background, a, "k", core.Shared()), start(background, b, "k", core.Shared())}
		time.Sleep(time.Minute) // they are renewed
		waits(t, writer)
		unlock(t, readers...)
		k := (<-writer).lock
		for _, done := range behind {
			waits(t, done)
		}
		time.Sleep(time.Minute)
		unlock(t, k)
		began := time.Now()
		for _, done := range behind {
			o := <-done
			if o.err != nil {
				t.Fatal(o.err)
			}
			defer unlock(t, o.lock)
		}
		wantTime(t, "all share it", time.Since(began), 0, prompt)
	})
}

// A release does not enter the wait of a call into the queue that has got the lock beside it: the
// lock would be granted to it once more, for a second.
func TestReleaseBesideAcquisition(t *testing.T) {
	for what, tc := range map[string]struct {
		acquire, release fault
		has              bool
	}{
		"the call has the lock already": {lateReply(5 * time.Millisecond), nil, true},
		"the call has had the lock":     {lateRequest(time.Millisecond), lateRequest(5 * time.Millisecond), false},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b := s.locker(), s.locker()
				k := take(t, background, a, "k")
				one, two := start(background, a, "k", core.Shared()), start(background, a, "k", core.Shared())
				time.Sleep(time.Millisecond)
				s.fail(acquire, tc.acquire)
				s.fail(release, nil, tc.release)
				unlock(t, k)
				first := <-one
				synctest.Wait() // the other asks
				go unlock(t, first.lock)
				second := <-two
				if !tc.has {
					unlock(t, second.lock)
				}
				time.Sleep(10 * time.Millisecond)
				writer := start(background, b, "k")
				if tc.has {
					time.Sleep(time.Minute)
					waits(t, writer)
					unlock(t, second.lock)
				}
				began := time.Now()
				unlock(t, (<-writer).lock)
				wantTime(t, "the writer gets the lock", time.Since(began), 0, prompt)
			})
		})
	}
}

// A lock that was granted to a call that left just then is not given to the next one, which wants
// another form.
func TestGrantOfAnotherForm(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		for range 300 {
			k := take(t, background, a, "k")
			ctx, leave := context.WithCancel(background)
			leaves := start(ctx, b, "k", core.Shared())
			time.Sleep(time.Millisecond)
			stays := start(background, b, "k")
			time.Sleep(time.Millisecond)
			go leave()
			unlock(t, k)
			if o := <-leaves; o.err == nil {
				unlock(t, o.lock)
			}
			o := <-stays
			if o.err != nil {
				t.Fatal(o.err)
			}
			if got, err := a.Inspect(background, "k"); err != nil || got.Form != "exclusive" {
				t.Fatalf("the lock of the call is %+v: %v", got, err)
			}
			unlock(t, o.lock)
		}
	})
}

// So many have a permit, of several processes, and the next one gets it at once.
func TestPermitsBoundTheHolders(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		lockers, outside := []*core.Locker{s.locker(), s.locker(), s.locker()}, s.locker()
		var holding []*core.Lock
		for range 3 {
			holding = append(holding, take(t, background, outside, "k", core.Permits(3)))
		}
		var waiting []<-chan outcome
		for i := range 9 {
			waiting = append(waiting, start(background, lockers[i%3], "k", core.Permits(3)))
			time.Sleep(time.Millisecond) // those who come in one µs are in any order
		}
		for len(waiting) > 0 {
			time.Sleep(7 * time.Second)
			unlock(t, holding[0])
			began := time.Now()
			o := <-waiting[0]
			if o.err != nil {
				t.Fatal(o.err)
			}
			wantTime(t, "the first one has the permit", time.Since(began), 0, prompt)
			holding, waiting = append(holding[1:], o.lock), waiting[1:]
			for _, done := range waiting {
				waits(t, done)
			}
		}
		unlock(t, holding...)
	})
}

// Those who come first are not overtaken by calls of the process that has unlocked, as those of
// exclusive locks are for a moment: nobody knows how many hold a lock but Redis.
func TestFormsAreNotHandedOffInMemory(t *testing.T) {
	for what, tc := range map[string]struct{ own, other []core.Option }{
		"a writer": {[]core.Option{core.Shared()}, nil},
		"a permit": {[]core.Option{core.Permits(1)}, []core.Option{core.Permits(1)}},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b := s.locker(), s.locker()
				k := take(t, background, a, "k", tc.own...)
				other := start(background, b, "k", tc.other...)
				time.Sleep(time.Millisecond)
				own := start(background, a, "k", tc.own...)
				time.Sleep(time.Millisecond)
				unlock(t, k)
				first := (<-other).lock
				waits(t, own)
				unlock(t, first)
				unlock(t, (<-own).lock)
			})
		})
	}
}

// A context that has the lock in some form enters it, or would wait for itself.
func TestFormsOfNestedCalls(t *testing.T) {
	none, shared, three := []core.Option(nil), []core.Option{core.Shared()}, []core.Option{core.Permits(3)}
	for what, tc := range map[string]struct {
		outer, inner []core.Option
		upgrade      bool
	}{
		"shared under shared":    {shared, shared, false},
		"shared under exclusive": {none, shared, false},
		"permit under exclusive": {none, three, false},
		"permit under permit":    {three, three, false},
		"exclusive under shared": {shared, none, true},
		"permit under shared":    {shared, three, true},
		"exclusive under permit": {three, none, true},
		"shared under permit":    {three, shared, true},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b := s.locker(), s.locker()
				outer := take(t, background, a, "k", tc.outer...)
				waiting := start(background, b, "k") // and is passed by
				for which, l := range map[string]*core.Locker{"the same Locker": a, "another": b} {
					inner, err := l.Lock(outer.Context(), "k", tc.inner...)
					if tc.upgrade {
						wantErr(t, err, core.ErrUpgrade)
						wantNot(t, err, core.ErrNotAcquired, core.ErrUnavailable)
						if want := `core: this context or owner already has the lock "k", shared or by permit; release it before taking it in another form`; core.Detail(err) != want {
							t.Errorf("%s; want %s", core.Detail(err), want)
						}
						continue
					}
					if err != nil {
						t.Fatalf("%s: %v", which, err)
					}
					if inner.Token() != outer.Token() {
						t.Errorf("%s: token %d in %d", which, inner.Token(), outer.Token())
					}
					if n, err := inner.Count(background); n != 2 || err != nil {
						t.Errorf("%s: %d holds, %v", which, n, err)
					}
					unlock(t, inner)
				}
				owner := outer.ShareOwner()
				inner, err := b.Lock(background, "k", append(tc.inner, core.Owner(owner))...)
				if tc.upgrade {
					wantErr(t, err, core.ErrUpgrade)
				} else if err != nil {
					t.Fatal(err)
				} else {
					unlock(t, inner)
				}
				waits(t, waiting)
				unlock(t, outer)
				unlock(t, (<-waiting).lock)
			})
		})
	}
}

// Each sharer has a lease and a loss of its own.
func TestSharersAreLostOneByOne(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		fixed := take(t, background, a, "k", core.Shared(), core.FixedLease(10*time.Second))
		long := take(t, background, b, "k", core.Shared())
		writer := start(background, b, "k")
		began := time.Now()
		at, why := endOf(fixed.Context())
		wantTime(t, "lost", at.Sub(began), 9*time.Second, 10*time.Second)
		wantErr(t, why, core.ErrLost)
		time.Sleep(time.Minute)
		waits(t, writer)
		wantErr(t, fixed.Unlock(background), core.ErrLost)
		if long.Context().Err() != nil {
			t.Error("the other one is lost, too")
		}
		s.Del("lock:k") // a loss for each
		_, why = endOf(long.Context())
		wantErr(t, why, core.ErrLost)
		unlock(t, (<-writer).lock)
	})
}

// Nobody waits longer for a holder that died than its lease.
func TestDeadHolderEndsWithItsLease(t *testing.T) {
	for what, opts := range map[string][]core.Option{"shared": {core.Shared()}, "permits": {core.Permits(2)}} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				live, dead := s.locker(), s.locker()
				take(t, background, dead, "k", append(opts, core.FixedLease(20*time.Second))...)
				k := take(t, background, live, "k", opts...)
				if what == "shared" {
					unlock(t, k)
					opts = nil
				}
				o := <-start(background, live, "k", opts...)
				wantTime(t, "the place of the dead is free", o.took, 20*time.Second-prompt, 21*time.Second)
				unlock(t, o.lock)
				if what == "permits" {
					unlock(t, k)
				}
			})
		})
	}
}

// Nor does it last longer because others look whether it has ended.
func TestDeadHolderIsNotKeptByThoseWhoAsk(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		const lease = time.Second
		live, dead := s.locker(), s.locker()
		began := time.Now()
		take(t, background, dead, "k", core.Permits(2), core.FixedLease(lease))
		last := take(t, background, live, "k", core.Permits(2))
		defer unlock(t, last)
		for time.Since(began) < 3*lease {
			if k, err := live.TryLock(background, "k", core.Permits(2)); err == nil {
				defer unlock(t, k)
				break
			}
			time.Sleep(300 * time.Microsecond)
		}
		wantTime(t, "the permit of the dead is free", time.Since(began), lease-prompt, lease+prompt)
	})
}

func TestFormsThatDoNotGo(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		for what, opts := range map[string][]core.Option{
			"both":            {core.Shared(), core.Permits(3)},
			"both, turned":    {core.Permits(3), core.Shared()},
			"shared window":   {core.KeepFor(time.Minute), core.Shared()},
			"permit's window": {core.Permits(2), core.KeepFor(time.Minute)},
			"no permit":       {core.Permits(0)},
			"too many":        {core.Permits(10_001)},
		} {
			if k, err := l.Lock(background, "k", opts...); err == nil {
				t.Errorf("%s: took %v", what, k)
			}
		}
	})
}

// A call with Permits that gets none says so, and others do not.
func TestNoPermit(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		three := core.Permits(3)
		for _, observed := range [][]core.Option{nil, {core.Observe(new(ear))}} {
			l := s.locker(observed...)
			var holding []*core.Lock
			for range 3 {
				holding = append(holding, take(t, background, l, "k", three))
			}
			_, err := l.TryLock(background, "k", three)
			wantBusy(t, err)
			wantErr(t, err, core.ErrNoPermit)
			_, err = l.LockAll(background, []string{"j", "k"}, three, core.NoWait())
			wantErr(t, err, core.ErrNoPermit)
			_, err = l.TryLock(background, "k")
			wantBusy(t, err)
			wantNot(t, err, core.ErrNoPermit)
			_, err = l.TryLock(background, "k", core.Shared())
			wantNot(t, err, core.ErrNoPermit)

			ctx, cancel := context.WithTimeout(background, time.Second)
			_, err = l.Lock(ctx, "k", three)
			wantErr(t, err, core.ErrNoPermit, core.ErrNotAcquired, context.DeadlineExceeded)
			_, err = l.Lock(ctx, "k")
			wantNot(t, err, core.ErrNoPermit)
			_, err = l.Lock(background, "", three)
			wantNot(t, err, core.ErrNoPermit)
			cancel()
			unlock(t, holding...)
		}
	})
}

// While many wait, a permit changes hands by two commands: a release, and the question by which the
// next call of the process that has got it takes a place in the queue.
func TestPermitsChangeHandsByTwoCommands(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		ctx, stop := context.WithCancel(background)
		var workers sync.WaitGroup
		var cycles atomic.Int64
		for i := range 3 {
			l := s.locker()
			for range 8 {
				workers.Go(func() {
					for ctx.Err() == nil {
						k := take(t, background, l, "k", core.Permits(3))
						time.Sleep(time.Duration(1+i) * time.Millisecond)
						unlock(t, k)
						cycles.Add(1)
					}
				})
			}
		}
		time.Sleep(time.Second) // they have subscribed
		before, begun := s.scripts(), cycles.Load()
		time.Sleep(time.Second)
		if sent, ended := s.scripts()-before, cycles.Load()-begun; ended < 1000 || float64(sent) > 2.05*float64(ended) {
			t.Errorf("%d commands for %d cycles", sent, ended)
		}
		stop()
		workers.Wait()
	})
}

// Calls that find room are not counted among those that wait.
func TestThoseWhoFindRoomGoAtOnce(t *testing.T) {
	for what, form := range map[string]core.Option{"shared": core.Shared(), "permits": core.Permits(10)} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				s.failAll(lateReply(100*time.Millisecond), acquire)
				l := s.locker()
				var going []<-chan outcome
				for range 10 {
					going = append(going, start(background, l, "k", form, core.MaxWaiters(1)))
				}
				for _, done := range going {
					o := <-done
					if o.err != nil {
						t.Fatal(o.err)
					}
					defer unlock(t, o.lock)
				}
			})
		})
	}
}

// Of calls that are refused at once, when the first of them learns that the lock is busy, each
// learns of its own form.
func TestTooManyWaitingForAPermit(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		for range 10 {
			k := take(t, background, l, "k")
			var waiting []<-chan outcome
			for i := range 6 {
				opts := []core.Option{core.MaxWaiters(1), core.Permits(3)}
				waiting = append(waiting, start(background, l, "k", opts[:1+i%2]...))
			}
			time.Sleep(time.Second)
			unlock(t, k)
			for i, done := range waiting {
				switch o := <-done; {
				case o.err == nil:
					unlock(t, o.lock)
				case errors.Is(o.err, core.ErrNoPermit) != (i%2 == 1):
					t.Errorf("%d: %v", i, o.err)
				}
			}
		}
	})
}

// A default that nothing can take back would leave no lock that excludes.
func TestFormsAreNotForNew(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer client.Close()
	for what, opt := range map[string]core.Option{"Shared": core.Shared(), "Permits": core.Permits(3)} {
		if _, err := core.New(client, opt); err == nil || !strings.Contains(err.Error(), what+" is for a call") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A call that has given up leaves nothing behind, whatever its form.
func TestGivenUpFormsLeaveNothing(t *testing.T) {
	for what, opt := range map[string]core.Option{"shared": core.Shared(), "permits": core.Permits(1)} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b := s.locker(), s.locker()
				k := take(t, background, a, "k")
				ctx, cancel := context.WithCancel(background)
				waiting := start(ctx, b, "k", opt)
				time.Sleep(time.Millisecond)
				other := start(background, b, "k")
				cancel()
				wantErr(t, (<-waiting).err, core.ErrNotAcquired, context.Canceled)
				unlock(t, k)
				unlock(t, (<-other).lock)
				time.Sleep(time.Second)
				if s.Exists("lock:k") {
					t.Error("the lock is there")
				}
			})
		})
	}
}
