package core

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
)

// A lock is passed on in memory for as long as others can wait for their turn, and never
// after its end, should the process have stood still just then.
func TestHowLongALockIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		l, err := New(client, Logger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		for kept, ends := range map[time.Duration]time.Duration{
			time.Millisecond:           time.Millisecond,
			9 * time.Millisecond:       time.Hour,
			2 * time.Millisecond:       0,
			3 * time.Millisecond:       -time.Millisecond,
			passFor:                    time.Hour,
			passFor + time.Millisecond: time.Hour,
		} {
			now := schedule.Now()
			s := &lease{locker: l}
			s.heldSince = now.Add(-kept)
			s.times.deadline = now.Add(ends)
			if want := kept < passFor && ends > 0; s.canBePassed() != want {
				t.Errorf("held for %v, ends in %v: passed on is %v", kept, ends, !want)
			}
		}
		// Redis gives a token of its own to whoever has the lock next, should it end without a release.
		for given, want := range map[int64]bool{999: true, 1000: false} {
			now := schedule.Now()
			s := &lease{locker: l, token: given}
			s.heldSince, s.times.deadline = now.Add(-time.Millisecond), now.Add(time.Hour)
			if s.canBePassed() != want {
				t.Errorf("%d tokens given in a millisecond: passed on is %v", given, !want)
			}
		}
		_ = l.Close(t.Context())
		_ = client.Close()
	})
}
