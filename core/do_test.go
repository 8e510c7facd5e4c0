package core_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

func TestDoHoldsTheLockWhileFnRuns(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		err := l.Do(background, "k", func(ctx context.Context) error {
			k, ok := core.FromContext(ctx)
			if !ok || k.Key() != "k" || s.held("k") != k.Owner()+"=1" {
				t.Errorf("Redis shows %q, the context holds %v", s.held("k"), ok)
			}
			time.Sleep(time.Hour)
			return l.Do(ctx, "k", func(context.Context) error {
				if s.held("k") != k.Owner()+"=2" {
					t.Errorf("nested: Redis shows %q", s.held("k"))
				}
				return nil
			})
		})
		if err != nil {
			t.Error(err)
		}
		s.isFree("k")
	})
}

func TestDoPassesTheErrorThroughUnchanged(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		boom := errors.New("boom")
		if err := l.Do(background, "k", func(context.Context) error { return boom }); err != boom {
			t.Errorf("error is %#v; want the very value of fn", err)
		}
		s.isFree("k")
	})
}

func TestInvariant1DoNeverRunsUnlocked(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		never := func(context.Context) error { t.Error("fn ran unlocked"); return nil }
		wantErr(t, l.Do(background, "", never), core.ErrInvalidKey)
		if err := l.Do(background, "k", never, core.Lease(0)); err == nil {
			t.Error("a bad option was accepted")
		}
		s.failAll(refuse("ERR no"), acquire)
		wantErr(t, l.Do(background, "k", never), core.ErrUnavailable)
		s.heal()
		holder := take(t, background, l, "k")
		wantErr(t, l.Do(background, "k", never, core.NoWait()), core.ErrNotAcquired)
		unlock(t, holder)
	})
}

func TestDoTellsALossEvenIfFnReturnedNil(t *testing.T) {
	boom := errors.New("boom")
	for name, test := range map[string]struct {
		fn   func(*embedded, context.Context) error
		want []error
	}{
		"noticed by the watchdog": {func(s *embedded, ctx context.Context) error {
			s.Del("lock:k")
			<-ctx.Done()
			return nil
		}, []error{core.ErrLost}},
		"noticed at release only": {func(s *embedded, _ context.Context) error {
			s.Del("lock:k")
			return nil
		}, []error{core.ErrLost}},
		"beside fn's error": {func(s *embedded, _ context.Context) error {
			s.Del("lock:k")
			return boom
		}, []error{core.ErrLost, boom}},
		"unreachable past the lease": {func(s *embedded, ctx context.Context) error {
			s.outage()
			<-ctx.Done()
			s.heal()
			return nil
		}, []error{core.ErrLost}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				err := l.Do(background, "k", func(ctx context.Context) error { return test.fn(s, ctx) })
				wantErr(t, err, test.want...)
				time.Sleep(time.Second)
				s.isFree("k")
			})
		})
	}
}

func TestDoTellsMaxHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		for name, fn := range map[string]func(context.Context) error{
			"obeys":         func(ctx context.Context) error { <-ctx.Done(); return nil },
			"returns later": func(context.Context) error { time.Sleep(12 * time.Second); return nil },
		} {
			err := l.Do(background, "k", fn, core.MaxHold(10*time.Second))
			wantErr(t, err, core.ErrMaxHold)
			if name == "obeys" {
				wantNot(t, err, core.ErrLost)
			}
			s.isFree("k")
		}
	})
}

// A nested lock of another key has not been held for too long.
func TestDoOfAnotherKeyDoesNotTellTheOutersMaxHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		err := l.Do(background, "a", func(ctx context.Context) error {
			if err := l.Do(ctx, "b", func(ctx context.Context) error { <-ctx.Done(); return nil }); err != nil {
				t.Errorf("the inner Do: %v", err)
			}
			return nil
		}, core.MaxHold(10*time.Second))
		wantErr(t, err, core.ErrMaxHold)
	})
}

func TestInvariant2DoFreesOnPanicAndLeavesTheValueAlone(t *testing.T) {
	for _, value := range []any{errors.New("boom"), "text", http.ErrAbortHandler} {
		bubble(t, func(t *testing.T, s *embedded) {
			l := s.locker()
			func() {
				defer func() {
					if v := recover(); v != value {
						t.Errorf("recovered %v; want %v", v, value)
					}
				}()
				_ = l.Do(background, "k", func(context.Context) error { panic(value) })
			}()
			s.isFree("k")
		})
	}
}

func TestInvariant2DoFreesOnGoexit(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = l.Do(background, "k", func(context.Context) error { runtime.Goexit(); return nil })
			t.Error("Do returned")
		}()
		<-done
		s.isFree("k")
	})
}

func TestInvariant2DoFreesWhenTheContextIsCancelled(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		ctx, cancel := context.WithCancelCause(background)
		err := l.Do(ctx, "k", func(ctx context.Context) error {
			cancel(errEnough)
			<-ctx.Done()
			if cause := context.Cause(ctx); cause != errEnough {
				t.Errorf("cause %v; want the caller's", cause)
			}
			return nil
		})
		if err != nil {
			t.Errorf("the work was done under the lock: %v", err)
		}
		s.isFree("k")
	})
}

func TestDoWithFnThatUnlocksItself(t *testing.T) {
	for name, pause := range map[string]time.Duration{"at once": 0, "a lease later": time.Minute} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				err := l.Do(background, "k", func(ctx context.Context) error {
					k, _ := core.FromContext(ctx)
					unlock(t, k)
					time.Sleep(pause)
					return nil
				})
				if err != nil {
					t.Errorf("error %v; the lock was not lost but released", err)
				}
				s.isFree("k")
			})
		})
	}
}

func TestDoDoesNotReturnAFailedRelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		logged := &records{}
		l := s.locker(core.Logger(logged.logger()))
		s.fail(release, refuse("MISCONF Redis cannot save"))
		if err := l.Do(background, "k", func(context.Context) error { return nil }); err != nil {
			t.Errorf("the work was done, and the release goes on in the background: %v", err)
		}
		if logged.count("a release failed after the work was done") != 1 {
			t.Errorf("logged: %v", logged.all())
		}
		time.Sleep(time.Second)
		s.isFree("k")
	})
}
