package core_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// inWindow fails the test unless the key is in its dedup window for rest.
func inWindow(t *testing.T, l *core.Locker, key string, rest time.Duration) {
	t.Helper()
	info, err := l.Inspect(background, key)
	info.Queue = nil // whoever waits
	if want := (core.Info{Locked: true, State: core.StateDedupWindow, TTL: rest}); err != nil || !reflect.DeepEqual(info, want) {
		t.Errorf("Inspect: %+v, %v; want %+v", info, err, want)
	}
	_, err = l.TryLock(background, key)
	if got := wantBusy(t, err).RetryAfter; got != rest {
		t.Errorf("RetryAfter %v; want %v", got, rest)
	}
}

func TestKeepForAfterASuccess(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		k := take(t, background, a, "k", core.KeepFor(time.Minute))
		if got := s.TTL("lock:k"); got != lease {
			t.Errorf("TTL %v while held; want the lease, for the holder may die", got)
		}
		time.Sleep(20 * time.Second)
		unlock(t, k)
		inWindow(t, a, "k", 40*time.Second) // counted from the acquisition
		inWindow(t, b, "k", 40*time.Second)
		if got := s.held("k"); got != "" {
			t.Errorf("Redis shows an owner: %s", got)
		}
		time.Sleep(40 * time.Second)
		unlock(t, take(t, background, b, "k", core.NoWait()))
		s.isFree("k")
	})
}

func TestKeepForThatIsOverAtUnlock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k", core.KeepFor(time.Second))
		time.Sleep(time.Minute)
		unlock(t, k)
		s.isFree("k")
	})
}

func TestNoWindowAfterAFailure(t *testing.T) {
	keep := core.KeepFor(time.Minute)
	boom := errors.New("boom")
	for name, fail := range map[string]func(*testing.T, *core.Locker){
		"DropWindow": func(t *testing.T, l *core.Locker) {
			err := l.Do(background, "k", func(ctx context.Context) error {
				outer, _ := core.FromContext(ctx)
				return l.Do(ctx, "k", func(ctx context.Context) error {
					if outer.Window() != time.Minute {
						t.Errorf("Window is %v", outer.Window())
					}
					lock, _ := core.FromContext(ctx)
					lock.DropWindow()
					if outer.Window() != 0 {
						t.Errorf("Window is %v after DropWindow", outer.Window())
					}
					return nil
				})
			}, keep)
			if err != nil {
				t.Error(err)
			}
		},
		"Abort": func(t *testing.T, l *core.Locker) {
			if err := take(t, background, l, "k", keep).Abort(background); err != nil {
				t.Error(err)
			}
		},
		"error": func(t *testing.T, l *core.Locker) {
			wantErr(t, l.Do(background, "k", func(context.Context) error { return boom }, keep), boom)
		},
		"panic": func(t *testing.T, l *core.Locker) {
			defer func() {
				if v := recover(); v != boom {
					t.Errorf("recovered %v", v)
				}
			}()
			_ = l.Do(background, "k", func(context.Context) error { panic(boom) }, keep)
		},
		"MaxHold": func(t *testing.T, l *core.Locker) {
			err := l.Do(background, "k", func(context.Context) error { time.Sleep(2 * time.Second); return nil }, keep, core.MaxHold(time.Second))
			wantErr(t, err, core.ErrMaxHold)
		},
		"wrapped": func(t *testing.T, l *core.Locker) {
			f := core.Wrap(l, func(string) (string, error) { return "k", nil }, func(context.Context, string) (int, error) { return 0, boom }, keep)
			_, err := f(background, "")
			wantErr(t, err, boom)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				fail(t, l)
				s.isFree("k")
				unlock(t, take(t, background, l, "k", core.NoWait()))
			})
		})
	}
}

func TestWindowAfterDoAndWrap(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.KeepFor(time.Minute))
		if err := l.Do(background, "do", func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		inWindow(t, l, "do", time.Minute)
		f := core.Wrap(l, func(in string) (string, error) { return in, nil }, func(context.Context, string) (int, error) { return 1, nil })
		if _, err := f(background, "wrap"); err != nil {
			t.Error(err)
		}
		inWindow(t, l, "wrap", time.Minute)
	})
}

func TestNoWindowAfterALoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k", core.KeepFor(time.Hour))
		s.outage()
		<-k.Context().Done()
		s.heal()
		wantErr(t, k.Unlock(background), core.ErrLost)
		time.Sleep(time.Second)
		s.isFree("k")
	})
}

func TestTheSameOwnerIsRefusedInTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k", core.KeepFor(time.Minute))
		ctx, owner := context.WithoutCancel(k.Context()), k.ShareOwner()
		unlock(t, k)
		_, err := l.TryLock(background, "k", core.Owner(owner))
		wantBusy(t, err)
		_, err = l.TryLock(ctx, "k")
		wantBusy(t, err)
	})
}

func TestForceUnlockEndsTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		unlock(t, take(t, background, a, "k", core.KeepFor(time.Minute)))
		waiting := start(background, b, "k")
		time.Sleep(time.Second)
		if freed, err := a.ForceUnlock(background, "k"); !freed || err != nil {
			t.Error(freed, err)
		}
		o := <-waiting
		wantTime(t, "woken", o.took, time.Second, time.Second+prompt)
		unlock(t, o.lock)
	})
}

func TestWaitersWakeAtTheEndOfTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		k := take(t, background, a, "k", core.KeepFor(time.Minute))
		here, there := start(background, a, "k"), start(background, b, "k")
		time.Sleep(10 * time.Second)
		unlock(t, k)
		second := there
		var o outcome
		select {
		case o = <-here:
		case o = <-there:
			second = here
		}
		wantTime(t, "woken", o.took, time.Minute, time.Minute+prompt)
		unlock(t, o.lock)
		o = <-second
		wantTime(t, "woken", o.took, time.Minute, time.Minute+2*prompt)
		unlock(t, o.lock)
	})
}

// The same when the window is over before anybody asks by itself.
// Taken out, the key lies free for up to a second.
func TestWaitersHearOfAShortWindow(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, c := s.locker(), s.locker(), s.locker()
		k := take(t, background, a, "k", core.KeepFor(time.Minute+10*time.Millisecond))
		waiting := []<-chan outcome{start(background, b, "k"), start(background, c, "k")}
		time.Sleep(time.Minute)
		unlock(t, k)
		first, second := waiting[0], waiting[1]
		var o outcome
		select {
		case o = <-first:
		case o = <-second:
			second = first
		}
		wantTime(t, "woken", o.took, time.Minute+10*time.Millisecond, time.Minute+10*time.Millisecond+prompt)
		unlock(t, o.lock)
		unlock(t, (<-second).lock)
	})
}

func TestKeepForOfTheOutermostCounts(t *testing.T) {
	keep := core.KeepFor(time.Minute)
	type finish = func(*core.Lock, context.Context) error
	done, abort := (*core.Lock).Unlock, (*core.Lock).Abort
	for _, test := range []struct {
		name         string
		outer, inner finish
		innerLast    bool
		window       bool
	}{
		{"both succeed", done, done, false, true},
		{"the inner fails", done, abort, false, true},
		{"the outer fails", abort, done, false, false},
		{"both succeed, the inner is last", done, done, true, true},
		{"the inner fails last", done, abort, true, true},
		{"the outer fails first", abort, done, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				outer := take(t, background, l, "k", keep)
				inner := take(t, context.WithoutCancel(outer.Context()), l, "k", core.KeepFor(time.Hour))
				ends := []func() error{
					func() error { return test.inner(inner, background) },
					func() error { return test.outer(outer, background) },
				}
				if test.innerLast {
					ends[0], ends[1] = ends[1], ends[0]
				}
				for i, end := range ends {
					if err := end(); err != nil {
						t.Error(err)
					}
					if held := s.held("k") != ""; held != (i == 0) {
						t.Errorf("held: %v after release %d", held, i+1)
					}
				}
				if test.window {
					inWindow(t, l, "k", time.Minute)
				} else {
					s.isFree("k")
				}
			})
		})
	}
}

func TestKeepForOfAReentryAloneOpensNoWindow(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		outer := take(t, background, l, "k")
		unlock(t, take(t, outer.Context(), l, "k", core.KeepFor(time.Hour)), outer)
		s.isFree("k")
	})
}

func TestWindowOfAHandle(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		plain := take(t, background, l, "plain")
		if got := plain.Window(); got != 0 {
			t.Errorf("Window %v without KeepFor", got)
		}
		outer := take(t, background, l, "k", core.KeepFor(time.Minute))
		inner := take(t, outer.Context(), l, "k", core.KeepFor(time.Hour))
		elsewhere := take(t, outer.Context(), s.locker(), "k", core.KeepFor(time.Hour))
		for _, k := range []*core.Lock{outer, inner, elsewhere} {
			if got := k.Window(); got != time.Minute {
				t.Errorf("Window %v; want that of the outermost", got)
			}
		}
		unlock(t, elsewhere, inner, outer, plain)
	})
}
