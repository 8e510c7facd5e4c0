//go:build go1.25

package core_test

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// inTurn has calls wait for a held lock, one after the other, each of which unlocks
// after a while. It returns the locks in the order in which they were taken.
func inTurn(t *testing.T, l *core.Locker, n int, hold time.Duration) <-chan *core.Lock {
	t.Helper()
	got := make(chan *core.Lock, n)
	for range n {
		go func() {
			k, err := l.Lock(background, "k")
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(hold)
			got <- k
			unlock(t, k)
		}()
		synctest.Wait() // the next one stands behind it
	}
	return got
}

// Taken out, each hand-off takes two scripts, and between them any process may take the
// lock.
func TestLockIsHandedOffInMemory(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k")
		const calls = 100
		got := inTurn(t, l, calls, time.Millisecond/2)
		before := s.scripts()
		unlock(t, k) // no time has passed: a token more would be above the clock of Redis
		tokens := []int64{k.Token()}
		for range calls {
			tokens = append(tokens, (<-got).Token())
		}
		synctest.Wait()
		if used := s.scripts() - before; used > calls*20/100 {
			t.Errorf("%d scripts for %d calls", used, calls)
		}
		if !slices.IsSorted(tokens) || len(slices.Compact(tokens)) != calls+1 {
			t.Errorf("tokens do not increase strictly: %v", tokens)
		}
		s.isFree("k")
	})
}

// waitBehind takes a lock, for which one more call waits, and holds it for a while.
func waitBehind(t *testing.T, l *core.Locker, opts ...core.Option) (*core.Lock, <-chan outcome) {
	t.Helper()
	k := take(t, background, l, "k", opts...)
	waiting := start(background, l, "k")
	waits(t, waiting)
	time.Sleep(time.Millisecond)
	return k, waiting
}

// Passed on, the lock has a life of its own: another context and token, its own loss,
// renewal and end.
func TestLockThatWasHandedOffIsAsGoodAsAnyOther(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k, waiting := waitBehind(t, l)
		before := len(s.commands(acquire))
		unlock(t, k)
		o := <-waiting
		if o.err != nil || len(s.commands(acquire)) != before {
			t.Fatalf("%v after %d acquisitions", o.err, len(s.commands(acquire))-before)
		}
		if k.Context().Err() == nil || o.lock.Context().Err() != nil {
			t.Error("the contexts of the two locks are one")
		}
		if o.lock.Token() <= k.Token() {
			t.Errorf("token %d after %d", o.lock.Token(), k.Token())
		}
		wantErr(t, k.Unlock(background), core.ErrNotHeld)
		time.Sleep(time.Minute) // two leases
		if err := o.lock.Context().Err(); err != nil {
			t.Fatalf("it was not renewed: %v", context.Cause(o.lock.Context()))
		}
		inner := take(t, o.lock.Context(), l, "k")
		if n, err := inner.Count(background); n != 2 || err != nil {
			t.Errorf("%d holds, %v", n, err)
		}
		unlock(t, inner)
		s.Del("lock:k")
		<-o.lock.Context().Done()
		wantErr(t, o.lock.Unlock(background), core.ErrLost)
	})
}

// Redis hears of the tokens that calls of the process have had: those that it gives later
// are greater, also when its clock was set back meanwhile.
// Taken out, two holders have one token.
func TestTokensOfHandOffsReachRedis(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, s *embedded, k *core.Lock){
		"released": func(t *testing.T, _ *embedded, k *core.Lock) { unlock(t, k) },
		"unlocked by force": func(t *testing.T, s *embedded, _ *core.Lock) {
			if ok, err := s.locker().ForceUnlock(background, "k"); !ok || err != nil {
				t.Error(ok, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				k := take(t, background, l, "k")
				for range 3 {
					waiting := start(background, l, "k")
					waits(t, waiting)
					time.Sleep(time.Millisecond)
					unlock(t, k)
					k = (<-waiting).lock
				}
				s.setBack(time.Hour)
				end(t, s, k)
				next := take(t, background, s.locker(), "k")
				if next.Token() <= k.Token() {
					t.Errorf("token %d after %d", next.Token(), k.Token())
				}
				unlock(t, next)
			})
		})
	}
}

// A token that is ahead of the clock of Redis is followed by the next number: that must not
// be one that a call has had to which the lock was passed on.
// Taken out, two holders have one token after a lock has ended without its release.
func TestTokensAheadOfTheClockAreNotHandedOff(t *testing.T) {
	for name, opts := range map[string][]core.Option{"usual": nil, "of another lease": {core.Lease(time.Second)}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				ahead := time.Now().Add(time.Hour).UnixMicro()
				if err := s.Set(clockOf("lock:k"), strconv.FormatInt(ahead, 10)); err != nil {
					t.Fatal(err)
				}
				l := s.locker()
				k := take(t, background, l, "k", opts...)
				for range 3 {
					waiting := start(background, l, "k", opts...)
					waits(t, waiting)
					time.Sleep(time.Millisecond)
					unlock(t, k)
					k = (<-waiting).lock
				}
				s.Del("lock:k")
				next := take(t, background, s.locker(), "k")
				if k.Token() <= ahead || next.Token() <= k.Token() {
					t.Errorf("token %d after %d", next.Token(), k.Token())
				}
				unlock(t, next)
				wantErr(t, k.Unlock(background), core.ErrLost)
			})
		})
	}
}

// A lock that is lost goes to nobody: the call that waits gets its own from Redis.
func TestLostLockIsNotHandedOff(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		k, waiting := waitBehind(t, s.locker())
		if ok, err := s.locker().ForceUnlock(background, "k"); !ok || err != nil {
			t.Fatal(ok, err)
		}
		time.Sleep(11 * time.Second) // a renewal has found out
		wantErr(t, k.Unlock(background), core.ErrLost)
		o := <-waiting
		if o.err != nil {
			t.Fatal(o.err)
		}
		unlock(t, o.lock)
		s.isFree("k")
	})
}

// What Redis would have to know of the next holder is asked of Redis.
func TestOnlyALockThatIsTheSameIsHandedOff(t *testing.T) {
	type setUp struct {
		holder, next []core.Option
		meanwhile    func(t *testing.T, s *embedded, k *core.Lock) (end func())
	}
	for name, c := range map[string]setUp{
		"the same":         {},
		"bounded":          {holder: []core.Option{core.MaxHold(time.Minute)}, next: []core.Option{core.MaxHold(time.Hour)}},
		"another lease":    {next: []core.Option{core.Lease(time.Minute)}},
		"a fixed lease":    {next: []core.Option{core.FixedLease(30 * time.Second)}},
		"of a fixed lease": {holder: []core.Option{core.FixedLease(30 * time.Second)}},
		"a window":         {next: []core.Option{core.KeepFor(time.Minute)}},
		"of an owner":      {holder: []core.Option{core.Owner("job")}},
		"an owner":         {next: []core.Option{core.Owner("job")}},
		"an owner's name":  {holder: []core.Option{adapter.OwnerBegin("job")}},
		"to a named owner": {next: []core.Option{adapter.OwnerBegin("job")}},
		"an owner that is known": {meanwhile: func(t *testing.T, s *embedded, k *core.Lock) func() {
			shared := take(t, background, s.locker(), "k", core.Owner(k.ShareOwner()))
			return func() { unlock(t, shared) }
		}},
		"entered by another Locker": {meanwhile: func(t *testing.T, s *embedded, k *core.Lock) func() {
			inner := take(t, k.Context(), s.locker(), "k")
			return func() { unlock(t, inner) }
		}},
		"a window that failed": {holder: []core.Option{core.KeepFor(time.Minute)}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				k := take(t, background, l, "k", c.holder...)
				waiting := start(background, l, "k", c.next...)
				waits(t, waiting)
				time.Sleep(time.Millisecond)
				end := func() {}
				if c.meanwhile != nil {
					end = c.meanwhile(t, s, k)
				}
				before := len(s.commands(release))
				if err := k.Abort(background); err != nil {
					t.Error(err)
				}
				if c.meanwhile != nil {
					waits(t, waiting) // somebody is inside
				}
				end()
				o := <-waiting
				if o.err != nil {
					t.Fatal(o.err)
				}
				passed := len(s.commands(release)) == before
				if want := name == "the same" || name == "bounded"; passed != want {
					t.Errorf("passed on: %v", passed)
				}
				if err := o.lock.Abort(background); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				s.isFree("k")
			})
		})
	}
}

// A process in which calls never cease to wait leaves the lock to others in time.
// Taken out, the others wait for ever.
func TestOtherProcessesGetTheirTurn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		greedy, other := s.locker(), s.locker()
		ctx, cancel := context.WithCancel(background)
		k := take(t, background, greedy, "k")
		taken := 0 // by the greedy one; whoever has the lock counts
		for range 5 {
			go func() {
				for ctx.Err() == nil {
					k, err := greedy.Lock(ctx, "k")
					if err != nil {
						return
					}
					taken++
					time.Sleep(2 * time.Millisecond)
					unlock(t, k)
				}
			}()
		}
		waiting := start(background, other, "k")
		unlock(t, k)
		for range 10 {
			o := <-waiting
			if o.err != nil {
				t.Fatal(o.err)
			}
			wantTime(t, "the other process had it", o.took, 0, 20*time.Millisecond)
			time.Sleep(time.Millisecond)
			unlock(t, o.lock)
			waiting = start(background, other, "k")
		}
		cancel()
		unlock(t, (<-waiting).lock)
		synctest.Wait()
		if n := len(s.commands(release)); taken < n {
			t.Errorf("%d locks and %d releases: little was passed on, and the test shows nothing", taken, n)
		}
	})
}

// A call that ends when the lock is passed on to it gives it to the next one.
func TestCallThatEndsPassesTheLockOn(t *testing.T) {
	for name, opts := range map[string][]core.Option{
		"cancelled": nil,
		"wait over": {core.Wait(time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				for range 50 { // whether it gets the lock just before it ends is a coin toss
					k := take(t, background, l, "k")
					ctx, cancel := context.WithCancel(background)
					first := start(ctx, l, "k", opts...)
					synctest.Wait()
					second := start(background, l, "k")
					waits(t, second)
					time.Sleep(time.Millisecond)
					cancel()
					unlock(t, k)
					if o := <-first; o.err == nil {
						unlock(t, o.lock)
					} else {
						wantErr(t, o.err, core.ErrNotAcquired)
					}
					o := <-second
					if o.err != nil {
						t.Fatal(o.err)
					}
					wantTime(t, "the next had it", o.took, 0, 10*time.Millisecond)
					unlock(t, o.lock)
				}
				synctest.Wait()
				s.isFree("k")
			})
		})
	}
}

// Close ends what is being passed on: the call that waits is refused, the lock released.
func TestCloseEndsThePassing(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k, waiting := waitBehind(t, l)
		closed := make(chan error, 1)
		go func() { closed <- l.Close(background) }()
		unlock(t, k)
		o := <-waiting
		if o.err != nil {
			wantErr(t, o.err, core.ErrClosed)
		} else {
			unlock(t, o.lock)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		s.isFree("k")
	})
}

// A dedup window keeps its key: nothing is passed on into it.
func TestWindowIsNotHandedOff(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k", core.KeepFor(time.Minute))
		waiting := start(background, l, "k", core.Wait(10*time.Second))
		time.Sleep(time.Millisecond)
		unlock(t, k)
		wantBusy(t, (<-waiting).err)
	})
}

// Two handles that are unlocked at once are both gone before either passes the lock on:
// only the last of them may.
func TestLockOfTwoHandlesIsHandedOffOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		outer := take(t, background, l, "k")
		inner := take(t, context.WithoutCancel(outer.Context()), l, "k")
		first := start(background, l, "k")
		second := start(background, l, "k")
		waits(t, second)
		time.Sleep(time.Millisecond)
		for range 100_000 { // so that inner is out for a while before it passes on
			_, cancel := context.WithCancel(inner.Context())
			defer cancel()
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			unlock(t, inner)
		}()
		<-inner.Context().Done()
		unlock(t, outer)
		<-done
		a := <-first
		waits(t, second)
		unlock(t, a.lock)
		unlock(t, (<-second).lock)
		synctest.Wait()
		s.isFree("k")
	})
}

// foreign is a context that package context watches in a goroutine. What it does when it
// is asked for a value comes while it is given a descendant.
type foreign struct {
	context.Context
	done  chan struct{}
	asked atomic.Pointer[func()]
}

func (f *foreign) Done() <-chan struct{} { return f.done }

func (f *foreign) Err() error {
	select {
	case <-f.done:
		return context.Canceled
	default:
		return nil
	}
}

func (f *foreign) Value(key any) any {
	if act := f.asked.Swap(nil); act != nil {
		(*act)()
	}
	return f.Context.Value(key)
}

// closesWhenAsked has a Locker close when the context is asked for a value, which goes on
// once new locks are refused.
func closesWhenAsked(t *testing.T, l *core.Locker, ctx *foreign) <-chan error {
	closed := make(chan error, 1)
	act := func() {
		go func() { closed <- l.Close(background) }()
		for {
			other, err := l.TryLock(background, "other")
			if err != nil {
				return
			}
			unlock(t, other)
		}
	}
	ctx.asked.Store(&act)
	return closed
}

// Close comes when a call is about to be passed the lock, and has a context for it.
// Taken out, that context is left, with the goroutine that watches for its end.
func TestCloseEndsTheContextOfALockThatIsNotHandedOff(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.open()
		k := take(t, background, l, "k")
		ctx := &foreign{Context: background, done: make(chan struct{})}
		defer close(ctx.done)
		waiting := start(ctx, l, "k")
		waits(t, waiting)
		time.Sleep(time.Millisecond)
		closed := closesWhenAsked(t, l, ctx)
		unlock(t, k)
		wantErr(t, (<-waiting).err, core.ErrClosed)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := blockedIn("propagateCancel"); n > 0 {
			t.Errorf("%d goroutines are left", n)
		}
	})
}

// Redis does not see that a lock is passed on in memory: the process still has its position
// in the queue of processes. Taken out, the release grants the lock to that, and nobody there
// waits.
func TestAfterTheLastCallHereAnotherProcessHasTheLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.locker(), s.locker()
		k, waiting := waitBehind(t, l)
		unlock(t, k)
		o := <-waiting
		time.Sleep(time.Millisecond)
		unlock(t, o.lock)
		free, err := other.TryLock(background, "k")
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, free)
	})
}

// Taken out, the inner lock has the token of the holder before: a store that has seen the
// outer's refuses it.
func TestReentryThroughAnotherLockerHasTheTokenOfTheLockThatWasHandedOff(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.locker(), s.locker()
		k, waiting := waitBehind(t, l)
		unlock(t, k)
		o := <-waiting
		inner := take(t, o.lock.Context(), other, "k")
		innermost := take(t, inner.Context(), l, "k")
		if outer := o.lock.Token(); inner.Token() != outer || innermost.Token() != outer || outer <= k.Token() {
			t.Errorf("tokens %d, then %d, and inside %d and %d", k.Token(), outer, inner.Token(), innermost.Token())
		}
		unlock(t, innermost, inner, o.lock)
	})
}
