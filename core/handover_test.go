package core_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// handovers are the scripts by which a holder gave its lock to another call.
func (s *embedded) handovers() int {
	n := 0
	for _, c := range s.commands(acquire) {
		keys, _ := strconv.Atoi(c.args[1])
		if calls := keys / 4; (len(c.args)-2-keys-2)/calls == 8 { // of 6 arguments each: two more
			n += calls
		}
	}
	return n
}

// inTurn has calls wait for a held lock, one after the other, each of which unlocks
// at once. It returns the locks in the order in which they were taken.
func inTurn(t *testing.T, l *core.Locker, n int) <-chan *core.Lock {
	t.Helper()
	got := make(chan *core.Lock, n)
	for range n {
		go func() {
			k, err := l.Lock(background, "k")
			if err != nil {
				t.Error(err)
				return
			}
			got <- k
			unlock(t, k)
		}()
		synctest.Wait() // the next one stands behind it
	}
	return got
}

// Taken out, each turn takes two scripts, and between them any process may take the
// lock.
func TestLockIsHandedOverInsideAProcess(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k")
		const calls = 100
		got := inTurn(t, l, calls)
		before := s.scripts()
		unlock(t, k)
		tokens := []int64{k.Token()}
		owners := map[string]bool{k.Owner(): true}
		for range calls {
			k := <-got
			tokens = append(tokens, k.Token())
			owners[k.Owner()] = true
		}
		synctest.Wait()
		if used := s.scripts() - before; used > calls*12/10 {
			t.Errorf("%d scripts for %d turns", used, calls)
		}
		if !slices.IsSorted(tokens) || len(slices.Compact(tokens)) != calls+1 {
			t.Errorf("tokens do not increase strictly: %v", tokens)
		}
		if len(owners) != calls+1 {
			t.Errorf("%d owners for %d locks", len(owners), calls+1)
		}
		s.isFree("k")
	})
}

// A process in which calls never cease to wait leaves the lock to others in time.
// Taken out, the others wait for ever.
func TestOtherProcessesGetTheirTurn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		greedy, other := s.locker(), s.locker()
		ctx, cancel := context.WithCancel(background)
		k := take(t, background, greedy, "k")
		for range 5 {
			go func() {
				for ctx.Err() == nil {
					k, err := greedy.Lock(ctx, "k")
					if err != nil {
						return
					}
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
		if s.handovers() == 0 {
			t.Error("nothing was handed over: the test shows nothing")
		}
	})
}

// Whatever becomes of the script, each of the two calls gets its due, and nothing
// stays locked.
func TestHandoverThatFails(t *testing.T) {
	for name, f := range map[string]fault{
		"reply lost":     loseReply,
		"request lost":   loseRequest,
		"reply late":     lateReply(5 * time.Second),
		"request late":   lateRequest(5 * time.Second),
		"refused":        refuse("LOADING Redis is loading"),
		"lock is shared": nil,
		"lock is gone":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				k := take(t, background, l, "k")
				waiting := start(background, l, "k")
				var shared *core.Lock
				switch name {
				case "lock is shared":
					shared = take(t, background, s.locker(), "k", core.Owner(k.Owner()))
				case "lock is gone":
					s.Del("lock:k")
				default:
					s.fail(acquire, f)
				}
				err := k.Unlock(background)
				if name == "lock is gone" {
					wantErr(t, err, core.ErrLost)
				} else if err != nil {
					t.Errorf("Unlock: %v", err)
				}
				if shared != nil {
					waits(t, waiting)
					unlock(t, shared)
				}
				o := <-waiting
				if o.err != nil {
					t.Fatalf("the waiting call: %v", o.err)
				}
				wantTime(t, "it had the lock", o.took, 0, 4*time.Second)
				unlock(t, o.lock)
				time.Sleep(10 * time.Second) // what is late arrives
				s.isFree("k")
				if s.handovers() != 1 {
					t.Errorf("%d were tried, want one", s.handovers())
				}
			})
		})
	}
}

// A call that ends while the lock is handed over to it returns at once; the lock goes
// to the next. One whose wait is over has not been cancelled, so its lock is good, and
// must be given back.
func TestCallEndsDuringTheHandover(t *testing.T) {
	for name, c := range map[string]struct {
		opts   []core.Option
		cancel time.Duration
		want   []error
	}{
		"cancelled": {nil, 500 * time.Millisecond, []error{core.ErrNotAcquired, context.Canceled}},
		"wait over": {[]core.Option{core.Wait(500 * time.Millisecond)}, time.Minute, []error{core.ErrNotAcquired}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				k := take(t, background, l, "k")
				ctx, cancel := context.WithCancel(background)
				defer time.AfterFunc(c.cancel, cancel).Stop()
				first, second := start(ctx, l, "k", c.opts...), start(background, l, "k")
				s.fail(acquire, lateReply(time.Second))
				unlock(t, k)
				o := <-first
				wantErr(t, o.err, c.want...)
				wantTime(t, "it returned", o.took, 500*time.Millisecond, 510*time.Millisecond)
				o = <-second
				if o.err != nil {
					t.Fatal(o.err)
				}
				wantTime(t, "the next had it", o.took, time.Second, 2100*time.Millisecond)
				unlock(t, o.lock)
				synctest.Wait()
				s.isFree("k")
			})
		})
	}
}

// A dedup window keeps its key: nothing is handed over into it.
func TestWindowIsNotHandedOver(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k", core.KeepFor(time.Minute))
		waiting := start(background, l, "k", core.Wait(10*time.Second))
		unlock(t, k)
		o := <-waiting
		wantBusy(t, o.err)

		k = take(t, background, l, "j", core.KeepFor(time.Minute))
		waiting = start(background, l, "j")
		if err := k.Abort(background); err != nil { // opens none
			t.Error(err)
		}
		unlock(t, (<-waiting).lock)
		if s.handovers() != 1 {
			t.Errorf("%d were handed over, want the one after Abort", s.handovers())
		}
	})
}
