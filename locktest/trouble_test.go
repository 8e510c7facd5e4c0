//go:build go1.25

package locktest_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/locktest"
)

var background = context.Background()

func nothing(context.Context) error { return nil }

// forbidden is a log without lines.
type forbidden struct{ t *testing.T }

func (forbidden) Enabled(context.Context, slog.Level) bool { return true }
func (f forbidden) WithAttrs([]slog.Attr) slog.Handler     { return f }
func (f forbidden) WithGroup(string) slog.Handler          { return f }
func (f forbidden) Handle(_ context.Context, r slog.Record) error {
	f.t.Errorf("logged: %s", r.Message)
	return nil
}

func TestHold(t *testing.T) {
	// Options that would end or prolong the hold.
	for name, opts := range map[string][]core.Option{
		"no options":   nil,
		"fixed lease":  {core.FixedLease(time.Second)},
		"MaxHold":      {core.MaxHold(time.Second)},
		"window":       {core.KeepFor(2 * time.Hour)},
		"other prefix": {core.Prefix("app:")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				locker := locktest.New(t, append(opts, core.Logger(slog.New(forbidden{t})))...)
				release := locktest.Hold(t, locker, "order:42")
				time.Sleep(time.Hour)
				if err := locker.Do(background, "order:42", nothing, core.NoWait()); !errors.Is(err, core.ErrNotAcquired) {
					t.Errorf("err %v, want ErrNotAcquired", err)
				}
				if err := locker.Do(background, "order:43", nothing, core.NoWait()); err != nil {
					t.Errorf("another key: %v", err)
				}
				release()
				release()
				if err := locker.Do(background, "order:42", nothing, core.NoWait()); err != nil {
					t.Errorf("after release: %v", err)
				}
			})
		})
	}
}

func TestHoldWakesWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		release := locktest.Hold(t, locker, "order:42")
		done := make(chan error)
		go func() { done <- locker.Do(background, "order:42", nothing) }()
		time.Sleep(time.Minute)
		began := time.Now()
		release()
		if err := <-done; err != nil || time.Since(began) > 0 {
			t.Errorf("err %v after %v", err, time.Since(began))
		}
	})
}

func TestHoldEndsWithTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker, r := locktest.New(t), &recorder{TB: t}
		locktest.Hold(r, locker, "order:42")
		began := time.Now()
		for _, f := range r.cleanups {
			f()
		}
		if err := locker.Do(background, "order:42", nothing, core.NoWait()); err != nil || time.Since(began) > 0 {
			t.Errorf("err %v after %v", err, time.Since(began))
		}
	})
}

// The holder is somebody else: closing the Locker does not wait for him.
func TestHoldDoesNotHinderClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t)
		locktest.Hold(t, locker, "order:42")
		if err := locker.Close(background); err != nil {
			t.Error(err)
		}
	})
}

func TestLose(t *testing.T) {
	for name, opts := range map[string][]core.Option{
		"no options":  nil,
		"fixed lease": {core.FixedLease(time.Hour)},
		"overdue":     {core.MaxHold(time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				locker := locktest.New(t, append(opts, core.Logger(slog.New(slog.DiscardHandler)))...)
				err := locker.Do(background, "order:42", func(ctx context.Context) error {
					k, _ := core.FromContext(ctx)
					return locker.Do(ctx, "order:42", func(inner context.Context) error {
						time.Sleep(time.Second)
						locktest.Lose(t, locker, "order:42")
						if ctx.Err() == nil || inner.Err() == nil {
							t.Error("the context is not done")
						}
						if _, err := k.TTL(background); !errors.Is(err, core.ErrLost) {
							t.Errorf("err %v", err)
						}
						return nil
					})
				})
				if !errors.Is(err, core.ErrLost) {
					t.Errorf("err %v, want ErrLost", err)
				}
				// It can be taken, and lost, again.
				err = locker.Do(background, "order:42", func(ctx context.Context) error {
					if err := locker.Do(ctx, "order:42", nothing); err != nil {
						return err
					}
					locktest.Lose(t, locker, "order:42")
					if cause := context.Cause(ctx); !errors.Is(cause, core.ErrLost) {
						t.Errorf("cause %v", cause)
					}
					return nil
				})
				if !errors.Is(err, core.ErrLost) {
					t.Errorf("err %v, want ErrLost", err)
				}
			})
		})
	}
}

// Somebody else who shares the key, or has a permit, is in the way of those only that do not go with it.
func TestHoldInAForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t, core.NoWait())
		release := locktest.Hold(t, locker, "price", core.Shared())
		locktest.Hold(t, locker, "tenant", core.Permits(3))
		locktest.Hold(t, locker, "tenant", core.Permits(3))
		for what, c := range map[string]struct {
			key  string
			opt  core.Option
			busy bool
		}{
			"a reader":        {"price", core.Shared(), false},
			"a writer":        {"price", core.Name("writer"), true},
			"the third of 3":  {"tenant", core.Permits(3), false},
			"the third of 2":  {"tenant", core.Permits(2), true},
			"alone":           {"tenant", core.Name("alone"), true},
			"another's price": {"other", core.Name("writer"), false},
		} {
			err := locker.Do(background, c.key, nothing, c.opt)
			if c.busy != errors.Is(err, core.ErrNotAcquired) || !c.busy && err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		release()
		if err := locker.Do(background, "price", nothing); err != nil {
			t.Errorf("after release: %v", err)
		}
	})
}

// All that the Locker has of a key is lost at once, and nothing of what others have beside it.
func TestLoseSharedLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t, core.Logger(slog.New(slog.DiscardHandler)), core.NoWait())
		locktest.Hold(t, locker, "k", core.Shared())
		var taken []*core.Lock
		for range 3 {
			k, err := locker.Lock(background, "k", core.Shared())
			if err != nil {
				t.Fatal(err)
			}
			taken = append(taken, k)
		}
		if err := taken[2].Unlock(background); err != nil {
			t.Fatal(err)
		}
		locktest.Lose(t, locker, "k")
		for _, k := range taken[:2] {
			if cause := context.Cause(k.Context()); !errors.Is(cause, core.ErrLost) {
				t.Errorf("cause %v", cause)
			}
		}
		if err := locker.Do(background, "k", nothing); !errors.Is(err, core.ErrNotAcquired) {
			t.Errorf("what somebody else has is gone, too: %v", err)
		}
	})
}

func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t, core.Logger(slog.New(slog.DiscardHandler)))
		k, err := locker.Lock(background, "order:42")
		if err != nil {
			t.Fatal(err)
		}
		end := locktest.Outage(t, locker)
		began := time.Now()
		if err := locker.Do(background, "order:43", nothing); !errors.Is(err, core.ErrUnavailable) || time.Since(began) > 0 {
			t.Errorf("err %v after %v, want ErrUnavailable at once", err, time.Since(began))
		}
		<-k.Context().Done()
		if err := k.Unlock(background); !errors.Is(err, core.ErrLost) {
			t.Errorf("err %v, want ErrLost", err)
		}
		end()
		if err := locker.Do(background, "order:42", nothing); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// The outage ends with the test, so that what is left can be released.
func TestOutageEndsWithTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t, core.Logger(slog.New(slog.DiscardHandler)))
		k, err := locker.Lock(background, "order:42")
		if err != nil {
			t.Fatal(err)
		}
		locktest.Hold(t, locker, "order:43")
		locktest.Outage(t, locker)
		if err := k.Unlock(background); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("err %v, want ErrUnavailable", err)
		}
	})
}

func TestTroubleThatCannotBeEndsTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := locktest.New(t, core.Logger(slog.New(slog.DiscardHandler)))
		locktest.Hold(t, locker, "busy")
		if err := locker.Do(background, "released", nothing); err != nil {
			t.Fatal(err)
		}
		locktest.Hold(t, locker, "released")
		_ = locker.Do(background, "lost", func(context.Context) error { locktest.Lose(t, locker, "lost"); return nil })
		ended := &recorder{TB: t}
		before := locktest.New(ended)
		for _, f := range ended.cleanups {
			f()
		}
		for name, trouble := range map[string]func(testing.TB){
			"Hold of a key that is held":     func(tb testing.TB) { locktest.Hold(tb, locker, "busy") },
			"Hold without a key":             func(tb testing.TB) { locktest.Hold(tb, locker, "") },
			"Lose of a key that is free":     func(tb testing.TB) { locktest.Lose(tb, locker, "free") },
			"Lose of a key that is released": func(tb testing.TB) { locktest.Lose(tb, locker, "released") },
			"Lose of a key that is lost":     func(tb testing.TB) { locktest.Lose(tb, locker, "lost") },
			"Lose of what another one holds": func(tb testing.TB) { locktest.Lose(tb, locker, "busy") },
			"Hold with another Locker":       func(tb testing.TB) { locktest.Hold(tb, before, "k") },
			"Lose with another Locker":       func(tb testing.TB) { locktest.Lose(tb, before, "k") },
			"Outage of another Locker":       func(tb testing.TB) { locktest.Outage(tb, before) },
		} {
			r := &recorder{TB: t}
			func() {
				defer func() {
					if recover() != r {
						t.Errorf("%s: the test did not end", name)
					}
				}()
				trouble(r)
			}()
			for _, f := range r.cleanups {
				f()
			}
		}
		if info, err := locker.Inspect(background, "released"); err != nil || !info.Locked {
			t.Errorf("Lose has taken the lock of somebody else away: %+v, %v", info, err)
		}
	})
}
