//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// fails runs calls at the same time, of which the function takes a second and fails.
func fails(l *core.Locker, runs *atomic.Int32, opts ...core.Option) chan error {
	errs := make(chan error, 1)
	go func() {
		_, err := core.Once(background, l, "k", func(context.Context) (int, error) {
			runs.Add(1)
			time.Sleep(time.Second)
			return 0, errBoom
		}, append(opts, core.KeepFor(kept))...)
		errs <- err
	}()
	return errs
}

// A feed that is down costs a process one call, however many wait for it; other processes ask for themselves.
func TestOnceSharesAFailureInAProcess(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := new(ear)
		a, b := s.locker(core.Observe(o)), s.locker()
		var runs atomic.Int32
		var all []chan error
		for i := range 100 {
			all = append(all, fails([]*core.Locker{a, b}[i%2], &runs, core.Wait(3*time.Second)))
		}
		synctest.Wait()
		var plain sync.WaitGroup
		plain.Go(func() { unlock(t, take(t, background, a, "k")) })
		began := time.Now()
		for _, errs := range all {
			if err := <-errs; err != errBoom {
				t.Errorf("a call got %v", err)
			}
		}
		wantTime(t, "all", time.Since(began), 2*time.Second, 2100*time.Millisecond)
		plain.Wait()
		if n := runs.Load(); n != 2 {
			t.Errorf("%d runs of 2 processes", n)
		}
		answered := 0
		for _, e := range o.events {
			if e.Kind == core.EventBusy && e.Reason == "answered" && e.Err != nil {
				answered++
			}
		}
		if answered != 49 {
			t.Errorf("%d calls were answered with a failure", answered)
		}
		s.isFree("k")
		if err := <-fails(a, &runs); err != errBoom || runs.Load() != 3 {
			t.Errorf("a later call: %v, %d runs", err, runs.Load())
		}
	})
}

// The end of a call's own context is no failure of the function. What has no error of its function is not shared either, nor
// what nobody knows, and a call may want none.
func TestOnceSharesNoFailureOfItsOwn(t *testing.T) {
	for what, c := range map[string]struct {
		fn   func(ctx context.Context) (int, error)
		opts []core.Option
	}{
		"its context": {fn: func(ctx context.Context) (int, error) {
			time.Sleep(time.Minute)
			return 0, errors.Join(errBoom, ctx.Err())
		}},
		"a panic": {fn: func(context.Context) (int, error) { time.Sleep(time.Second); panic(errBoom) }},
		"no JSON": {},
		"opted out": {
			func(context.Context) (int, error) { time.Sleep(time.Second); return 0, errBoom },
			[]core.Option{core.KeepFor(kept), adapter.Once()},
		},
		"it is lost": {func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, errBoom }, []core.Option{core.MaxHold(time.Second)}},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker(core.KeepFor(kept))
				ctx, cancel := context.WithTimeout(background, 30*time.Second)
				defer cancel()
				var calls sync.WaitGroup
				calls.Go(func() {
					defer func() { _ = recover() }()
					if what == "no JSON" {
						_, _ = core.Once(ctx, l, "k", func(context.Context) (any, error) { time.Sleep(time.Second); return time.Second, nil })
						return
					}
					_, _ = core.Once(ctx, l, "k", c.fn, c.opts...)
				})
				synctest.Wait()
				calls.Go(func() {
					got, err := core.Once(background, l, "k", func(context.Context) (int, error) { return 7, nil }, c.opts...)
					if got != 7 || err != nil {
						t.Errorf("the next one got %d, %v", got, err)
					}
				})
				calls.Wait()
			})
		})
	}
}

// A function may end with an error when it was cut off, or say that it does not know: nobody does then.
func TestOnceOfAnErrorThatSaysNothing(t *testing.T) {
	cutOff := func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, errBoom }
	doesNotKnow := func(context.Context) (int, error) { return 0, fmt.Errorf("%w: %w", errBoom, core.ErrOutcomeUnknown) }
	for what, c := range map[string]struct {
		fn     func(ctx context.Context) (int, error)
		option core.Option
		want   error
	}{
		"held for too long": {cutOff, core.MaxHold(time.Minute), core.ErrMaxHold},
		"a fixed lease":     {cutOff, core.FixedLease(time.Minute), core.ErrLost},
		"it does not know":  {doesNotKnow, core.Lease(time.Minute), core.ErrOutcomeUnknown},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker(core.KeepFor(kept))
				_, err := core.Once(background, l, "k", c.fn, c.option)
				wantErr(t, err, errBoom, c.want)
				_, err = core.Once(background, l, "k", func(context.Context) (int, error) { t.Error("it ran"); return 0, nil }, core.RefuseUnknown())
				wantErr(t, err, core.ErrOutcomeUnknown)
				wantNot(t, err, errBoom)
				got, err := core.Once(background, l, "k", func(ctx context.Context) (int, error) { return core.AttemptOf(ctx), nil })
				if got != 2 || err != nil {
					t.Errorf("attempt %d, %v", got, err)
				}
			})
		})
	}
}
