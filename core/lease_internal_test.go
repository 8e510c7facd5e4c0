package core

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
)

// Its renewal may be due, or answered, just as a lock is unlocked, and a call may be about to
// re-enter it.
// Taken out, it is renewed after its release, lost after its Unlock, or entered without a renewal.
func TestWhatComesJustAfterTheUnlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		l, err := New(client, Logger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		name, err := l.name("k")
		if err != nil {
			t.Fatal(err)
		}
		now := schedule.Now()
		s := &lease{locker: l, name: name} // without a handle
		s.times.deadline = now.Add(time.Hour)
		if s.Due(now); s.renewing {
			t.Error("it is renewed")
		}
		if s.Renewed(false, nil, time.Now()); s.err != nil {
			t.Errorf("it is lost: %v", s.err)
		}
		if err := s.join(new(Lock)); !errors.Is(err, ErrLost) {
			t.Errorf("a call that enters it: %v", err)
		}
		_ = l.Close(t.Context())
		_ = client.Close()
	})
}
