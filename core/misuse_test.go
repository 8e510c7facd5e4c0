package core_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// A function that is missing is a mistake of the program: it is told at once, and not only when the lock was got.
func TestNoFunctionToRun(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		holder := take(t, background, l, "k") // the call would wait
		for name, call := range map[string]func() error{
			"Do":    func() error { return l.Do(within(time.Second), "k", nil) },
			"DoAll": func() error { return l.DoAll(within(time.Second), []string{"k"}, nil) },
			"Lead":  func() error { return l.Lead(within(time.Second), "k", nil) },
			"Wrap": func() error {
				core.Wrap(l, orderKey, (func(context.Context, int) (int, error))(nil))
				return nil
			},
			"WrapAll": func() error {
				core.WrapAll(l, func(int) ([]string, error) { return nil, nil }, (func(context.Context, int) (int, error))(nil))
				return nil
			},
		} {
			before := s.scripts()
			func() {
				defer func() {
					if text, _ := recover().(string); !strings.HasPrefix(text, "core: "+name+" needs a") {
						t.Errorf("%s panics with %q", name, text)
					}
				}()
				t.Errorf("%s returned %v", name, call())
			}()
			if s.scripts() != before {
				t.Errorf("%s has asked Redis", name)
			}
		}
		unlock(t, holder)
	})
}

// defer k.Unlock(ctx) stands before the error is looked at.
func TestNoLockToUnlock(t *testing.T) {
	var k *core.Lock
	var m *core.MultiLock
	for name, call := range map[string]func() error{
		"Unlock":           func() error { return k.Unlock(background) },
		"Abort":            func() error { return k.Abort(background) },
		"MultiLock.Unlock": func() error { return m.Unlock(background) },
		"MultiLock.Abort":  func() error { return m.Abort(background) },
	} {
		t.Run(name, func(t *testing.T) {
			err := call()
			wantErr(t, err, core.ErrNotHeld)
			if text := core.Detail(err); !strings.HasPrefix(text, "core: ") {
				t.Errorf("the log has %q", text)
			}
		})
	}
}

// The longest Wait there is ends no sooner than a shorter one.
func TestLongestWait(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Wait(math.MaxInt64))
		for name, call := range map[string]func() error{
			"Lock":    func() error { return l.Do(background, "a", noWork) },
			"Shared":  func() error { return l.Do(background, "a", noWork, core.Shared()) },
			"LockAll": func() error { return l.DoAll(background, []string{"a", "b"}, noWork) },
		} {
			holder := take(t, background, l, "a")
			done := make(chan error, 1)
			go func() { done <- call() }()
			time.Sleep(time.Hour)
			select {
			case err := <-done:
				t.Errorf("%s ended: %v", name, err)
			default:
			}
			unlock(t, holder)
			if err := <-done; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// A copy of a Lock stands for the same lock: whichever is unlocked first frees it, and the other one is not held.
func TestACopyIsTheSameLock(t *testing.T) {
	for name, unlockFirst := range map[string]bool{"the copy first": false, "the lock first": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				k := take(t, background, l, "k")
				var copied core.Lock
				reflect.ValueOf(&copied).Elem().Set(reflect.ValueOf(k).Elem()) // the mistake that go vet finds
				inner, err := l.Lock(copied.Context(), "k")
				if err != nil {
					t.Fatal(err)
				}
				unlock(t, inner)
				first, second := &copied, k
				if unlockFirst {
					first, second = k, &copied
				}
				if err := first.Refresh(background); err != nil {
					t.Error(err)
				}
				unlock(t, first)
				wantErr(t, second.Unlock(background), core.ErrNotHeld)
				wantErr(t, second.Refresh(background), core.ErrNotHeld)
				if _, err := second.Handover(background, time.Second); !errors.Is(err, core.ErrNotHeld) {
					t.Error(err)
				}
				if id := second.ShareOwner(); id != "" {
					t.Error(id)
				}
				time.Sleep(time.Minute) // the scheduler goes on
				other := take(t, background, l, "k")
				time.Sleep(time.Minute)
				unlock(t, other)
			})
		})
	}
	var zero core.Lock
	wantErr(t, zero.Unlock(background), core.ErrNotHeld)
}

// A nil context is a mistake of the program: it panics, as with the standard library, and the Locker goes on.
func TestANilContext(t *testing.T) {
	var none context.Context
	calls := map[string]func(l *core.Locker, k *core.Lock){
		"Lock":    func(l *core.Locker, _ *core.Lock) { _, _ = l.Lock(none, "j") },
		"TryLock": func(l *core.Locker, _ *core.Lock) { _, _ = l.TryLock(none, "j") },
		"a wait":  func(l *core.Locker, _ *core.Lock) { _, _ = l.Lock(none, "k", core.Wait(time.Second)) },
		"Do":      func(l *core.Locker, _ *core.Lock) { _ = l.Do(none, "j", func(context.Context) error { return nil }) },
		"LockAll": func(l *core.Locker, _ *core.Lock) { _, _ = l.LockAll(none, []string{"i", "j"}) },
		"Once": func(l *core.Locker, _ *core.Lock) {
			_, _ = core.Once(none, l, "j", func(context.Context) (int, error) { return 1, nil }, core.KeepFor(time.Minute))
		},
		"Lead":        func(l *core.Locker, _ *core.Lock) { _ = l.Lead(none, "j", func(context.Context) error { return nil }) },
		"Inspect":     func(l *core.Locker, _ *core.Lock) { _, _ = l.Inspect(none, "j") },
		"ForceUnlock": func(l *core.Locker, _ *core.Lock) { _, _ = l.ForceUnlock(none, "j") },
		"Ping":        func(l *core.Locker, _ *core.Lock) { _ = l.Ping(none) },
		"Refresh":     func(_ *core.Locker, k *core.Lock) { _ = k.Refresh(none) },
		"Count":       func(_ *core.Locker, k *core.Lock) { _, _ = k.Count(none) },
		"Handover":    func(_ *core.Locker, k *core.Lock) { _, _ = k.Handover(none, time.Minute) },
		"Resume":      func(l *core.Locker, _ *core.Lock) { _, _ = l.Resume(none, "j", "ticket") },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				k := take(t, background, l, "k")
				func() {
					defer func() {
						if recover() == nil {
							t.Error("it does not panic")
						}
					}()
					call(l, k)
				}()
				unlock(t, k)
				unlock(t, take(t, within(5*time.Second), l, "k"))
				unlock(t, take(t, within(5*time.Second), l, "j"))
				if err := l.Close(within(5 * time.Second)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
