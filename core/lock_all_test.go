//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

func takeAll(tb testing.TB, ctx context.Context, l *core.Locker, keys []string, opts ...core.Option) *core.MultiLock {
	tb.Helper()
	m, err := l.LockAll(ctx, keys, opts...)
	if err != nil {
		tb.Fatalf("LockAll(%q): %v", keys, err)
	}
	return m
}

func unlockAll(tb testing.TB, m *core.MultiLock) {
	tb.Helper()
	if err := m.Unlock(background); err != nil {
		tb.Errorf("Unlock of %q: %v", m.Keys(), err)
	}
}

// manyOutcome is what a LockAll in another goroutine came to.
type manyOutcome struct {
	lock *core.MultiLock
	err  error
	took time.Duration
}

// startAll calls LockAll in another goroutine and returns when it waits, or has ended.
func startAll(ctx context.Context, l *core.Locker, keys []string, opts ...core.Option) <-chan manyOutcome {
	done := make(chan manyOutcome, 1)
	began := time.Now()
	go func() {
		m, err := l.LockAll(ctx, keys, opts...)
		done <- manyOutcome{m, err, time.Since(began)}
	}()
	synctest.Wait()
	return done
}

// areHeld tells which locks are held.
func (s *embedded) areHeld(keys ...string) string {
	var held []string
	for _, key := range keys {
		if s.held(key) != "" {
			held = append(held, key)
		}
	}
	return strings.Join(held, " ")
}

func tokenOf(s *embedded, key string) int64 {
	token, _, _ := strings.Cut(strings.Trim(s.HGet("lock:"+key, "mode"), "x+"), " ")
	n, _ := strconv.ParseInt(token, 10, 64)
	return n
}

func wantLocked(t *testing.T, s *embedded, when, want string) {
	t.Helper()
	if got := s.areHeld("a", "b", "c", "d", "e", "k"); got != want {
		t.Errorf("%s Redis has %q; want %q", when, got, want)
	}
}

func TestLockAllHoldsEveryKey(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.locker(), s.locker()
		m := takeAll(t, background, l, []string{"c", "a", "b", "a"})
		wantLocked(t, s, "then", "a b c")
		if keys := m.Keys(); !slices.Equal(keys, []string{"a", "b", "c"}) {
			t.Errorf("the keys are %q", keys)
		}
		for _, key := range m.Keys() {
			if m.Token(key) != tokenOf(s, key) {
				t.Errorf("the token of %s is %d, in Redis %d", key, m.Token(key), tokenOf(s, key))
			}
			_, err := other.TryLock(background, key)
			wantBusy(t, err)
			unlock(t, take(t, m.Context(), l, key, core.NoWait()))
		}
		if m.Token("d") != 0 {
			t.Errorf("a key that is not locked has token %d", m.Token("d"))
		}
		if k, ok := core.FromContext(m.Context()); !ok || k.Key() != "c" {
			t.Error("the context does not have the last one")
		}
		unlockAll(t, m)
		wantLocked(t, s, "after Unlock", "")
		wantErr(t, context.Cause(m.Context()), context.Canceled)
		wantErr(t, m.Unlock(background), core.ErrNotHeld)
		wantErr(t, m.Abort(background), core.ErrNotHeld)
	})
}

// Keys that cannot be locked.
func TestLockAllOfBadKeys(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		for what, keys := range map[string][]string{"none": nil, "empty": {"a", ""}, "long": {strings.Repeat("x", 2000), "a"}} {
			_, err := l.LockAll(background, keys)
			wantErr(t, err, core.ErrInvalidKey)
			if !strings.HasPrefix(err.Error(), "core: invalid key: ") {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := l.LockAll(background, []string{"a"}, core.Wait(-1))
		if err == nil {
			t.Error("a bad option is taken")
		}
		if n := len(s.commands(acquire)); n != 0 {
			t.Errorf("Redis was asked %d times", n)
		}
		m := takeAll(t, background, l, append(manyKeys(0, 64), manyKeys(0, 64)...))
		if len(m.Keys()) != 64 {
			t.Errorf("%d keys", len(m.Keys()))
		}
		unlockAll(t, m)
	})
}

// All free: one command takes them, and one ends them.
func TestLockAllIsOneCommand(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		keys := []string{"a", "b", "c", "d", "e"}
		unlockAll(t, takeAll(t, background, l, keys)) // has the Locker find out that one server has all keys
		synctest.Wait()
		time.Sleep(time.Millisecond) // the tokens of one µs differ
		acquired, released := len(s.commands(acquire)), len(s.commands(release))
		unlockAll(t, takeAll(t, background, l, keys))
		if a, r := len(s.commands(acquire))-acquired, len(s.commands(release))-released; a != 1 || r != 1 {
			t.Errorf("%d acquisitions and %d releases; want one each", a, r)
		}
	})
}

// takeTogether takes the locks a and b by one command, and returns that of a as well.
func takeTogether(t *testing.T, l *core.Locker) (*core.MultiLock, *core.Lock) {
	t.Helper()
	keys := []string{"a", "b"}
	unlockAll(t, takeAll(t, background, l, keys)) // it finds out that one server has all
	synctest.Wait()
	time.Sleep(time.Millisecond) // the tokens of one µs differ
	m := takeAll(t, background, l, keys)
	a, _ := core.FromContextKey(m.Context(), "a")
	return m, a
}

// Locks that one command has taken have one owner. When that is shared, none of them is handed off in memory:
// whoever knows it may be inside.
func TestLockAllSharesItsOwner(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.locker(), s.locker()
		m, a := takeTogether(t, l)
		waiting := start(background, l, "b")
		waits(t, waiting)
		inside := take(t, background, other, "b", core.Owner(a.ShareOwner()))
		time.Sleep(time.Millisecond) // as many tokens as µs may be given in memory
		unlockAll(t, m)
		waits(t, waiting)
		unlock(t, inside)
		unlock(t, (<-waiting).lock)
	})
}

// A lock that is unlocked by itself is not handed off with an owner that the others have still, and may share.
func TestLockAllHandsOffNoOwnerThatItHas(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.locker(), s.locker()
		m, a := takeTogether(t, l)
		b, _ := core.FromContextKey(m.Context(), "b")
		stranger := start(background, l, "b")
		waits(t, stranger)
		time.Sleep(time.Millisecond) // as many tokens as µs may be given in memory
		unlock(t, b)
		k := (<-stranger).lock
		if _, err := other.TryLock(background, "b", core.Owner(a.ShareOwner())); !errors.Is(err, core.ErrNotAcquired) {
			t.Errorf("who knows the owner of a enters the lock of a stranger: %v", err)
		}
		unlock(t, k)
		if err := m.Unlock(background); !errors.Is(err, core.ErrNotHeld) {
			t.Error(err)
		}
		s.isFree("a")
	})
}

// Nor are several, by Unlock of all: who gets one could share the owner, and so let others into another one.
func TestLockAllGivesItsOwnerToNobody(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.locker(), s.locker()
		m, _ := takeTogether(t, l)
		nextA, nextB := start(background, l, "a"), start(background, l, "b")
		waits(t, nextA)
		waits(t, nextB)
		time.Sleep(time.Millisecond) // as many tokens as µs may be given in memory
		unlockAll(t, m)
		a, b := (<-nextA).lock, (<-nextB).lock
		if _, err := other.TryLock(background, "b", core.Owner(a.ShareOwner())); !errors.Is(err, core.ErrNotAcquired) {
			t.Errorf("who knows the owner of a enters the lock of a stranger: %v", err)
		}
		unlock(t, a, b)
	})
}

// A token is greater than the last one of its hash slot also where that is ahead of the clock of Redis, and
// within a µs.
func TestLockAllTokensGrow(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		keys := []string{"a", "b", "c"}
		tokens := map[string]int64{}
		for round := range 4 {
			if round == 2 {
				tokens["b"] = time.Now().Add(time.Hour).UnixMicro()
				if err := s.Set(clockOf("lock:b"), strconv.FormatInt(tokens["b"], 10)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
			}
			m := takeAll(t, background, l, keys)
			for _, key := range keys {
				if token := m.Token(key); token <= tokens[key] {
					t.Errorf("%s: token %d after %d", key, token, tokens[key])
				}
				tokens[key] = m.Token(key)
			}
			unlockAll(t, m)
			synctest.Wait() // the first has it find out that one server has all keys
		}
	})
}

// It asks for nothing that it cannot have: behind calls of this process that wait it waits, and for
// a single lock it waits from the first command on.
func TestLockAllAsksOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		b := take(t, background, s.locker(), "b")
		asked := func(call func()) int {
			before := len(s.commands(acquire))
			call()
			return len(s.commands(acquire)) - before
		}
		k := take(t, background, s.locker(), "k")
		var plain <-chan outcome
		var one, all <-chan manyOutcome
		want := asked(func() { plain = start(background, l, "k") })
		if n := asked(func() { one = startAll(background, l, []string{"b"}) }); n != want {
			t.Errorf("LockAll of one key asks %d times, Lock %d times", n, want)
		}
		if n := asked(func() { all = startAll(background, l, []string{"b", "c"}) }); n != 0 {
			t.Errorf("behind others it asks %d times", n)
		}
		unlock(t, b, k)
		unlock(t, (<-plain).lock)
		unlockAll(t, (<-one).lock)
		unlockAll(t, (<-all).lock)
	})
}

// As many times as it wants keys it waits without any. After that it keeps what sorts before the busy
// one, half as long as it has waited, and its place in the queue for longer.
func TestLockAllWaitsInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.locker(core.Lease(3*time.Second)), s.locker()
		b, d := take(t, background, other, "b"), take(t, background, other, "d")
		all := startAll(background, l, []string{"d", "c", "b", "a"})
		time.Sleep(time.Second) // from now on it waits in queues
		wantLocked(t, s, "while it waits for b,", "b d")
		unlock(t, b)
		synctest.Wait()
		wantLocked(t, s, "while it waits for d,", "d")
		a := take(t, background, other, "a", core.NoWait())
		unlock(t, d)
		synctest.Wait()
		wantLocked(t, s, "while it waits for a,", "a")
		b = take(t, background, other, "b", core.NoWait())
		unlock(t, a)
		synctest.Wait()
		wantLocked(t, s, "while it waits for b again,", "b")
		time.Sleep(time.Minute)
		c, d := take(t, background, other, "c", core.NoWait()), take(t, background, other, "d", core.NoWait())
		unlock(t, b)
		synctest.Wait()
		wantLocked(t, s, "while it waits for c,", "a b c d")
		time.Sleep(29 * time.Second)
		wantLocked(t, s, "29 s later", "a b c d")
		time.Sleep(2 * time.Second)
		wantLocked(t, s, "31 s later", "c d")
		stranger := start(background, l, "c")
		waits(t, stranger)
		unlock(t, c, d)
		o := <-all
		if o.err != nil {
			t.Fatal(o.err)
		}
		if cause := context.Cause(o.lock.Context()); cause != nil {
			t.Error(cause)
		}
		wantLocked(t, s, "in the end", "a b c d")
		for _, key := range o.lock.Keys() {
			unlock(t, take(t, o.lock.Context(), l, key, core.NoWait()))
			if o.lock.Token(key) != tokenOf(s, key) {
				t.Errorf("the token of %s is %d, in Redis %d", key, o.lock.Token(key), tokenOf(s, key))
			}
		}
		unlockAll(t, o.lock)
		unlock(t, (<-stranger).lock)
		wantLocked(t, s, "after Unlock", "")
	})
}

// startKeeping calls LockAll of a and b, which has waited for half a minute, for both, and waits for b
// again. It keeps a meanwhile, for 15 s.
func startKeeping(t *testing.T, s *embedded, ctx context.Context, l *core.Locker, opts ...core.Option) (all <-chan manyOutcome, b *core.Lock) {
	t.Helper()
	other := s.locker()
	b = take(t, background, other, "b")
	all = startAll(ctx, l, []string{"b", "a"}, opts...)
	time.Sleep(30 * time.Second)
	a := take(t, background, other, "a", core.NoWait())
	unlock(t, b)
	synctest.Wait()
	b = take(t, background, other, "b", core.NoWait())
	unlock(t, a)
	synctest.Wait()
	wantLocked(t, s, "while it waits for b again,", "a b")
	return all, b
}

// A lock that it keeps can be lost, as any other.
func TestLockAllThatLosesWhatItKeeps(t *testing.T) {
	for name, tc := range map[string]struct {
		opt  core.Option
		end  func(s *embedded)
		want error
	}{
		"lost":              {core.Name(""), func(s *embedded) { s.Del("lock:a") }, core.ErrLost},
		"held for too long": {core.MaxHold(5 * time.Second), nil, core.ErrMaxHold},
		"fixed lease over":  {core.FixedLease(5 * time.Second), nil, core.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				all, b := startKeeping(t, s, background, s.locker(core.Lease(6*time.Second)), tc.opt)
				if tc.end != nil {
					tc.end(s)
				}
				o := <-all
				wantErr(t, o.err, tc.want)
				wantNot(t, o.err, core.ErrNotAcquired) // it is not for want of the other lock
				time.Sleep(10 * time.Millisecond)      // a fixed lease ends here before it ends in Redis
				wantLocked(t, s, "then", "b")
				unlock(t, b)
			})
		})
	}
}

// What it gives back it has not lost, and whatever ends the wait then, nothing stays.
func TestLockAllThatWaitsOnWithoutWhatItKept(t *testing.T) {
	for _, opt := range []core.Option{core.Wait(time.Minute), core.MaxHold(16 * time.Second), core.FixedLease(16 * time.Second)} {
		bubble(t, func(t *testing.T, s *embedded) {
			l := s.locker()
			all, b := startKeeping(t, s, background, l, opt, core.Wait(time.Minute))
			time.Sleep(16 * time.Second)
			unlock(t, take(t, background, l, "a", core.NoWait()))
			o := <-all
			busy := wantBusy(t, o.err)
			if busy.Key != "b" || busy.HeldKeys != nil {
				t.Errorf("%+v", busy)
			}
			wantTime(t, "refused", o.took, time.Minute, time.Minute+10*time.Millisecond)
			wantLocked(t, s, "then", "b")
			unlock(t, b)
		})
	}
}

// It gets what it waits for while what it kept is still on its way back.
func TestLockAllThatIsServedWhileItGivesBack(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.locker(), s.locker()
		held := take(t, background, other, "c")
		all := startAll(background, l, []string{"a", "b", "c"}, core.KeepFor(time.Hour), core.Wait(2*time.Minute))
		time.Sleep(30 * time.Second)
		for _, next := range []string{"a", "c", "a", "c"} { // after three waits it keeps a and b
			k := take(t, background, other, next, core.NoWait())
			unlock(t, held)
			synctest.Wait()
			held = k
		}
		wantLocked(t, s, "while it waits for c again,", "a b c")
		time.Sleep(14 * time.Second)
		s.failAll(lateReply(500*time.Millisecond), renew, "renew_all") // because of their windows it asks whether it has all
		time.Sleep(time.Second + 100*time.Millisecond)
		unlock(t, held)
		o := <-all
		wantErr(t, o.err, nil)
		wantLocked(t, s, "then", "a b c")
		s.heal()
		wantErr(t, o.lock.Unlock(background), nil)
	})
}

// It is served when its turn has come, within a process and among processes.
func TestLockAllIsServedInOrderOfArrival(t *testing.T) {
	const calls = 6
	for _, processes := range []int{1, calls} {
		t.Run(fmt.Sprint(processes), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				var lockers []*core.Locker
				for range processes {
					lockers = append(lockers, s.locker())
				}
				held := take(t, background, s.locker(), "b")
				served := make(chan int, calls)
				for i := range calls {
					keys := [][]string{{"b", "c"}, {"c", "b"}, {"b"}}[i%3]
					go func() {
						err := lockers[i%processes].DoAll(background, keys, func(context.Context) error {
							served <- i
							time.Sleep(time.Second)
							return nil
						})
						if err != nil {
							t.Error(err)
						}
					}()
					time.Sleep(time.Second)
				}
				unlock(t, held)
				for i := range calls {
					if got := <-served; got != i {
						t.Errorf("call %d was served as number %d", got, i)
					}
				}
			})
		})
	}
}

// Whatever ends a call, it keeps nothing.
func TestLockAllThatFailsHoldsNothing(t *testing.T) {
	keys := []string{"a", "b", "c"}
	for _, tc := range []struct {
		name string
		opts []core.Option
		end  func(s *embedded, l *core.Locker, cancel func()) // while it waits for b
		want []error
		took time.Duration
	}{
		{"no wait", []core.Option{core.NoWait()}, nil, []error{core.ErrNotAcquired}, 0},
		{"wait over", []core.Option{core.Wait(10 * time.Second)}, nil, []error{core.ErrNotAcquired}, 10 * time.Second},
		{"cancelled", nil, func(_ *embedded, _ *core.Locker, cancel func()) { cancel() }, []error{core.ErrNotAcquired, context.Canceled}, time.Second},
		{"closed", nil, func(_ *embedded, l *core.Locker, _ func()) { go func() { _ = l.Close(background) }() }, []error{core.ErrClosed}, time.Second},
		{"too many waiting", []core.Option{core.MaxWaiters(1)}, nil, []error{core.ErrNotAcquired}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l, other := s.locker(core.Lease(6*time.Second)), s.locker()
				b := take(t, background, other, "b")
				stranger := start(background, l, "b", core.Wait(time.Minute))
				ctx, cancel := context.WithCancel(background)
				defer cancel()
				all := startAll(ctx, l, keys, tc.opts...)
				if tc.end != nil {
					time.Sleep(time.Second)
					tc.end(s, l, cancel)
				}
				o := <-all
				wantErr(t, o.err, tc.want...)
				if tc.took > 0 {
					wantTime(t, "it failed", o.took, tc.took, tc.took+10*time.Millisecond)
				}
				if o.lock != nil {
					t.Error("there is a lock as well")
				}
				synctest.Wait()
				wantLocked(t, s, "then", "b")
				unlock(t, b)
				if o := <-stranger; o.err == nil {
					unlock(t, o.lock)
				}
			})
		})
	}
}

// Why a lock could not be entered is told, and not that the other locks of the call end with it.
func TestLockAllThatCannotEnter(t *testing.T) {
	for what, f := range map[string]fault{"refused": refuse("ERR no"), "no answer": hang} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a := s.locker()
				k := take(t, background, a, "a")
				s.fail(acquire, f)
				_, err := a.LockAll(k.Context(), []string{"a", "b"})
				wantErr(t, err, core.ErrUnavailable)
				wantNot(t, err, context.Canceled)
				unlock(t, k)
			})
		})
	}
}

// A refusal names the key and the wait, which is for the whole.
func TestLockAllTellsWhatIsBusy(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.locker(), s.locker()
		b, c := take(t, background, other, "b"), take(t, background, other, "c", core.FixedLease(time.Minute))
		all := startAll(background, l, []string{"a", "b", "c"}, core.Wait(10*time.Second))
		time.Sleep(6 * time.Second)
		unlock(t, b)
		o := <-all
		wantTime(t, "refused", o.took, 10*time.Second, 10*time.Second+10*time.Millisecond)
		busy := wantBusy(t, o.err)
		if busy.Key != "c" || busy.RetryAfter.Round(time.Second) != 50*time.Second || busy.HeldKeys != nil {
			t.Errorf("%q, %v, %q", busy.Key, busy.RetryAfter, busy.HeldKeys)
		}
		if want := "core: lock not acquired: the wait of 10s is over, somebody else holds it"; o.err.Error() != want {
			t.Errorf("%q; want %q", o.err, want)
		}
		unlock(t, c)
	})
}

// The context of all ends with any of them; Unlock says so, and gives the others back.
func TestLockAllEndsWithTheLossOfOne(t *testing.T) {
	for _, gone := range []string{"a", "b", "c"} {
		t.Run(gone, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				m := takeAll(t, background, s.locker(), []string{"a", "b", "c"})
				s.Del("lock:" + gone)
				at, cause := endOf(m.Context())
				wantErr(t, cause, core.ErrLost)
				_ = at
				wantErr(t, m.Unlock(background), core.ErrLost)
				wantLocked(t, s, "after Unlock", "")
			})
		})
	}
}

// What the context holds is entered, also by a key that sorts after the others.
func TestLockAllEntersWhatIsHeld(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.locker(), s.locker()
		k := take(t, background, l, "b")
		j := take(t, k.Context(), other, "c")
		m := takeAll(t, j.Context(), l, []string{"a", "b", "c"})
		if m.Token("b") != k.Token() || m.Token("c") != j.Token() {
			t.Error("the tokens are others")
		}
		if !slices.Equal(m.Keys(), []string{"b", "a", "c"}) {
			t.Errorf("%q", m.Keys())
		}
		unlock(t, j, k)
		wantLocked(t, s, "before Unlock", "a b c")
		unlockAll(t, m)
		wantLocked(t, s, "after Unlock", "")

		// One that was lost stays so.
		k = take(t, background, l, "b")
		s.Del("lock:b")
		_, err := l.LockAll(k.Context(), []string{"a", "b"})
		wantErr(t, err, core.ErrLost)
		wantLocked(t, s, "after a loss", "")
	})
}

// Under another lock nothing is waited for that sorts before it, for others who keep to the
// order could be waiting for that.
func TestLockAllIsNeverWaitedForOutOfOrder(t *testing.T) {
	const text = "core: lock not acquired: somebody else holds it, and it comes before a lock that is held here: only LockAll of both would wait for it"
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.locker(), s.locker()
		busy := take(t, background, other, "b")
		plain := take(t, background, l, "c")
		of := takeAll(t, background, l, []string{"d", "k"})
		for what, call := range map[string]func() error{
			"LockAll under Lock": func() error {
				_, err := l.LockAll(plain.Context(), []string{"a", "b", "e"}, core.Wait(time.Hour))
				return err
			},
			"Lock under LockAll": func() error { _, err := l.Lock(of.Context(), "b", core.Wait(time.Hour)); return err },
			"LockAll under LockAll": func() error {
				_, err := l.LockAll(of.Context(), []string{"a", "b"}, core.Wait(time.Hour))
				return err
			},
		} {
			began := time.Now()
			err := call()
			wantTime(t, what+" refused", time.Since(began), 0, 0)
			if refusal := wantBusy(t, err); err.Error() != text || refusal.Key != "b" || refusal.HeldKeys == nil {
				t.Errorf("%s: %q", what, err)
			}
			wantNot(t, err, core.ErrDeadlock)
			wantLocked(t, s, what, "b c d k")
		}
		// What is free is taken, and what sorts after is waited for.
		unlock(t, take(t, of.Context(), l, "a"))
		unlockAll(t, takeAll(t, plain.Context(), l, []string{"a", "e"}))
		after := take(t, background, other, "e")
		waiting := startAll(plain.Context(), l, []string{"a", "e"})
		time.Sleep(10 * time.Second)
		if len(waiting) > 0 {
			t.Errorf("%v", (<-waiting).err)
		}
		o := <-waiting // no longer than a lease
		wantBusy(t, o.err)
		wantTime(t, "refused", o.took, 30*time.Second, 31*time.Second)
		// A plain Lock under a plain Lock waits.
		forB := start(plain.Context(), l, "b")
		waits(t, forB)
		unlock(t, busy)
		unlock(t, (<-forB).lock, after, plain)
		unlockAll(t, of)
	})
}

// A call that waits gives back what it keeps, so that it is never part of a circle.
func TestLockAllIsInNoDeadlock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		all, b := startKeeping(t, s, background, l)
		began := time.Now()
		a := take(t, b.Context(), l, "a")
		wantTime(t, "it had the other lock", time.Since(began), 15*time.Second, 15*time.Second+10*time.Millisecond)
		unlock(t, a, b)
		unlockAll(t, (<-all).lock)
	})
}

// KeepFor opens all windows, or none.
func TestLockAllKeepFor(t *testing.T) {
	keys := []string{"a", "b", "c"}
	for _, tc := range []struct {
		name   string
		before func(s *embedded, m *core.MultiLock)
		finish func(m *core.MultiLock) error
		window bool
		err    error
	}{
		{"success", nil, nil, true, nil},
		{"failure", nil, func(m *core.MultiLock) error { return m.Abort(background) }, false, nil},
		{"dropped", func(_ *embedded, m *core.MultiLock) {
			k, _ := core.FromContext(m.Context())
			k.DropWindow()
		}, nil, false, nil},
		{"loss of the first", func(s *embedded, _ *core.MultiLock) { s.Del("lock:a") }, nil, false, core.ErrLost},
		{"loss of the last", func(s *embedded, _ *core.MultiLock) { s.Del("lock:c") }, nil, false, core.ErrLost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				m := takeAll(t, background, l, keys, core.KeepFor(time.Minute))
				if tc.before != nil {
					tc.before(s, m)
				}
				finish := tc.finish
				if finish == nil {
					finish = func(m *core.MultiLock) error { return m.Unlock(background) }
				}
				if err := finish(m); !errors.Is(err, tc.err) {
					t.Errorf("%v; want %v", err, tc.err)
				}
				for _, key := range keys {
					info, err := l.Inspect(background, key)
					if err != nil || info.Locked != tc.window {
						t.Errorf("%s: %+v, %v", key, info, err)
					}
				}
				_, err := l.LockAll(background, []string{"b", "d"}, core.NoWait())
				if !tc.window {
					wantNot(t, err, core.ErrNotAcquired)
					_, _ = l.ForceUnlock(background, "b")
					_, _ = l.ForceUnlock(background, "d")
					return
				}
				if busy := wantBusy(t, err); !busy.Done || busy.Key != "b" {
					t.Errorf("%+v", busy)
				}
			})
		})
	}
}

// One of the locks can be handed over; the others are unlocked.
func TestLockAllOfWhichOneIsHandedOver(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		m := takeAll(t, background, l, []string{"a", "b"})
		k, _ := core.FromContext(m.Context())
		ticket, err := k.Handover(background, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		unlockAll(t, m)
		s.isFree("a")
		resumed, err := l.Resume(background, "b", ticket)
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, resumed)
	})
}

func TestDoAll(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		keys, boom := []string{"a", "b"}, errors.New("boom")
		err := l.DoAll(background, keys, func(ctx context.Context) error {
			wantLocked(t, s, "inside", "a b")
			_, err := l.LockAll(ctx, keys[:1], core.NoWait())
			if err == nil {
				err = boom
			}
			return err
		})
		wantErr(t, err, boom)
		wantLocked(t, s, "after an inner lock was left,", "a")
		_, _ = l.ForceUnlock(background, "a")

		err = l.DoAll(background, keys, func(context.Context) error { s.Del("lock:a"); return nil })
		wantErr(t, err, core.ErrLost)
		wantLocked(t, s, "after a loss", "")

		func() {
			defer func() {
				if p := recover(); p != boom {
					t.Errorf("the panic is %v", p)
				}
			}()
			_ = l.DoAll(background, keys, func(context.Context) error { panic(boom) })
		}()
		wantLocked(t, s, "after a panic", "")

		k := take(t, background, s.locker(), "b")
		err = l.DoAll(background, keys, func(context.Context) error { t.Error("fn ran"); return nil }, core.NoWait())
		wantBusy(t, err)
		unlock(t, k)
	})
}

func TestWrapAll(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		f := core.WrapAll(l, func(keys string) ([]string, error) {
			if keys == "" {
				return nil, errEnough
			}
			return strings.Fields(keys), nil
		}, func(_ context.Context, keys string) (string, error) {
			wantLocked(t, s, "inside", keys)
			return "done", nil
		})
		if out, err := f(background, "a b"); out != "done" || err != nil {
			t.Errorf("%q, %v", out, err)
		}
		wantLocked(t, s, "afterwards", "")
		if _, err := f(background, ""); err != errEnough {
			t.Error(err)
		}
		_, err := f(background, " ")
		wantErr(t, err, core.ErrInvalidKey)
		defer func() {
			if p := recover(); p != "core: WrapAll needs a Locker, a key function and a function to guard; one of them is nil" {
				t.Errorf("%v", p)
			}
		}()
		core.WrapAll[string, string](nil, nil, nil)
	})
}

// Observers hear of each lock that was wanted and taken, one after the other, and nothing of those
// that were given back meanwhile.
func TestLockAllIsObserved(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		var heard []string
		o := &ear{act: func(ctx context.Context, e core.Event) context.Context {
			if e.Key != "" {
				heard = append(heard, strings.TrimSpace(e.Key+" "+kinds[e.Kind]+" "+e.Reason))
			}
			return ctx
		}}
		l := s.locker(core.Observe(o))
		want := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(heard, want) {
				t.Errorf("%s: Observers have heard %q; want %q", what, heard, want)
			}
			heard = nil
		}
		b := take(t, background, s.locker(), "b")
		all := startAll(background, l, []string{"a", "b", "c"})
		want("while it waits", "b waiting")
		unlock(t, b)
		m := (<-all).lock
		want("in the end", "b acquired", "a waiting", "a acquired", "c waiting", "c acquired")
		_, err := l.LockAll(background, []string{"c", "d", "e"}, core.NoWait())
		wantBusy(t, err)
		want("refused", "c waiting", "c busy no_wait")
		inner := takeAll(t, m.Context(), l, []string{"b", "d"})
		want("inside", "b waiting", "b acquired", "d waiting", "d acquired")
		unlockAll(t, inner)
		want("after the inner Unlock", "d released")
		k := take(t, background, s.locker(), "a0")
		_, err = l.LockAll(m.Context(), []string{"a0", "d"})
		wantBusy(t, err)
		want("out of order", "a0 waiting", "a0 busy order")
		unlock(t, k)
		unlockAll(t, m)
		want("after Unlock", "c released", "a released", "b released")
	})
}
