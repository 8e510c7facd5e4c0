//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// wantDeadlock returns the refusal of a call that closed a circle.
func wantDeadlock(t *testing.T, err error, circle ...string) *core.BusyError {
	t.Helper()
	wantErr(t, err, core.ErrDeadlock, core.ErrNotAcquired)
	busy := wantBusy(t, err)
	if !slices.Equal(busy.Circle, circle) || busy.Key != circle[0] {
		t.Errorf("the circle of %q is %q; want %q", busy.Key, busy.Circle, circle)
	}
	return busy
}

// Calls that wait for one another in a circle would wait for ever: the one that closes it is
// refused at once, and the others go on when it is done.
func TestDeadlockIsFoundAtOnce(t *testing.T) {
	for _, length := range []int{2, 3, 7} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				lockers := []*core.Locker{s.locker(), s.locker()} // of one process
				locker := func(i int) *core.Locker { return lockers[i%len(lockers)] }
				var keys []string
				var held []*core.Lock
				for i := range length {
					keys = append(keys, "k"+fmt.Sprint(i))
					held = append(held, take(t, background, locker(i), keys[i]))
				}
				var waiting []<-chan outcome // each for what the next one holds
				for i := range length - 1 {
					done := start(held[i].Context(), locker(i+1), keys[i+1], core.Wait(time.Hour))
					waits(t, done)
					waiting = append(waiting, done)
				}
				last := held[length-1]
				before := len(s.commands(acquire))
				o := <-start(last.Context(), locker(length), keys[0])
				busy := wantDeadlock(t, o.err, keys...)
				if o.took != 0 || len(s.commands(acquire)) != before {
					t.Errorf("after %v and %d commands", o.took, len(s.commands(acquire))-before)
				}
				if !slices.Equal(busy.HeldKeys, keys[length-1:]) || busy.RetryAfter <= 0 {
					t.Errorf("it holds %q; try again in %v", busy.HeldKeys, busy.RetryAfter)
				}
				for _, w := range waiting {
					waits(t, w)
				}
				unlock(t, last)
				for i := length - 2; i >= 0; i-- {
					o := <-waiting[i]
					if o.err != nil {
						t.Fatal(o.err)
					}
					unlock(t, o.lock, held[i])
				}
			})
		})
	}
}

// What looks like a circle, and ends by itself.
func TestNoDeadlock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		a, b := take(t, background, l, "a"), take(t, background, l, "b")
		forB := start(a.Context(), l, "b")
		waits(t, forB)

		_, err := l.TryLock(b.Context(), "a") // never waits
		wantNot(t, err, core.ErrDeadlock)
		wantBusy(t, err)
		stranger := start(background, l, "a")
		detached := start(core.Detach(b.Context()), l, "a", core.Wait(time.Second))
		waits(t, detached) // holds nothing
		if o := <-detached; errors.Is(o.err, core.ErrDeadlock) {
			t.Error(o.err)
		}
		for _, enters := range []<-chan outcome{
			start(b.Context(), l, "b"), start(b.Context(), s.locker(), "b"), // past those that wait
			start(b.Context(), l, "a", core.Owner(a.ShareOwner())),
		} {
			o := <-enters
			if o.err != nil {
				t.Fatal(o.err)
			}
			unlock(t, o.lock)
		}

		unlock(t, b)
		inB := (<-forB).lock
		noMore := context.WithoutCancel(b.Context()) // holds nothing any more
		after := start(noMore, l, "a", core.Wait(time.Second))
		waits(t, after)
		wantNot(t, (<-after).err, core.ErrDeadlock)
		unlock(t, inB)

		// Whoever waits does not hold any more what was unlocked meanwhile.
		c, d := take(t, background, l, "c"), take(t, background, l, "d")
		forD := start(context.WithoutCancel(c.Context()), l, "d")
		waits(t, forD)
		unlock(t, c)
		c = take(t, background, l, "c")
		forC := start(d.Context(), l, "c")
		waits(t, forC)
		unlock(t, c)
		unlock(t, (<-forC).lock, d)
		unlock(t, (<-forD).lock)

		// Nor what was lost.
		c, d = take(t, background, l, "c"), take(t, background, l, "d")
		forD = start(context.WithoutCancel(c.Context()), l, "d")
		waits(t, forD)
		if _, err := l.ForceUnlock(background, "c"); err != nil {
			t.Error(err)
		}
		_, cause := endOf(c.Context())
		wantErr(t, cause, core.ErrLost)
		unlock(t, take(t, d.Context(), l, "c"), d)
		unlock(t, (<-forD).lock)
		wantErr(t, c.Unlock(background), core.ErrLost)
		unlock(t, a)
		unlock(t, (<-stranger).lock)
	})
}

// Who shares a lock waits behind one that waits for it alone, and that one for all who share it.
func TestDeadlockThroughACallThatWaits(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		for what, write := range map[string]func() error{
			"Lock":          func() error { return l.Do(background, "A", noWork) },
			"a long Wait":   func() error { return l.Do(background, "A", noWork, core.Wait(math.MaxInt64)) },
			"a long time":   func() error { return l.Do(within(math.MaxInt64), "A", noWork) },
			"a campaign":    func() error { return l.Lead(background, "A", noWork) },
			"one for a day": func() error { return l.Lead(within(25*time.Hour), "A", noWork) },
		} {
			one, two := take(t, background, l, "A", core.Shared()), take(t, background, l, "B")
			writer := make(chan error, 1)
			go func() { writer <- write() }()
			time.Sleep(time.Millisecond)
			inner := start(one.Context(), l, "B", core.Wait(math.MaxInt64))
			time.Sleep(time.Millisecond)
			began := time.Now()
			_, err := l.Lock(two.Context(), "A", core.Shared())
			if !errors.Is(err, core.ErrDeadlock) || time.Since(began) > 0 {
				t.Errorf("behind %s: after %v %v", what, time.Since(began), err)
			}
			unlock(t, two)
			o := <-inner
			wantErr(t, o.err)
			unlock(t, o.lock, one)
			wantErr(t, <-writer)
		}
	})
}

func noWork(context.Context) error { return nil }

// A call that waits for a time only is no part of a circle: when it has gone, the others go on.
func TestNoDeadlockThroughACallWhoseWaitEnds(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		third := take(t, background, l, "C")
		for what, wait := range map[string]struct {
			ctx  context.Context
			opts []core.Option
		}{
			"Wait":     {background, []core.Option{core.Wait(time.Second)}},
			"deadline": {within(time.Second), nil},
			"lease":    {third.Context(), []core.Option{core.Lease(time.Second)}},
		} {
			one, two := take(t, background, l, "A", core.Shared()), take(t, background, l, "B")
			writer := start(wait.ctx, l, "A", wait.opts...)
			time.Sleep(time.Millisecond)
			inner := start(one.Context(), l, "B")
			time.Sleep(time.Millisecond)
			k, err := l.Lock(two.Context(), "A", core.Shared())
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			wantErr(t, (<-writer).err, core.ErrNotAcquired)
			unlock(t, k, two)
			unlock(t, (<-inner).lock, one)
		}
		unlock(t, third)
	})
}

// A call that has given up is not in the way any more.
func TestDeadlockGoesWithACallThatGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		a, b := take(t, background, l, "a"), take(t, background, l, "b")
		ctx, cancel := context.WithCancel(a.Context())
		defer cancel()
		for _, wait := range []time.Duration{time.Second, time.Hour} {
			forB := start(ctx, l, "b", core.Wait(wait))
			waits(t, forB)
			_, err := l.Lock(b.Context(), "a")
			wantDeadlock(t, err, "a", "b")
			if wait == time.Hour {
				cancel()
			}
			wantErr(t, (<-forB).err, core.ErrNotAcquired)
			forA := start(b.Context(), l, "a", core.Wait(time.Second))
			waits(t, forA)
			wantNot(t, (<-forA).err, core.ErrDeadlock)
		}
		unlock(t, a, b)
	})
}

// A circle goes through any goroutine that works under a lock, and through holds that were
// entered again.
func TestDeadlockThroughGoroutinesAndReentries(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		a, b := take(t, background, l, "a"), take(t, background, l, "b")
		other := take(t, a.Context(), l, "other")
		again := take(t, other.Context(), l, "a")
		forC := start(a.Context(), l, "c") // a goroutine that gets what it wants
		unlock(t, (<-forC).lock)
		forB := start(again.Context(), l, "b")
		waits(t, forB)
		_, err := l.Lock(b.Context(), "a")
		busy := wantDeadlock(t, err, "a", "b")
		if !slices.Equal(busy.HeldKeys, []string{"b"}) {
			t.Errorf("it holds %q", busy.HeldKeys)
		}
		_, err = l.Lock(b.Context(), "other")
		wantDeadlock(t, err, "other", "b")
		unlock(t, b)
		o := <-forB
		unlock(t, o.lock, again, other, a)
	})
}

// Taken out, the search visits each way through the calls: 10^9 of them.
func TestDeadlockAmongManyCalls(t *testing.T) {
	const length, width = 9, 10
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		var held []*core.Lock
		for i := range length {
			held = append(held, take(t, background, l, fmt.Sprint(i)))
		}
		ctx, cancel := context.WithCancel(background)
		var calls sync.WaitGroup
		for i, k := range held[1:] {
			for range width {
				calls.Go(func() {
					both, end := context.WithCancel(held[i].Context())
					defer end()
					context.AfterFunc(ctx, end)
					_, err := l.Lock(both, k.Key(), core.Wait(time.Hour))
					wantErr(t, err, context.Canceled)
				})
			}
		}
		synctest.Wait()
		outside := take(t, background, l, "outside")
		_, err := l.Lock(outside.Context(), "0", core.Wait(time.Second))
		wantBusy(t, err)
		wantNot(t, err, core.ErrDeadlock)
		_, err = l.Lock(held[length-1].Context(), "0")
		wantErr(t, err, core.ErrDeadlock)
		cancel()
		calls.Wait()
		unlock(t, append(held, outside)...)
	})
}

// Somebody who names another owner for what its own context holds waits for itself.
func TestDeadlockWithItself(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k")
		_, err := l.Lock(k.Context(), "k", core.Owner("somebody else"))
		wantDeadlock(t, err, "k")
		unlock(t, k)
	})
}

// Locks of one name in two Redis are two locks.
func TestNoDeadlockBetweenTwoRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, other := newEmbedded(t), newEmbedded(t)
		here, there := s.locker(), other.locker()
		a, b := take(t, background, here, "a"), take(t, background, there, "b")
		forB := start(a.Context(), there, "b")
		waits(t, forB)
		o := <-start(b.Context(), there, "a")
		if o.err != nil {
			t.Fatal(o.err)
		}
		_, err := here.Lock(o.lock.Context(), "a") // through both
		wantDeadlock(t, err, "a", "b")
		unlock(t, o.lock, b)
		o = <-forB
		unlock(t, o.lock, a)
	})
}

// A circle may go through other processes, of which this one knows nothing: an inner call
// waits for its lease at most, says what it held, and the log tells of it after 5 s.
func TestInnerCallWaitsForALeaseAtMost(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		logged := &records{}
		here := s.locker(core.Logger(logged.logger()), core.Lease(12*time.Second))
		busy := take(t, background, s.locker(), "busy")
		outer := take(t, background, here, "outer")
		middle := take(t, outer.Context(), here, "middle")
		again := take(t, middle.Context(), here, "outer")
		for want, opts := range map[time.Duration][]core.Option{
			12 * time.Second: nil,
			20 * time.Second: {core.Lease(20 * time.Second)},
			time.Minute:      {core.Wait(time.Minute)},
			3 * time.Second:  {core.Wait(3 * time.Second)},
		} {
			before := logged.count("while its context holds others")
			ctx, cancel := context.WithTimeout(again.Context(), time.Hour)
			o := start(ctx, here, "busy", opts...)
			time.Sleep(5*time.Second - time.Millisecond)
			if n := logged.count("while its context holds others"); n != before {
				t.Errorf("a wait of %v is told before its time", want)
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			told := logged.count("while its context holds others") - before
			if warns := map[bool]int{true: 1}[want > 5*time.Second]; told != warns {
				t.Errorf("a wait of %v is told %d times after 5 s; want %d", want, told, warns)
			}
			got := <-o
			wantTime(t, "the wait ended", got.took, want, want+time.Second)
			cancel()
			refused := wantBusy(t, got.err)
			wantNot(t, got.err, core.ErrDeadlock)
			if !slices.Equal(refused.HeldKeys, []string{"outer", "middle"}) || !strings.Contains(core.Detail(got.err), `["outer" "middle"]`) {
				t.Errorf("it held %q: %s", refused.HeldKeys, core.Detail(got.err))
			}
		}
		unlock(t, again, middle, outer)

		unbounded := start(context.WithoutCancel(again.Context()), here, "busy") // holds nothing any more
		time.Sleep(time.Minute)
		waits(t, unbounded)
		unlock(t, busy)
		unlock(t, (<-unbounded).lock)
	})
}

func TestDeadlockIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		logged := &records{}
		l := s.locker(core.Logger(logged.logger()))
		a, b := take(t, background, l, "ann"), take(t, background, l, "bob")
		forB := start(a.Context(), l, "bob")
		_, err := l.Lock(b.Context(), "ann")
		wantDeadlock(t, err, "ann", "bob")
		if want := "core: lock not acquired: calls wait for one another in a circle; take their locks together, with LockAll"; err.Error() != want {
			t.Errorf("a client sees %q; want %q", err, want)
		}
		if want := `core: lock "ann" not acquired: calls wait for one another in a circle; take their locks together, with LockAll; its context holds ["bob"]; the circle waits for ["ann" "bob"]`; core.Detail(err) != want {
			t.Errorf("the log has %s; want %s", core.Detail(err), want)
		}
		if n := logged.count("wait for one another in a circle"); n != 1 {
			t.Errorf("%d log lines", n)
		}
		unlock(t, b)
		o := <-forB
		unlock(t, o.lock, a)
	})
}

// However many calls take however many locks in whatever order: none waits until something
// ends that is not a call's work.
func TestCallsInAnyOrderGoOn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		lockers := []*core.Locker{s.locker(), s.locker()}
		keys := []string{"a", "b", "c", "d", "e"}
		var deadlocks, done atomic.Int64
		var calls sync.WaitGroup
		for i := range 30 {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			var nest func(ctx context.Context, depth int) error
			nest = func(ctx context.Context, depth int) error {
				time.Sleep(time.Duration(random.IntN(3000)) * time.Microsecond)
				if depth == 0 {
					done.Add(1)
					return nil
				}
				opts := [][]core.Option{nil, nil, {core.Wait(20 * time.Millisecond)}}[random.IntN(3)]
				return lockers[random.IntN(2)].Do(ctx, keys[random.IntN(len(keys))], func(ctx context.Context) error {
					return nest(ctx, depth-1)
				}, opts...)
			}
			calls.Go(func() {
				for range 20 {
					began := time.Now()
					err := nest(background, 3)
					if took := time.Since(began); took > 5*time.Second {
						t.Errorf("%v after %v", err, took)
					}
					switch busy := (*core.BusyError)(nil); {
					case errors.Is(err, core.ErrDeadlock):
						deadlocks.Add(1)
					case err != nil && !errors.As(err, &busy):
						t.Error(err)
					}
				}
			})
		}
		calls.Wait()
		if deadlocks.Load() == 0 || done.Load() == 0 {
			t.Errorf("%d deadlocks, %d done", deadlocks.Load(), done.Load())
		}
		t.Logf("%d deadlocks, %d done", deadlocks.Load(), done.Load())
	})
}
