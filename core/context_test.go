package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// stringKeys is a context like gin's: it shows values stored under string keys
// only, and no cancellation.
type stringKeys map[string]any

func (stringKeys) Deadline() (time.Time, bool) { return time.Time{}, false }
func (stringKeys) Done() <-chan struct{}       { return nil }
func (stringKeys) Err() error                  { return nil }
func (c stringKeys) Value(key any) any {
	if name, ok := key.(string); ok {
		return c[name]
	}
	return nil
}

func TestReentryThroughAContextOfStringKeys(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		outer := take(t, background, l, "k")
		ctx := stringKeys{adapter.ContextKey: outer}
		if k, ok := core.FromContext(ctx); !ok || k != outer {
			t.Error("FromContext does not find the lock")
		}
		inner := take(t, ctx, l, "k")
		if s.held("k") != outer.Owner()+"=2" {
			t.Errorf("Redis shows %s", s.held("k"))
		}
		deeper := take(t, inner.Context(), l, "k")
		unlock(t, deeper, inner)

		// Detached, it competes.
		_, err := l.TryLock(core.Detach(ctx), "k")
		wantBusy(t, err)
		if _, ok := core.FromContext(core.Detach(ctx)); ok {
			t.Error("a detached context holds a lock")
		}
		unlock(t, outer)
		if _, ok := core.FromContext(ctx); ok {
			t.Error("the lock was unlocked")
		}
		unlock(t, take(t, ctx, l, "k"))
	})
}

func TestContextOfStringKeysWithSomethingElse(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		for _, value := range []any{nil, 1, "x", (*core.Lock)(nil)} {
			unlock(t, take(t, stringKeys{adapter.ContextKey: value}, l, "k"))
		}
	})
}

func TestDetachedCompetesLikeAStranger(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		type valueKey struct{}
		ctx, cancel := context.WithCancelCause(context.WithValue(background, valueKey{}, "v"))
		a := take(t, ctx, l, "a")
		b := take(t, a.Context(), l, "b")
		detached := core.Detach(b.Context())
		for _, key := range []string{"a", "b"} {
			_, err := l.TryLock(detached, key)
			wantBusy(t, err)
		}
		if _, ok := core.FromContext(detached); ok {
			t.Error("a detached context holds a lock")
		}
		if detached.Value(valueKey{}) != "v" {
			t.Error("a detached context has lost its values")
		}
		own := take(t, detached, l, "c")
		again := take(t, own.Context(), l, "c")
		_, err := l.TryLock(again.Context(), "a") // still a stranger further down
		wantBusy(t, err)
		unlock(t, again, own)
		cancel(errEnough)
		if context.Cause(detached) != errEnough {
			t.Error("a detached context has lost its cancellation")
		}
		unlock(t, b, a)
	})
}

func TestFromContextIsTheInnermostHeld(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		if k, ok := core.FromContext(background); k != nil || ok {
			t.Error("an empty context holds a lock")
		}
		a := take(t, background, l, "a")
		b := take(t, a.Context(), l, "b")
		again := take(t, b.Context(), l, "a")
		for _, want := range []*core.Lock{again, b, a} {
			if k, ok := core.FromContext(again.Context()); !ok || k != want {
				t.Errorf("FromContext: %v; want %v", k, want)
			}
			unlock(t, want)
		}
		if _, ok := core.FromContext(again.Context()); ok {
			t.Error("all are unlocked")
		}
	})
}

func TestContextOfALockTellsWhatItIs(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		k := take(t, background, s.locker(), "k")
		defer unlock(t, k)
		ctx, cancel := context.WithCancel(k.Context())
		defer cancel()
		if text := fmt.Sprint(ctx); text != "context.Background.WithLock.WithCancel" {
			t.Error(text)
		}
	})
}

func TestFromContextShowsALostLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k")
		s.Del("lock:k")
		<-k.Context().Done()
		if found, ok := core.FromContext(k.Context()); !ok || found != k {
			t.Error("a lost lock is not shown")
		}
		wantErr(t, k.Unlock(background), core.ErrLost)
	})
}

func TestLockContextDescendsFromTheCallers(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		type valueKey struct{}
		ctx, cancel := context.WithCancelCause(context.WithValue(background, valueKey{}, "v"))
		k := take(t, ctx, l, "k")
		if k.Context().Value(valueKey{}) != "v" {
			t.Error("the values are gone")
		}
		cancel(errEnough)
		if context.Cause(k.Context()) != errEnough {
			t.Errorf("cause %v", context.Cause(k.Context()))
		}
		unlock(t, k)
	})
}

func TestDefault(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		before := core.Default()
		defer core.SetDefault(before)
		l := s.locker()
		core.SetDefault(l)
		if core.Default() != l {
			t.Error("Default is not what SetDefault set")
		}
		core.SetDefault(nil)
		if core.Default() != nil {
			t.Error("the default was not taken away")
		}
	})
}

// What must be finished is finished, also without a context.
// Taken out, it panics, and the lock stays until its lease ends.
func TestNilContextWhereWorkMustBeFinished(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		var none context.Context
		for name, finish := range map[string]func(*core.Lock, context.Context) error{
			"unlock": (*core.Lock).Unlock,
			"abort":  (*core.Lock).Abort,
		} {
			k := take(t, background, s.locker(), name)
			if err := finish(k, none); err != nil {
				t.Error(err)
			}
			s.isFree(name)
		}
		l := s.open()
		unlock(t, take(t, background, l, "k"))
		if err := l.Close(none); err != nil {
			t.Error(err)
		}
	})
}

// The lock of a key is found among others, as long as it is held.
func TestLockOfAKeyAmongSeveral(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.locker(), s.locker(core.Prefix("other:"))
		want := func(ctx context.Context, key string, want *core.Lock) {
			t.Helper()
			if k, ok := core.FromContextKey(ctx, key); k != want || ok != (want != nil) {
				t.Errorf("of %q: %v, %v; want %v", key, k, ok, want)
			}
		}
		outer := take(t, background, l, "a")
		inner := take(t, outer.Context(), l, "b")
		again := take(t, inner.Context(), l, "a")
		ctx := again.Context()
		want(ctx, "b", inner)
		want(ctx, "a", again)
		want(ctx, "lock:a", nil)
		want(inner.Context(), "a", outer)
		want(outer.Context(), "b", nil)
		want(core.Detach(ctx), "a", nil)
		want(stringKeys{adapter.ContextKey: again}, "b", inner)
		unlock(t, again)
		want(ctx, "a", outer)
		if held := adapter.LocksOf(ctx); len(held) != 2 || held[0] != inner || held[1] != outer {
			t.Errorf("held: %v", held)
		}

		elsewhere := take(t, context.WithoutCancel(ctx), other, "a")
		want(elsewhere.Context(), "a", elsewhere)
		unlock(t, elsewhere, inner, outer)
		want(ctx, "a", nil)

		all, err := l.LockAll(background, []string{"a", "b", "c"})
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range all.Keys() {
			if k, ok := core.FromContextKey(all.Context(), key); !ok || k.Key() != key || k.Token() != all.Token(key) {
				t.Errorf("of %q: %v, %v", key, k, ok)
			}
		}
		if err := all.Unlock(background); err != nil {
			t.Error(err)
		}
		want(all.Context(), "b", nil)
	})
}
