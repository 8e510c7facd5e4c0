package core

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A lock that was about to be passed to a call of LockAll ends, and all contexts of the call with
// it, when the Locker closes just then. The call fails because of that.
func TestLockAllThatIsPassedALockWhenTheLockerCloses(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer func() { _ = client.Close() }()
	l, err := New(client, Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	m := &MultiLock{locker: l}
	m.ctx, m.cancel = context.WithCancelCause(t.Context())
	a := &multiCall{m: m, caller: t.Context(), settings: &l.defaults}
	cs, err := a.calls([]string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	tell := a.wants(cs[0])
	s := &lease{locker: l, name: cs[0].name}
	s.length = l.defaults.Lease
	held := &Lock{lease: s}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	held.successor(cs[0]).cancel(nil)
	if err := a.ended(nil, closed("waiting for", "a"), tell); !errors.Is(err, ErrClosed) {
		t.Errorf("the call fails: %v", err)
	}
}
