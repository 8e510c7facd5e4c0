package core_test

import (
	"context"
	"math"
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
