package core

import (
	"context"

	"github.com/latchkey-go/latchkey/core/internal/acquire"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// MultiLock is the locks of several keys, taken by [Locker.LockAll]. It must be unlocked. Its
// methods are safe for concurrent use. Unlock and Abort of a nil one return [ErrNotHeld].
type MultiLock struct{ several acquire.Several }

// Keys returns the keys, each once, in the order in which they were taken: first those that
// the context held.
func (m *MultiLock) Keys() []string {
	keys := make([]string, len(m.several.Handles))
	for i, h := range m.several.Handles {
		keys[i] = h.Acquired().Name.Key()
	}
	return keys
}

// Token returns the fencing token of a key, as [Lock.Token] does; 0 for a key that is not among
// [MultiLock.Keys].
func (m *MultiLock) Token(key string) int64 {
	for _, h := range m.several.Handles {
		if h.Acquired().Name.Key() == key {
			return h.Acquired().Token
		}
	}
	return 0
}

// Context returns the context to work under, as [Lock.Context] does. It carries the ownership
// of all locks, and ends as soon as the protection of one of them does.
func (m *MultiLock) Context() context.Context { return m.several.Context() }

// Unlock unlocks all, in reverse order, and whatever comes of one of them, as [Lock.Unlock]
// does: in all it blocks for [Timeout] at most. Context is done before anybody else can have one of them.
// It returns the errors joined; [ErrNotHeld] when it is called again.
//
// [KeepFor] opens the windows of all locks or, after the loss of one or
// [Lock.DropWindow], of none. So with KeepFor Unlock first asks Redis whether all are held, which may
// take as long again.
func (m *MultiLock) Unlock(ctx context.Context) error {
	return m.finish(ctx, store.Done, option.AwaitedRelease)
}

// Abort is Unlock after a failure: it opens no [KeepFor] window.
func (m *MultiLock) Abort(ctx context.Context) error {
	return m.finish(ctx, store.Failed, option.AwaitedRelease)
}

func (m *MultiLock) usable() error {
	for _, h := range m.several.Handles {
		if err := h.Usable(); err != nil {
			return err
		}
	}
	return nil
}

func (m *MultiLock) keys() []string { return m.Keys() }

func (m *MultiLock) finish(ctx context.Context, work store.Work, mode option.ReleaseMode) error {
	if m == nil {
		return errorsOf{}.NotHeld("")
	}
	return m.several.Release(ctx, work, mode)
}
