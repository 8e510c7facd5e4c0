//go:build go1.25

package core_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// A writer does not become a reader: a shared hold inside of an exclusive one stays exclusive, also when the outer
// one is unlocked first, and ends with it. forms.md says so, and what to do instead.
func TestWriterDoesNotBecomeAReader(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.locker(), s.locker()
		for what, ctx := range map[string]func(*core.Lock) context.Context{
			"the outer context":        (*core.Lock).Context,
			"without its cancellation": func(k *core.Lock) context.Context { return context.WithoutCancel(k.Context()) },
		} {
			writer := take(t, background, l, "k")
			reader := take(t, ctx(writer), l, "k", core.Shared())
			unlock(t, writer)
			if done := reader.Context().Err() != nil; done != (ctx(writer).Done() != nil) {
				t.Errorf("%s: the inner context is done: %v", what, done)
			}
			waiting := start(background, other, "k", core.Shared())
			waits(t, waiting)
			_, err := other.TryLock(background, "k", core.Shared())
			wantBusy(t, err)
			unlock(t, reader)
			unlock(t, (<-waiting).lock)
		}
	})
}

// Also not by another Locker, which takes the form of the lock that it enters.
func TestWriterDoesNotBecomeAReaderElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		other := s.locker()
		writer := take(t, background, s.locker(), "k")
		reader := take(t, writer.Context(), other, "k", core.Shared())
		if held := other.Snapshot().Held; len(held) != 1 || held[0].Form != "exclusive" {
			t.Errorf("held by the other Locker: %+v", held)
		}
		unlock(t, reader, writer)
	})
}

func TestReaderAfterTheWriter(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		writer := take(t, background, l, "k")
		waiting := start(background, s.locker(), "k", core.Shared())
		unlock(t, writer)
		reader := take(t, background, l, "k", core.Shared())
		other := <-waiting
		synctest.Wait()
		if other.err != nil || reader.Context().Err() != nil {
			t.Errorf("they read together: %v, %v", other.err, reader.Context().Err())
		}
		unlock(t, other.lock, reader)
	})
}

// downgrade downgrades a lock, or ends the test.
func downgrade(tb testing.TB, k *core.Lock) {
	tb.Helper()
	if err := k.Downgrade(background); err != nil {
		tb.Fatalf("Downgrade of %q: %v", k.Key(), err)
	}
}

// Sharers that wait at the head come in at once, in this process and in others, and those behind a writer do not. Nobody is let in
// between.
func TestDowngrade(t *testing.T) {
	for what, opts := range map[string][]core.Option{
		"renewed": nil, "fixed": {core.FixedLease(time.Minute)}, "chosen owner": {core.Owner("job")},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b, c := s.locker(), s.locker(), s.locker()
				k := take(t, background, a, "k", opts...)
				token, owner := k.Token(), k.Owner()
				var readers []<-chan outcome
				var sharers []*core.Lock
				for _, l := range []*core.Locker{a, b, s.locker()} {
					readers = append(readers, start(background, l, "k", core.Shared()))
					time.Sleep(time.Millisecond)
				}
				writer := start(background, c, "k")
				time.Sleep(time.Millisecond)
				behind := start(background, c, "k", core.Shared())
				began := time.Now()
				downgrade(t, k)
				asked := len(s.commands("downgrade"))
				downgrade(t, k) // there is nothing to do
				if n := len(s.commands("downgrade")); n != asked {
					t.Errorf("%d commands for the second one", n-asked)
				}
				for _, done := range readers {
					o := <-done
					if o.err != nil {
						t.Fatal(o.err)
					}
					if o.lock.Token() <= token {
						t.Errorf("token %d of a sharer after %d", o.lock.Token(), token)
					}
					sharers = append(sharers, o.lock)
				}
				wantTime(t, "the sharers have it", time.Since(began), 0, prompt)
				waits(t, writer)
				waits(t, behind)
				if k.Token() != token || k.Owner() != owner || k.Context().Err() != nil {
					t.Errorf("token %d, owner %s, %v", k.Token(), k.Owner(), k.Context().Err())
				}
				if held := a.Snapshot().Held; held[0].Form != "shared" {
					t.Errorf("held here: %+v", held)
				}
				if info, err := b.Inspect(background, "k"); err != nil || info.Form != "shared" || len(info.Holders) != 4 {
					t.Errorf("%+v, %v", info, err)
				}
				time.Sleep(59 * time.Second) // those that can be are renewed
				if err := k.Context().Err(); err != nil {
					t.Errorf("it has ended: %v", err)
				}
				unlock(t, k)
				waits(t, writer)
				unlock(t, sharers...)
				unlock(t, (<-writer).lock)
				unlock(t, (<-behind).lock)
			})
		})
	}
}

// Calls of the process that has handed the lock off in memory have no entry in the queue of Redis yet. Tokens that Redis does not know
// are smaller than those of sharers.
func TestDowngradeAfterAHandOffInMemory(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a := s.locker()
		first := take(t, background, a, "k")
		second, reader := start(background, a, "k"), start(background, a, "k", core.Shared())
		time.Sleep(time.Millisecond)
		unlock(t, first)
		k := (<-second).lock
		if k.Token() != first.Token()+1 {
			t.Fatalf("token %d after %d: it was not handed off in memory", k.Token(), first.Token())
		}
		s.setBack(time.Hour)
		began := time.Now()
		downgrade(t, k)
		o := <-reader
		wantTime(t, "the sharer has it", time.Since(began), 0, prompt)
		if o.err != nil || o.lock.Token() <= k.Token() {
			t.Errorf("token %d of a sharer after %d, %v", o.lock.Token(), k.Token(), o.err)
		}
		time.Sleep(100 * time.Millisecond) // the entry of the second call is given up
		unlock(t, k, o.lock)
		s.isFree("k")
	})
}

// Under the context of a lock that was downgraded calls share it, and none has it alone.
func TestCallsUnderADowngradedLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		k := take(t, background, a, "k")
		downgrade(t, k)
		for _, l := range []*core.Locker{a, b} {
			_, err := l.Lock(k.Context(), "k")
			wantErr(t, err, core.ErrUpgrade)
			unlock(t, take(t, k.Context(), l, "k", core.Shared()))
		}
		_, err := k.Handover(background, time.Minute)
		wantErr(t, err, core.ErrNotHeld)
		if again, ok := core.FromContextKey(k.Context(), "k"); !ok || again.Token() != k.Token() {
			t.Errorf("its context has %v, %v", again, ok)
		}
		other := start(background, a, "k") // to which it is not handed off in memory
		time.Sleep(time.Millisecond)
		writer := start(background, b, "k")
		unlock(t, k)
		o := <-other
		if o.lock.Owner() == k.Owner() {
			t.Error("it was handed off in memory")
		}
		unlock(t, o.lock)
		unlock(t, (<-writer).lock)
		wantErr(t, k.Downgrade(background), core.ErrNotHeld)
		s.isFree("k")
	})
}

func TestDowngradeThatIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		refused := func(k *core.Lock, why string) {
			t.Helper()
			form := a.Snapshot().Held[0].Form
			err := k.Downgrade(background)
			wantErr(t, err, core.ErrNotHeld)
			if text := core.Detail(err); !strings.Contains(text, "cannot be downgraded: "+why) {
				t.Errorf("it says %q, want %q", text, why)
			}
			_, err = s.locker().TryLock(background, k.Key(), core.Shared())
			wantErr(t, err, core.ErrNotAcquired)
			if now := a.Snapshot().Held; now[0].Form != form {
				t.Errorf("%+v, was %s", now, form)
			}
		}
		outer := take(t, background, a, "k")
		inner := take(t, outer.Context(), a, "k", core.Shared())
		refused(inner, "it was entered")
		refused(outer, "an inner handle is open")
		unlock(t, inner)
		elsewhere := take(t, outer.Context(), b, "k")
		refused(outer, "others have entered it")
		unlock(t, elsewhere)
		_, _ = s.HIncrBy("lock:k", outer.ShareOwner(), 1) // as Redisson does
		refused(outer, "others have entered it")
		_, _ = s.HIncrBy("lock:k", outer.ShareOwner(), -1)
		ended, cancel := context.WithCancel(background)
		cancel()
		wantErr(t, outer.Downgrade(ended), context.Canceled)
		second := take(t, background, b, "k", core.Owner(outer.ShareOwner())) // inside, also when it is the last
		unlock(t, outer)
		wantErr(t, second.Downgrade(background), core.ErrNotHeld)
		unlock(t, second)

		resumed, err := a.Resume(background, "k", parkedBy(t, take(t, background, a, "k"), time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		refused(resumed, "it was handed over before")
		unlock(t, resumed)
		for why, opt := range map[string]core.Option{
			"it is a permit":                 core.Permits(2),
			"it is of an idempotent request": adapter.Attempt(request, kept, false),
			"it has a dedup window":          core.KeepFor(time.Minute),
		} {
			k := take(t, background, a, why, opt)
			refused(k, why)
			if err := k.Abort(background); err != nil {
				t.Error(err)
			}
		}
		several, err := a.LockAll(background, []string{"m", "n"})
		if err != nil {
			t.Fatal(err)
		}
		one, _ := core.FromContextKey(several.Context(), "m")
		refused(one, "it is one of several")
		if err := several.Unlock(background); err != nil {
			t.Error(err)
		}
	})
}
