//go:build go1.25

package core_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// startWhole is startAll with a Locker that knows that one server has all keys. It tells how many commands
// have asked for locks since.
func startWhole(t *testing.T, s *embedded, keys []string, opts ...core.Option) (all <-chan manyOutcome, l *core.Locker, asked func() int) {
	t.Helper()
	l = s.locker()
	unlockAll(t, takeAll(t, background, l, []string{"x", "y"}))
	synctest.Wait()
	before := len(s.commands(acquire))
	return startAll(background, l, keys, opts...), l, func() int { return len(s.commands(acquire)) - before }
}

// While one lock is busy, a question is one command that takes none of them. It is repeated for a while, then the call
// waits for the busy one.
func TestLockAllAsksForAllOrNone(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		b := take(t, background, s.locker(), "b")
		all, _, asked := startWhole(t, s, []string{"a", "b", "c"})
		if n := asked(); n != 1 {
			t.Errorf("%d commands", n)
		}
		for range 29 {
			time.Sleep(10 * time.Millisecond)
			wantLocked(t, s, "while it asks,", "b")
		}
		if n := asked(); n < 20 || n > 100 {
			t.Errorf("%d commands in 290 ms", n)
		}
		time.Sleep(time.Second)
		if n := asked(); n > 100 {
			t.Errorf("%d commands in a second", n)
		}
		wantLocked(t, s, "while it waits,", "b")
		unlock(t, b)
		unlockAll(t, (<-all).lock)
	})
	bubble(t, func(t *testing.T, s *embedded) {
		b := take(t, background, s.locker(), "b")
		all, _, _ := startWhole(t, s, []string{"a", "b", "c"})
		time.Sleep(100 * time.Millisecond)
		unlock(t, b)
		o := <-all
		wantTime(t, "taken", o.took, 100*time.Millisecond, 116*time.Millisecond)
		wantLocked(t, s, "then", "a b c")
		unlockAll(t, o.lock)
	})
}

// Whatever ends a call ends it also while it asks again.
func TestLockAllThatAsksAgainEnds(t *testing.T) {
	keys := []string{"a", "b", "c"}
	bubble(t, func(t *testing.T, s *embedded) {
		b := take(t, background, s.locker(), "b")
		all, l, _ := startWhole(t, s, keys, core.Wait(50*time.Millisecond))
		o := <-all
		wantBusy(t, o.err)
		wantTime(t, "refused", o.took, 50*time.Millisecond, 51*time.Millisecond)

		all = startAll(background, l, keys)
		time.Sleep(50 * time.Millisecond)
		go func() { _ = l.Close(background) }()
		o = <-all
		wantErr(t, o.err, core.ErrClosed)
		wantTime(t, "closed", o.took, 50*time.Millisecond, 66*time.Millisecond)
		wantLocked(t, s, "then", "b")
		unlock(t, b)
	})
}

// No more than 32 calls of a Locker ask again: the others wait.
func TestLockAllOfManyCallsAsksSeldom(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		b := take(t, background, s.locker(), "b")
		all, l, asked := startWhole(t, s, []string{"b", "c"}, core.Wait(time.Millisecond))
		wantBusy(t, (<-all).err)
		var calls sync.WaitGroup
		for range 500 {
			calls.Go(func() {
				if err := l.DoAll(background, []string{"a", "b"}, func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		if n := asked(); n > 500+32*30 {
			t.Errorf("%d commands", n)
		}
		unlock(t, b)
		calls.Wait()
	})
}

// Calls beyond MaxWaiters are refused at once, and do not ask again before.
func TestLockAllKeepsMaxWaiters(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a := take(t, background, s.locker(), "a")
		first, l, _ := startWhole(t, s, []string{"a", "b"}, core.MaxWaiters(1))
		var calls sync.WaitGroup
		for range 10 {
			calls.Go(func() {
				began := time.Now()
				_, err := l.LockAll(background, []string{"a", "b"}, core.MaxWaiters(1), core.Wait(time.Second))
				wantBusy(t, err)
				wantTime(t, "refused", time.Since(began), 0, time.Millisecond)
			})
		}
		calls.Wait()
		unlock(t, a)
		unlockAll(t, (<-first).lock)
	})
}

// Inside of another lock it asks once, and waits: whoever waits for that one is kept from it for as long.
func TestLockAllUnderALockAsksOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		unlockAll(t, takeAll(t, background, l, []string{"x", "y"}))
		synctest.Wait()
		outer, c := take(t, background, l, "a"), take(t, background, s.locker(), "c")
		before := len(s.commands(acquire))
		all := startAll(outer.Context(), l, []string{"b", "c"})
		time.Sleep(290 * time.Millisecond)
		if n := len(s.commands(acquire)) - before; n > 10 {
			t.Errorf("%d commands", n)
		}
		unlock(t, c)
		o := <-all
		wantTime(t, "taken", o.took, 290*time.Millisecond, 290*time.Millisecond)
		unlockAll(t, o.lock)
		unlock(t, outer)
	})
}

// A lock is not busy for what is left in its queue.
// Taken out, the call asks in vain for 0.3 s.
func TestLockAllBesideATombstone(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		s.failAll(loseRequest, acquire)
		_, err := s.locker().Lock(background, "b")
		wantErr(t, err, core.ErrUnavailable)
		s.heal()
		time.Sleep(time.Second)
		if len(s.Keys()) != 1 {
			t.Fatalf("keys: %v; want a tombstone", s.Keys())
		}
		all, _, _ := startWhole(t, s, []string{"a", "b", "c"})
		o := <-all
		wantTime(t, "taken", o.took, 0, 0)
		unlockAll(t, o.lock)
	})
}

// When one of the locks is lost the others are freed all the same.
func TestUnlockOfSeveralLocksOfWhichOneIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		unlockAll(t, takeAll(t, background, l, []string{"x", "y"}))
		m := takeAll(t, background, l, []string{"a", "b", "c"})
		s.Del("lock:b")
		began := time.Now()
		wantErr(t, m.Unlock(background), core.ErrLost)
		wantTime(t, "unlocked", time.Since(began), 0, 0)
		wantLocked(t, s, "after Unlock,", "")
	})
}

// A call whose lock is busy spoils nothing for those that share a command with it: these are served by it.
func TestCallsShareACommandWithOneInVain(t *testing.T) {
	for _, c := range []struct {
		name     string
		keys     [][]string
		commands int
	}{
		{"several keys", [][]string{{"a", "b"}, {"busy", "c"}, {"d", "e"}, {"e", "k"}}, 1},
		{"keys that cross", [][]string{{"a", "b"}, {"d", "e"}, {"e", "k"}}, 1},
		{"one key", [][]string{{"a"}, {"busy"}, {"b"}, {"d"}, {"d"}, {"e"}}, 1 + 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				busy := take(t, background, s.locker(), "busy")
				l := s.locker()
				unlockAll(t, takeAll(t, background, l, []string{"x", "y"})) // calls are merged from now on
				time.Sleep(time.Second)
				s.fail(acquire, lateReply(4*time.Millisecond), lateReply(4*time.Millisecond))
				for _, key := range []string{"x", "y"} { // all that goes at once
					go func() { unlock(t, take(t, background, l, key)) }()
					synctest.Wait() // or they would go together
				}
				before := len(s.commands(acquire))
				ctx, cancel := context.WithCancel(background)
				for _, keys := range c.keys {
					go func() {
						m, err := l.LockAll(ctx, keys)
						if err == nil {
							<-ctx.Done()
							unlockAll(t, m)
						}
					}()
					synctest.Wait()
				}
				time.Sleep(4 * time.Millisecond)
				synctest.Wait()
				wantLocked(t, s, "then", "a b d e")
				if n := len(s.commands(acquire)) - before; n != c.commands {
					t.Errorf("%d commands; want %d", n, c.commands)
				}
				cancel()
				unlock(t, busy)
			})
		})
	}
}

// A call ends in time also where the connection breaks at each command, and its copy finds a lock busy.
// Taken out, it asks for ever.
func TestLockAllEndsThoughConnectionsBreak(t *testing.T) {
	for _, wait := range []time.Duration{time.Millisecond, 50 * time.Millisecond} {
		bubble(t, func(t *testing.T, s *embedded) {
			const timeout = 50 * time.Millisecond
			b := take(t, background, s.locker(), "b")
			l := s.locker(core.Timeout(timeout))
			unlockAll(t, takeAll(t, background, l, []string{"x", "y"})) // calls are merged from now on
			time.Sleep(time.Second)
			sent := 0
			s.failAll(func(s *embedded, p *peer, cmd string, args []string) bool {
				sent++
				return sent%2 == 1 && loseRequest(s, p, cmd, args)
			}, acquire)
			ctx, cancel := context.WithTimeout(background, time.Second)
			defer cancel()
			o := <-startAll(ctx, l, []string{"a", "b", "c"}, core.Wait(wait))
			wantErr(t, o.err, core.ErrUnavailable)
			wantTime(t, "ended", o.took, wait+timeout, wait+2*timeout)
			// What is given back of a call that does not wait is asked for alone, which finds the busy one.
			o = <-startAll(ctx, l, []string{"a", "b", "c"}, core.NoWait())
			wantErr(t, o.err, core.ErrNotAcquired)
			wantTime(t, "refused", o.took, 0, 2*timeout)
			time.Sleep(time.Second)
			wantLocked(t, s, "then", "b")
			unlock(t, b)
		})
	}
}

// Whoever may not use one of the commands that take several locks gets these one by one, also where the connection broke.
func TestLockAllIsRefusedOverABrokenConnection(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, forbidden := s.locker(), refuse("NOPERM this user has no permissions to run the 'mset' command")
		unlockAll(t, takeAll(t, background, l, []string{"x", "y"}))
		time.Sleep(time.Second)
		s.fail(acquire, loseRequest, forbidden, forbidden)
		unlockAll(t, takeAll(t, background, l, []string{"a", "b"}))
	})
}
