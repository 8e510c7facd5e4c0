//go:build go1.25

package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

func TestWaitingCallsAreServedInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		holder := take(t, background, l, "k")
		order := make(chan int, 20)
		for i := range 20 {
			go func() {
				k, err := l.Lock(background, "k")
				if err != nil {
					t.Error(err)
					return
				}
				order <- i
				time.Sleep(10 * time.Millisecond)
				unlock(t, k)
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		began := time.Now()
		unlock(t, holder)
		for want := range 20 {
			if got := <-order; got != want {
				t.Fatalf("call %d was served as number %d", got, want)
			}
		}
		wantTime(t, "the last was served", time.Since(began), 190*time.Millisecond, 195*time.Millisecond)
		time.Sleep(time.Second)
	})
}

func TestOneContenderPerProcess(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		holder := take(t, background, a, "k")
		ctx, cancel := context.WithCancel(background)
		var waiting []<-chan outcome
		for range 100 {
			waiting = append(waiting, start(ctx, b, "k"))
		}
		before := len(s.commands(acquire))
		time.Sleep(30 * time.Second)
		// The head of the queue polls every 0.5 to 1 s.
		if n := len(s.commands(acquire)) - before; n > 61 {
			t.Errorf("100 waiting calls asked Redis %d times in 30 s", n)
		}
		if n := len(s.commands("subscribe")); n != 1 {
			t.Errorf("%d subscriptions; want one for all", n)
		}
		cancel()
		for _, w := range waiting {
			wantErr(t, (<-w).err, core.ErrNotAcquired, context.Canceled)
		}
		unlock(t, holder) // which may be granted to the call that is just leaving
		synctest.Wait()
		s.isFree("k")
	})
}

func TestWaitIsOver(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker(core.Wait(time.Hour))
		holder := take(t, background, a, "k")
		for name, l := range map[string]*core.Locker{"same process": a, "other process": b} {
			began := time.Now()
			_, err := l.Lock(background, "k", core.Wait(1300*time.Millisecond))
			busy := wantBusy(t, err)
			wantTime(t, name+" gave up", time.Since(began), 1300*time.Millisecond, 1300*time.Millisecond)
			if busy.Key != "k" || busy.RetryAfter != time.Second {
				t.Errorf("%s: %+v", name, busy)
			}
			wantNot(t, err, core.ErrUnavailable, context.DeadlineExceeded)
		}
		unlock(t, holder)
	})
}

// The first request counts, however long it takes.
func TestWaitCountsFromTheBeginning(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		holder := take(t, background, a, "k")
		s.fail(acquire, lateReply(600*time.Millisecond))
		first := start(background, b, "k", core.Wait(time.Second))
		second := start(background, b, "k", core.Wait(time.Second))
		for name, waiting := range map[string]<-chan outcome{"first": first, "second": second} {
			o := <-waiting
			wantBusy(t, o.err)
			wantTime(t, name+" gave up", o.took, time.Second, time.Second)
		}
		s.fail(acquire, lateReply(600*time.Millisecond))
		o := <-start(background, b, "k", core.Wait(500*time.Millisecond))
		wantBusy(t, o.err)
		wantTime(t, "who hears of it too late gave up", o.took, 600*time.Millisecond, 600*time.Millisecond)
		unlock(t, holder)
	})
}

func TestWaitOfNewIsTheDefault(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Wait(2 * time.Second))
		holder := take(t, background, l, "k")
		o := <-start(background, l, "k")
		wantBusy(t, o.err)
		wantTime(t, "gave up", o.took, 2*time.Second, 2*time.Second)
		unlock(t, holder)
	})
}

func TestWaitIsOverInTheMiddleOfTheLine(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		holder := take(t, background, l, "k")
		first := start(background, l, "k")
		second := start(background, l, "k", core.Wait(time.Second))
		third := start(background, l, "k")
		o := <-second
		wantBusy(t, o.err)
		wantTime(t, "gave up", o.took, time.Second, time.Second)
		unlock(t, holder)
		unlock(t, (<-first).lock)
		unlock(t, (<-third).lock)
	})
}

func TestNoWaitAsksOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, waits := s.locker(), s.locker(), s.locker(core.Wait(time.Hour))
		holder := take(t, background, a, "k")
		for name, refuse := range map[string]func() error{
			"NoWait":  func() error { _, err := b.Lock(background, "k", core.NoWait()); return err },
			"Wait(0)": func() error { _, err := b.Lock(background, "k", core.Wait(0)); return err },
			"TryLock": func() error { _, err := waits.TryLock(background, "k"); return err },
		} {
			before, began := s.scripts(), time.Now()
			wantBusy(t, refuse())
			if n := s.scripts() - before; n != 1 || time.Since(began) != 0 {
				t.Errorf("%s: %d scripts in %v; want one at once", name, n, time.Since(began))
			}
		}
		unlock(t, holder)
		k, err := b.TryLock(background, "k")
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, k)
	})
}

func TestMaxWaiters(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.MaxWaiters(2))
		holder := take(t, background, l, "k")
		first, second := start(background, l, "k"), start(background, l, "k")
		o := <-start(background, l, "k")
		busy := wantBusy(t, o.err)
		if o.took != 0 || busy.Key != "k" || busy.RetryAfter <= 0 || busy.RetryAfter > time.Second {
			t.Errorf("refused after %v: %+v", o.took, busy)
		}
		other := take(t, background, l, "other") // the bound is per key
		unlock(t, other)
		unlock(t, holder)
		k := (<-first).lock
		third := start(background, l, "k") // a place is free again
		waits(t, third)
		unlock(t, k)
		unlock(t, (<-second).lock)
		unlock(t, (<-third).lock)
	})
}

func TestInvariant10MaxWaitersBoundsCallsThatComeAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, l := s.locker(), s.locker(core.MaxWaiters(3))
		holder := take(t, background, a, "k")
		s.fail(acquire, lateReply(time.Second))
		ctx, cancel := context.WithCancel(background)
		var all []<-chan outcome
		for range 10 {
			all = append(all, start(ctx, l, "k"))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		refused := 0
		for _, w := range all {
			refused += len(w)
		}
		if refused != 7 {
			t.Errorf("%d of 10 were refused; want 7, for 3 may wait", refused)
		}
		cancel()
		for _, w := range all {
			<-w
		}
		unlock(t, holder)
	})
}

func TestInvariant10MaxWaitersBoundsChosenOwnersToo(t *testing.T) {
	own := []core.Option{core.Owner("o")}
	for name, opts := range map[string][2][]core.Option{"second": {nil, own}, "first": {own, nil}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker(core.MaxWaiters(1))
				holder := take(t, background, l, "k")
				first := start(background, l, "k", opts[0]...)
				waits(t, first)
				ctx, cancel := context.WithCancel(background)
				second := start(ctx, l, "k", opts[1]...)
				synctest.Wait()
				if len(second) == 0 {
					t.Error("two calls wait for one key")
				}
				cancel()
				<-second
				unlock(t, holder)
				unlock(t, (<-first).lock)
			})
		})
	}
}

// Nor may a call with an owner of its own that comes while the first one asks.
func TestInvariant10MaxWaitersBoundsOwnersThatComeWhileItAsks(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.MaxWaiters(1))
		holder := take(t, background, l, "k")
		s.fail(acquire, lateReply(100*time.Millisecond))
		first := start(background, l, "k")
		second := start(background, l, "k", core.Owner("o"))
		time.Sleep(time.Second)
		if n := len(first) + len(second); n != 1 {
			t.Errorf("%d of two calls were refused", n)
		}
		unlock(t, holder)
		refused := 0
		for range 2 {
			var o outcome
			select {
			case o = <-first:
			case o = <-second:
			}
			if o.err == nil {
				unlock(t, o.lock)
				continue
			}
			wantBusy(t, o.err)
			refused++
		}
		if refused != 1 {
			t.Errorf("%d were refused", refused)
		}
		s.isFree("k")
	})
}

func TestRetryAfter(t *testing.T) {
	for _, test := range []struct {
		name string
		hold func(*testing.T, *embedded, *core.Locker) *core.Lock
		want time.Duration
	}{
		{"renewed lease: a second", func(t *testing.T, _ *embedded, l *core.Locker) *core.Lock {
			return take(t, background, l, "k")
		}, time.Second},
		{"short renewed lease: its rest", func(t *testing.T, _ *embedded, l *core.Locker) *core.Lock {
			k := take(t, background, l, "k", core.Lease(600*time.Millisecond))
			time.Sleep(150 * time.Millisecond)
			return k
		}, 450 * time.Millisecond},
		{"fixed lease: exactly its rest", func(t *testing.T, _ *embedded, l *core.Locker) *core.Lock {
			k := take(t, background, l, "k", core.FixedLease(20*time.Second))
			time.Sleep(3 * time.Second)
			return k
		}, 17 * time.Second},
		{"window: exactly its rest", func(t *testing.T, _ *embedded, l *core.Locker) *core.Lock {
			k := take(t, background, l, "k", core.KeepFor(time.Minute))
			time.Sleep(2 * time.Second)
			unlock(t, k)
			time.Sleep(2 * time.Second)
			return nil
		}, 56 * time.Second},
		{"a lease that ends within the millisecond", func(_ *testing.T, s *embedded, _ *core.Locker) *core.Lock {
			s.HSet("lock:k", "redisson:1", "1")
			s.SetTTL("lock:k", 300*time.Microsecond)
			return nil
		}, time.Millisecond},
		{"a foreign lock without end", func(_ *testing.T, s *embedded, _ *core.Locker) *core.Lock {
			s.HSet("lock:k", "redisson:1", "1")
			return nil
		}, time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b := s.locker(), s.locker()
				k := test.hold(t, s, a)
				for name, l := range map[string]*core.Locker{"same": a, "other": b} {
					_, err := l.TryLock(background, "k")
					if got := wantBusy(t, err).RetryAfter; got != test.want {
						t.Errorf("%s Locker: RetryAfter %v; want %v", name, got, test.want)
					}
				}
				if test.want <= time.Millisecond {
					return // too short to wait for
				}
				_, err := b.Lock(background, "k", core.Wait(100*time.Millisecond))
				want := test.want
				if want != time.Second {
					want -= 100 * time.Millisecond
				}
				if got := wantBusy(t, err).RetryAfter; got != want {
					t.Errorf("after a wait: RetryAfter %v; want %v", got, want)
				}
				if k != nil {
					unlock(t, k)
				}
			})
		})
	}
}

// While this process holds the lock its waiting calls do not ask Redis at once,
// and must still know the rest of a fixed lease exactly.
func TestRetryAfterOfALocalFixedLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		holder := take(t, background, l, "k")
		first := start(background, l, "k", core.FixedLease(20*time.Second))
		second := start(background, l, "k")
		unlock(t, holder)
		k := (<-first).lock
		waits(t, second)
		_, err := l.Lock(background, "k", core.MaxWaiters(1))
		if got := wantBusy(t, err).RetryAfter; got != 20*time.Second {
			t.Errorf("RetryAfter %v; want 20s", got)
		}
		unlock(t, k)
		unlock(t, (<-second).lock)
	})
}
