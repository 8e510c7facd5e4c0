package core_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/latchkey-go/latchkey/core"
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
