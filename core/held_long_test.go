package core_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// A handler that hangs is told of by its own process, again and again, but not at each renewal. Whoever leads, or says so, may last.
func TestTheLogSaysWhoHoldsALockForLong(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		logged := new(records)
		l := s.locker(core.Logger(logged.logger()))
		k := take(t, background, l, "k")
		lasting := take(t, background, l, "lasting", adapter.MayLast())
		fixed := take(t, background, l, "fixed", core.FixedLease(time.Hour))
		ctx, stop := context.WithCancel(background)
		led := make(chan error)
		go func() {
			led <- l.Lead(ctx, "led", func(ctx context.Context) error { <-ctx.Done(); return nil })
		}()
		began := time.Now()
		for _, at := range []struct{ seconds, lines int }{{89, 0}, {110, 1}, {179, 1}, {200, 2}, {359, 2}, {380, 3}, {719, 3}, {740, 4}} {
			time.Sleep(time.Duration(at.seconds)*time.Second - time.Since(began))
			if n := logged.count("a lock is held for long"); n != at.lines || len(logged.all()) != n {
				t.Errorf("after %d s %d lines, want %d: %q", at.seconds, n, at.lines, logged.all())
			}
		}
		said := ""
		logged.lines[0].Attrs(func(a slog.Attr) bool {
			said += fmt.Sprint(a, " ")
			return true
		})
		if want := "key=k owner=" + k.Owner() + " for=1m3"; len(said) < len(want) || said[:len(want)] != want {
			t.Errorf("%s, want %s", said, want)
		}
		stop()
		<-led
		unlock(t, k, lasting, fixed)
	})
}
