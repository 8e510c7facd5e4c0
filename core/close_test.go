//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

func within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeoutCause(background, d, errEnough)
	context.AfterFunc(ctx, cancel)
	return ctx
}

func TestCloseOfAnIdleLocker(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.open()
		unlock(t, take(t, background, l, "k"))
		for range 2 {
			if err := l.Close(background); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
	})
}

// On a context that has ended nothing held means nothing to wait for.
func TestCloseOnACancelledContext(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		ctx, cancel := context.WithCancel(background)
		cancel()
		if err := s.open().Close(ctx); err != nil {
			t.Error(err)
		}
		l := s.open()
		k := take(t, background, l, "k")
		wantErr(t, l.Close(ctx), context.Canceled)
		wantErr(t, context.Cause(k.Context()), core.ErrClosed)
		s.isFree("k")
	})
}

func TestCloseDrains(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.open()
		k := take(t, background, l, "k")
		closed := make(chan error, 1)
		began := time.Now()
		go func() { closed <- l.Close(background) }()
		synctest.Wait()

		_, err := l.Lock(background, "other")
		wantErr(t, err, core.ErrClosed)
		_, err = l.TryLock(background, "other")
		wantErr(t, err, core.ErrClosed)
		wantErr(t, l.Do(background, "other", noWork), core.ErrClosed)
		_, err = l.Inspect(background, "k")
		wantErr(t, err, core.ErrClosed)
		_, err = l.ForceUnlock(background, "k")
		wantErr(t, err, core.ErrClosed)

		time.Sleep(5 * time.Minute) // renewals go on
		if err := context.Cause(k.Context()); err != nil {
			t.Errorf("the lock ended while draining: %v", err)
		}
		inner := take(t, k.Context(), l, "k") // holders may re-enter
		if n, err := inner.Count(background); n != 2 || err != nil {
			t.Errorf("Count: %d, %v", n, err)
		}
		unlock(t, inner)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(closed) != 0 {
			t.Error("Close returned while a lock was held")
		}
		unlock(t, k)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		wantTime(t, "Close returned", time.Since(began), 6*time.Minute, 6*time.Minute+100*time.Millisecond)
		s.isFree("k")
	})
}

func TestCloseWakesWaiters(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.open(), s.locker()
		holder := take(t, background, other, "k")
		head, behind := start(background, l, "k"), start(background, l, "k", core.Wait(time.Hour))
		owner := start(background, l, "k", core.Owner("o"))
		time.Sleep(5 * time.Second)
		if err := l.Close(background); err != nil {
			t.Error(err)
		}
		for _, w := range []<-chan outcome{head, behind, owner} {
			o := <-w
			wantErr(t, o.err, core.ErrClosed)
			wantNot(t, o.err, core.ErrNotAcquired)
			wantTime(t, "woken", o.took, 5*time.Second, 5*time.Second)
		}
		unlock(t, holder)
		s.isFree("k")
	})
}

func TestCloseWakesWaitersAlsoWhileTheirHeadIsAsking(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.open()
		s.fail(acquire, lateReply(1500*time.Millisecond))
		head, behind := start(background, l, "k"), start(background, l, "k")
		if err := l.Close(background); err != nil {
			t.Error(err)
		}
		for w, took := range map[<-chan outcome]time.Duration{head: 1500 * time.Millisecond, behind: 0} {
			o := <-w
			wantErr(t, o.err, core.ErrClosed)
			wantTime(t, "woken", o.took, took, took)
		}
		s.isFree("k")
	})
}

func TestCloseWhileALockIsGranted(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.open()
		s.fail(acquire, lateReply(time.Second))
		asking := start(background, l, "k")
		if err := l.Close(background); err != nil {
			t.Error(err)
		}
		wantErr(t, (<-asking).err, core.ErrClosed)
		s.isFree("k")
	})
}

// Taken out, nobody undoes what a call under way has got.
func TestCloseThatDoesNotWaitUndoesACallUnderWay(t *testing.T) {
	for name, own := range map[string]bool{"sent by its caller": true, "sent by a goroutine": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				client := redis.NewClient(&redis.Options{Addr: s.addr, Dialer: s.dial, ContextTimeoutEnabled: own})
				t.Cleanup(func() { _ = client.Close() })
				l := onRedis(t, client)
				s.fail(acquire, lateReply(time.Second))
				asking := start(background, l, "k", core.NoWait())
				ended, end := context.WithCancel(background)
				end()
				wantErr(t, l.Close(ended), context.Canceled)
				wantErr(t, (<-asking).err, core.ErrClosed)
				s.isFree("k")
			})
		})
	}
}

func TestCloseEvictsAtTheEndOfItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		logged := &records{}
		l := s.open(core.Logger(logged.logger()))
		a := take(t, background, l, "a")
		inner := take(t, a.Context(), l, "a")
		b := take(t, background, l, "b", core.KeepFor(time.Hour))
		began := time.Now()
		err := l.Close(within(10 * time.Second))
		wantErr(t, err, context.DeadlineExceeded, errEnough)
		wantTime(t, "Close returned", time.Since(began), 10*time.Second, 10*time.Second+100*time.Millisecond)
		for _, k := range []*core.Lock{a, inner, b} {
			wantErr(t, context.Cause(k.Context()), core.ErrClosed)
			wantErr(t, k.Refresh(background), core.ErrClosed)
			_, err := k.Count(background)
			wantErr(t, err, core.ErrClosed)
			_, err = l.Lock(k.Context(), k.Key())
			wantErr(t, err, core.ErrClosed)
			wantErr(t, k.Unlock(background), core.ErrClosed)
			wantErr(t, k.Unlock(background), core.ErrNotHeld)
			s.isFree(k.Key())
		}
		if err := l.Close(background); err != nil {
			t.Errorf("the second call: %v", err)
		}
		n := s.scripts()
		time.Sleep(time.Hour)
		if s.scripts() != n {
			t.Error("a closed Locker still speaks with Redis")
		}
		if n := logged.count("a lock was lost while held"); n != 2 || logged.lines[0].Level != slog.LevelWarn {
			t.Errorf("the log has %d of 2 losses, as %v", n, logged.lines[0].Level)
		}
	})
}

func TestDoTellsThatTheLockerClosed(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.open()
		done := make(chan error, 1)
		go func() {
			done <- l.Do(background, "k", func(ctx context.Context) error { <-ctx.Done(); return nil })
		}()
		synctest.Wait()
		wantErr(t, l.Close(within(time.Second)), context.DeadlineExceeded)
		wantErr(t, <-done, core.ErrClosed)
		s.isFree("k")
	})
}

func TestSecondCloseWaitsForTheFirst(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.open()
		k := take(t, background, l, "k")
		first := make(chan error, 1)
		go func() { first <- l.Close(background) }()
		synctest.Wait()
		began := time.Now()
		if err := l.Close(within(time.Second)); err != nil {
			t.Error(err)
		}
		wantTime(t, "returned", time.Since(began), time.Second, time.Second)
		second := make(chan error, 1)
		go func() { second <- l.Close(background) }()
		time.Sleep(time.Second)
		if len(second) != 0 || k.Context().Err() != nil {
			t.Error("the second call did not wait, or ended the lock")
		}
		unlock(t, k)
		if err := errors.Join(<-first, <-second); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseLeavesTheClientOpen(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		client := s.client()
		l, err := core.New(client)
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, take(t, background, l, "k"))
		if err := l.Close(background); err != nil {
			t.Error(err)
		}
		if err := client.Set(background, "x", 1, 0).Err(); err != nil {
			t.Errorf("the client cannot be used any more: %v", err)
		}
		again, err := core.New(client)
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, take(t, background, again, "k"))
		_ = again.Close(background)
	})
}

func TestInvariant7NoGoroutineIsLeftAfterClose(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		other := s.locker()
		take(t, background, other, "busy")
		time.Sleep(time.Second) // a goroutine without work stays for a moment
		synctest.Wait()
		before := blockedIn(ofCore...)
		l := s.open()
		var locks []*core.Lock
		for _, key := range []string{"a", "b", "c"} {
			locks = append(locks, take(t, background, l, key))
		}
		waiting := start(background, l, "busy")
		time.Sleep(time.Minute)
		wantErr(t, l.Close(within(time.Second)), context.DeadlineExceeded)
		<-waiting
		for _, k := range locks {
			_ = k.Unlock(background)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := blockedIn(ofCore...) - before; n != 0 {
			t.Errorf("%d goroutines of the Locker are left", n)
		}
		if k, err := other.TryLock(background, "a"); err != nil {
			t.Error(err)
		} else {
			unlock(t, k)
		}
		_, _ = other.ForceUnlock(background, "busy")
		time.Sleep(time.Minute)
	})
}

// What is not answered has one Timeout in all after the end of its context: calls, what they leave
// to compensate, and the commands that hang.
func TestCloseInAnOutageIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.open()
		k, other := take(t, background, l, "k"), take(t, background, l, "other")
		s.failAll(hang, acquire, release, renew)
		began := time.Now()
		time.AfterFunc(2900*time.Millisecond, func() { _ = other.Unlock(background) })
		calling := start(k.Context(), l, "k")
		time.AfterFunc(2*time.Second, func() { calling = start(k.Context(), l, "k") })
		err := l.Close(within(3 * time.Second))
		wantErr(t, err, context.DeadlineExceeded)
		wantTime(t, "Close returned", time.Since(began), 3*time.Second, 5*time.Second)
		wantErr(t, context.Cause(k.Context()), core.ErrClosed)
		synctest.Wait()
		<-calling
		s.heal()
	})
}

func TestCloseWaitsForSettlements(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.open()
		k := take(t, background, l, "k")
		s.failAll(refuse("LOADING Redis is loading"), release)
		wantErr(t, k.Unlock(background), core.ErrUnavailable)
		go func() {
			time.Sleep(5 * time.Second)
			s.heal()
		}()
		began := time.Now()
		if err := l.Close(background); err != nil {
			t.Error(err)
		}
		wantTime(t, "Close returned", time.Since(began), 5*time.Second, 6*time.Second)
		s.isFree("k")
	})
}

// A command that its caller gave up before it was written may be written all the same, when
// its connection is ready at last, and take the lock. Close waits for what undoes it.
func TestCloseWaitsForCommandsThatWereGivenUpUnwritten(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.open()
		s.fail("hello", lateReply(time.Second))
		ctx, cancel := context.WithCancelCause(background)
		asking := start(ctx, l, "k")
		cancel(errEnough)
		wantErr(t, (<-asking).err, core.ErrNotAcquired, errEnough)
		if n := s.scripts(); n != 0 {
			t.Fatalf("%d scripts had been sent", n)
		}
		if err := l.Close(background); err != nil {
			t.Error(err)
		}
		if len(s.commands(acquire)) == 0 {
			t.Error("the command was never written: this test shows nothing")
		}
		s.isFree("k")
	})
}

// A member of a quorum may grant a lock when the others have refused it already. Close waits
// for that, too.
func TestCloseWaitsForLateVotes(t *testing.T) {
	quorum(t, func(t *testing.T, servers []*embedded, l, _ *core.Locker) {
		gone := takenByAStranger(servers)
		servers[2].fail(acquire, lateRequest(100*time.Millisecond))
		_, err := l.TryLock(background, "k")
		wantBusy(t, err)
		if err := l.Close(background); err != nil {
			t.Error(err)
		}
		if len(servers[2].commands(release)) == 0 {
			t.Error("the member has not granted the lock: this test shows nothing")
		}
		gone()
		servers[2].isFree("k")
	})
}

// A lock was passed on while the release of an inner hold was under way, which then finds the
// lock deleted: that ends the first lease once more, and not the next one.
func TestCloseWaitsForTheCallThatALockWasHandedOffTo(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.open()
		first, next := start(background, l, "k"), start(background, l, "k")
		outer := (<-first).lock
		inner := take(t, outer.Context(), l, "k")
		s.fail(release, lateRequest(1500*time.Millisecond))
		var slow sync.WaitGroup
		slow.Go(func() { wantErr(t, inner.Unlock(background), core.ErrLost) })
		time.Sleep(time.Millisecond)
		unlock(t, outer)
		k := (<-next).lock
		s.Del("lock:k")
		slow.Wait()
		wantErr(t, l.Close(within(time.Second)), context.DeadlineExceeded)
		wantErr(t, k.Unlock(background), core.ErrClosed)
	})
}
