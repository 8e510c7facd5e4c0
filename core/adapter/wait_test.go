//go:build go1.25

package adapter_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/locktest"
)

func TestWaitAtMostShortensAWait(t *testing.T) {
	for name, c := range map[string]struct {
		opts []core.Option
		want time.Duration
	}{
		"no wait said":     {[]core.Option{adapter.WaitAtMost(time.Second)}, time.Second},
		"a longer one":     {[]core.Option{core.Wait(time.Minute), adapter.WaitAtMost(time.Second)}, time.Second},
		"a shorter one":    {[]core.Option{core.Wait(time.Second), adapter.WaitAtMost(time.Minute)}, time.Second},
		"no wait at all":   {[]core.Option{core.NoWait(), adapter.WaitAtMost(time.Minute)}, 0},
		"no time at all":   {[]core.Option{core.Wait(time.Minute), adapter.WaitAtMost(0)}, 0},
		"an adapter's own": {[]core.Option{adapter.Fallback(core.Wait(time.Minute)), adapter.WaitAtMost(time.Second)}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				locker := locktest.New(t)
				held, err := locker.TryLock(t.Context(), "42")
				if err != nil {
					t.Fatal(err)
				}
				defer held.Unlock(t.Context())
				began := time.Now()
				_, err = locker.Lock(t.Context(), "42", c.opts...)
				if !errors.Is(err, core.ErrNotAcquired) {
					t.Errorf("error is %v", err)
				}
				if waited := time.Since(began); waited != c.want {
					t.Errorf("waited %v, want %v", waited, c.want)
				}
			})
		})
	}
	if err := adapter.Validate(adapter.WaitAtMost(-1)); err == nil {
		t.Error("a negative time is accepted")
	}
}

// A dedup window refuses the call however else its wait was bounded, until core.Wait is set.
func TestNoWindowOutlastsAShorterWait(t *testing.T) {
	own := adapter.Fallback(core.Wait(time.Minute), adapter.NoWindow())
	for name, c := range map[string]struct {
		opts []core.Option
		want time.Duration
	}{
		"no window":               {[]core.Option{core.Wait(time.Minute), adapter.NoWindow()}, 0},
		"and a shorter wait":      {[]core.Option{core.Wait(time.Minute), adapter.NoWindow(), adapter.WaitAtMost(30 * time.Second)}, 0},
		"an adapter's":            {[]core.Option{own, adapter.WaitAtMost(30 * time.Second)}, 0},
		"Wait is set after it":    {[]core.Option{adapter.NoWindow(), core.Wait(time.Minute)}, 10 * time.Second},
		"Wait is set in an outer": {[]core.Option{core.Wait(time.Minute), own}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				locker := locktest.New(t)
				first, err := locker.Lock(t.Context(), "42", core.KeepFor(10*time.Second))
				if err != nil {
					t.Fatal(err)
				}
				if err := first.Unlock(t.Context()); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				second, err := locker.Lock(t.Context(), "42", c.opts...)
				if waited := time.Since(began).Round(time.Second); waited != c.want || (c.want == 0) != errors.Is(err, core.ErrNotAcquired) {
					t.Errorf("waited %v, want %v: %v", waited, c.want, err)
				}
				if err == nil {
					_ = second.Unlock(t.Context())
				}
			})
		})
	}
}
