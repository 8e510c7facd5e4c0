//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// Whether anybody awaits the end of a context makes no difference to what it tells afterwards.
func TestContextOfALockAfterItsEnd(t *testing.T) {
	errLater := errors.New("later")
	for name, c := range map[string]struct {
		end   func(s *embedded, k *core.Lock, cancel context.CancelCauseFunc)
		cause error
	}{
		"unlocked":             {func(_ *embedded, k *core.Lock, _ context.CancelCauseFunc) { _ = k.Unlock(background) }, context.Canceled},
		"the call's has ended": {func(_ *embedded, _ *core.Lock, cancel context.CancelCauseFunc) { cancel(errEnough) }, errEnough},
		"the call's has ended, then unlocked": {func(_ *embedded, k *core.Lock, cancel context.CancelCauseFunc) {
			cancel(errEnough)
			_ = k.Unlock(background)
		}, errEnough},
		"lost": {func(s *embedded, k *core.Lock, _ context.CancelCauseFunc) {
			s.Del("lock:k")
			_ = k.Refresh(background)
			_ = k.Unlock(background)
		}, core.ErrLost},
		"held for too long": {func(_ *embedded, k *core.Lock, _ context.CancelCauseFunc) {
			time.Sleep(61 * time.Second)
			_ = k.Unlock(background)
		}, core.ErrMaxHold},
	} {
		for _, awaited := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, awaited %v", name, awaited), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					l := s.locker(core.MaxHold(time.Minute))
					call, stop := context.WithTimeout(background, time.Hour)
					defer stop()
					call, cancel := context.WithCancelCause(call)
					k := take(t, call, l, "k")
					ctx := k.Context()
					if awaited && isOver(ctx) || ctx.Err() != nil || context.Cause(ctx) != nil {
						t.Error("it has ended too early")
					}
					deadline, _ := ctx.Deadline()
					c.end(s, k, cancel)
					cancel(errLater)
					if ctx.Err() != context.Canceled || !isOver(ctx) {
						t.Errorf("%v, done: %v", ctx.Err(), isOver(ctx))
					}
					child, cancelChild := context.WithCancel(ctx)
					defer cancelChild()
					for _, of := range []context.Context{ctx, child} {
						if cause := context.Cause(of); !errors.Is(cause, c.cause) {
							t.Errorf("%v because of %v; want %v", of, cause, c.cause)
						}
						if d, ok := of.Deadline(); !ok || d != deadline {
							t.Errorf("%v: another deadline, %v", of, d)
						}
					}
					_ = k.Unlock(background)
				})
			})
		}
	}
}

func isOver(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// Others may await it while it ends.
func TestContextOfALockIsAwaitedWhileItEnds(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		for range 100 {
			k := take(t, background, l, "k")
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					<-k.Context().Done()
					if cause := context.Cause(k.Context()); cause != context.Canceled {
						t.Errorf("cause %v", cause)
					}
				})
			}
			unlock(t, k)
			all.Wait()
		}
	})
}
