package adapter_test

import (
	"context"
	"errors"
	"testing"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/locktest"
)

// The error of a function that has run may look like that of a lock.
func TestDoReportsWhetherTheFunctionHasRun(t *testing.T) {
	locker := locktest.New(t)
	failed := &core.BusyError{Key: "another"}
	for name, do := range map[string]func(fn func(context.Context) error, opts ...core.Option) (bool, error){
		"Do": func(fn func(context.Context) error, opts ...core.Option) (bool, error) {
			return adapter.Do(t.Context(), locker, "42", fn, opts...)
		},
		"DoAll": func(fn func(context.Context) error, opts ...core.Option) (bool, error) {
			return adapter.DoAll(t.Context(), locker, []string{"41", "42"}, fn, opts...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if ran, err := do(func(context.Context) error { return nil }); !ran || err != nil {
				t.Errorf("a success: %v, %v", ran, err)
			}
			if ran, err := do(func(context.Context) error { return failed }); !ran || !errors.Is(err, failed) {
				t.Errorf("a failure: %v, %v", ran, err)
			}
			never := func(context.Context) error { t.Error("the function ran"); return nil }
			if ran, err := do(never, core.Lease(-1)); ran || err == nil {
				t.Errorf("a bad option: %v, %v", ran, err)
			}
			held, err := locker.TryLock(t.Context(), "42")
			if err != nil {
				t.Fatal(err)
			}
			defer held.Unlock(t.Context())
			if ran, err := do(never, core.NoWait()); ran || !errors.Is(err, core.ErrNotAcquired) {
				t.Errorf("a busy lock: %v, %v", ran, err)
			}
		})
	}
}

// Without a function no lock is taken.
func TestNoFunctionToRun(t *testing.T) {
	locker := locktest.New(t)
	for name, do := range map[string]func(){
		"Do":    func() { _, _ = adapter.Do(t.Context(), locker, "42", nil) },
		"DoAll": func() { _, _ = adapter.DoAll(t.Context(), locker, []string{"42"}, nil) },
	} {
		func() {
			defer func() {
				if why := recover(); why != "core: "+name+" needs a function to run, and it is nil" {
					t.Errorf("%s: %v", name, why)
				}
			}()
			do()
		}()
	}
}
