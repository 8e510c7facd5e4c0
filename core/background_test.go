//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// slow is how long releases are under way in these tests.
const slow = time.Second

// nothing is a fn.
func nothing(context.Context) error { return nil }

// The wrappers, with the lock of k among others. Each returns when fn has, and is over.
var wrappers = map[string]func(l *core.Locker, ctx context.Context, fn func(context.Context) error, opts ...core.Option) error{
	"Do": func(l *core.Locker, ctx context.Context, fn func(context.Context) error, opts ...core.Option) error {
		return l.Do(ctx, "k", fn, opts...)
	},
	"DoAll": func(l *core.Locker, ctx context.Context, fn func(context.Context) error, opts ...core.Option) error {
		return l.DoAll(ctx, []string{"k", "j"}, fn, opts...)
	},
	"Wrap": func(l *core.Locker, ctx context.Context, fn func(context.Context) error, opts ...core.Option) error {
		key := func(string) (string, error) { return "k", nil }
		_, err := core.Wrap(l, key, func(ctx context.Context, _ string) (any, error) { return nil, fn(ctx) }, opts...)(ctx, "")
		return err
	},
	"WrapAll": func(l *core.Locker, ctx context.Context, fn func(context.Context) error, opts ...core.Option) error {
		keys := func(string) ([]string, error) { return []string{"k", "j"}, nil }
		_, err := core.WrapAll(l, keys, func(ctx context.Context, _ string) (any, error) { return nil, fn(ctx) }, opts...)(ctx, "")
		return err
	},
}

func TestBackgroundReleaseIsNotWaitedFor(t *testing.T) {
	for wrapper, do := range wrappers {
		for name, test := range map[string]struct {
			fn             func()
			ofNew, ofCalls []core.Option
		}{
			"return, option of New": {func() {}, []core.Option{core.BackgroundRelease()}, nil},
			"return":                {func() {}, nil, []core.Option{core.BackgroundRelease(), core.Wait(time.Minute)}},
			"panic":                 {func() { panic(errEnough) }, nil, []core.Option{core.BackgroundRelease()}},
			"Goexit":                {runtime.Goexit, nil, []core.Option{core.BackgroundRelease()}},
		} {
			t.Run(wrapper+"/"+name, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					l := s.locker(test.ofNew...)
					s.fail(release, lateRequest(slow))
					began := time.Now()
					var inside context.Context
					done := make(chan struct{})
					go func() {
						defer close(done)
						defer func() { _ = recover() }()
						_ = do(l, background, func(ctx context.Context) error {
							inside = ctx
							test.fn()
							return nil
						}, test.ofCalls...)
					}()
					<-done
					wantTime(t, "the wrapper ended", time.Since(began), 0, prompt)
					if inside.Err() == nil {
						t.Error("the context outlives the wrapper")
					}
					if s.held("k") == "" {
						t.Error("released already; the test shows nothing")
					}
					time.Sleep(slow + prompt)
					s.isFree("k")
					s.isFree("j")
				})
			})
		}
	}
}

// Where somebody depends on it, the release is waited for.
func TestBackgroundReleaseThatIsWaitedFor(t *testing.T) {
	bg := core.BackgroundRelease()
	for name, do := range map[string]func(s *embedded, l *core.Locker) error{
		"Unlock": func(s *embedded, _ *core.Locker) error {
			k, err := s.locker(bg).Lock(background, "k")
			if err != nil {
				return err
			}
			return k.Unlock(background)
		},
		"NoWait": func(s *embedded, l *core.Locker) error { return l.Do(background, "k", nothing, bg, core.NoWait()) },
		"NoWait of New": func(s *embedded, _ *core.Locker) error {
			return s.locker(core.NoWait()).Do(background, "k", nothing, bg)
		},
		"DoAll, NoWait": func(s *embedded, l *core.Locker) error {
			return l.DoAll(background, []string{"k", "j"}, nothing, bg, core.NoWait())
		},
		"an adapter's fallback": func(s *embedded, l *core.Locker) error {
			return l.Do(background, "k", nothing, bg, adapter.Fallback(core.NoWait()))
		},
		"KeepFor": func(s *embedded, l *core.Locker) error {
			return l.Do(background, "k", nothing, bg, core.KeepFor(time.Second))
		},
		"DoAll, KeepFor": func(s *embedded, l *core.Locker) error {
			return l.DoAll(background, []string{"k", "j"}, nothing, bg, core.KeepFor(time.Second))
		},
		"Owner": func(s *embedded, l *core.Locker) error {
			return l.Do(background, "k", nothing, bg, core.Owner("o"))
		},
		"Share": func(s *embedded, l *core.Locker) error {
			return l.Do(background, "k", func(ctx context.Context) error {
				k, _ := core.FromContext(ctx)
				k.ShareOwner()
				return nil
			}, bg)
		},
		"the inner of two": func(s *embedded, l *core.Locker) error {
			k, err := l.Lock(background, "k")
			if err != nil {
				return err
			}
			err = l.Do(k.Context(), "k", nothing, bg)
			s.heal()
			return errors.Join(err, k.Unlock(background))
		},
		"the inner of two Lockers": func(s *embedded, l *core.Locker) error {
			k, err := l.Lock(background, "k")
			if err != nil {
				return err
			}
			err = s.locker().Do(k.Context(), "k", nothing, bg)
			s.heal()
			return errors.Join(err, k.Unlock(background))
		},
		"an inner one among several": func(s *embedded, l *core.Locker) error {
			k, err := l.Lock(background, "k")
			if err != nil {
				return err
			}
			err = l.DoAll(k.Context(), []string{"j", "k"}, nothing, bg)
			s.heal()
			return errors.Join(err, k.Unlock(background))
		},
		"the outer while the inner is held": func(s *embedded, l *core.Locker) error {
			var inner *core.Lock
			err := l.Do(background, "k", func(ctx context.Context) (err error) {
				inner, err = l.Lock(ctx, "k")
				return err
			}, bg)
			s.heal()
			return errors.Join(err, inner.Unlock(background))
		},
		"a lock that was resumed": func(s *embedded, l *core.Locker) error {
			k, err := l.Lock(background, "k")
			if err != nil {
				return err
			}
			err = adapter.Handover(background, k, "ticket", time.Minute, func() error { return nil })
			return errors.Join(err, l.Do(background, "k", nothing, bg, adapter.Ticket("ticket")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				s.fail(release, lateRequest(slow))
				began := time.Now()
				if err := do(s, l); err != nil {
					t.Error(err)
				}
				wantTime(t, "it ended", time.Since(began), slow, slow+prompt)
			})
		})
	}
}

func TestBackgroundReleaseThatIsNotAnswered(t *testing.T) {
	for _, wrapper := range []string{"Do", "DoAll"} {
		do := wrappers[wrapper]
		for name, fault := range map[string]fault{
			"request lost":    loseRequest,
			"reply lost":      loseReply,
			"never answered":  hang,
			"answered late":   lateReply(4 * time.Second),
			"arrives late":    lateRequest(4 * time.Second),
			"refused":         refuse("ERR no"),
			"refused for now": refuse("LOADING Redis is loading"),
		} {
			t.Run(wrapper+"/"+name, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					heard := &ear{}
					l := s.open(core.BackgroundRelease(), core.Observe(heard))
					s.fail(release, fault)
					began := time.Now()
					if err := do(l, background, nothing); err != nil {
						t.Error(err)
					}
					wantTime(t, "the wrapper ended", time.Since(began), 0, prompt)
					if err := l.Close(background); err != nil {
						t.Error(err)
					}
					s.isFree("k")
					s.isFree("j")
					wantTime(t, "Close ended", time.Since(began), 0, 5*time.Second)
					if events := heard.take(); strings.Contains(strings.Join(events, "\n"), "lost") {
						t.Errorf("heard %q", events)
					}
				})
			})
		}
	}
}

func TestCloseWaitsForBackgroundReleases(t *testing.T) {
	for _, wrapper := range []string{"Do", "DoAll"} {
		do := wrappers[wrapper]
		t.Run(wrapper, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.open(core.BackgroundRelease())
				s.fail(release, lateRequest(slow))
				began := time.Now()
				if err := do(l, background, nothing); err != nil {
					t.Error(err)
				}
				if err := l.Close(background); err != nil {
					t.Error(err)
				}
				wantTime(t, "Close ended", time.Since(began), slow, slow+prompt)
				s.isFree("k")
				s.isFree("j")
			})
		})
	}
}

// Only what the release alone can tell comes by the Observer and the log.
func TestBackgroundReleaseOfALostLock(t *testing.T) {
	for _, wrapper := range []string{"Do", "DoAll"} {
		do := wrappers[wrapper]
		t.Run(wrapper, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				heard, logged := &ear{}, &records{}
				l := s.locker(core.BackgroundRelease(), core.Observe(heard), core.Logger(logged.logger()))
				lost := 0
				heard.act = func(ctx context.Context, e core.Event) context.Context {
					if e.Kind == core.EventLost && e.Key == "k" && e.Reason == "deleted" && errors.Is(e.Err, core.ErrLost) {
						lost++
					}
					return ctx
				}
				err := do(l, background, func(context.Context) error {
					s.Del("lock:k")
					return nil
				})
				if err != nil {
					t.Errorf("%v; nobody has known of the loss yet", err)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if lost != 1 {
					t.Errorf("told of %d losses", lost)
				}
				if n := logged.count("a lock was lost while held"); n != 1 {
					t.Errorf("the loss was logged %d times", n)
				}

				err = do(l, background, func(ctx context.Context) error {
					s.Del("lock:k")
					<-ctx.Done()
					return nil
				})
				wantErr(t, err, core.ErrLost)
				time.Sleep(time.Second)
				synctest.Wait()
				if lost != 2 {
					t.Errorf("told of %d losses", lost)
				}
			})
		})
	}
}

func TestBackgroundReleaseIsObserved(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		heard, logged := &ear{}, &records{}
		l := s.locker(core.BackgroundRelease(), core.Observe(heard), core.Logger(logged.logger()))
		s.fail(release, lateRequest(slow))
		wantErr(t, l.Do(background, "k", nothing))
		heard.want(t, "before the release has arrived", "waiting", "acquired")
		time.Sleep(slow)
		heard.want(t, "then", "released held=1s")

		s.fail(release, hang)
		wantErr(t, l.Do(background, "k", nothing))
		heard.want(t, "while it is not answered", "waiting", "acquired")
		time.Sleep(2*time.Second + prompt)
		heard.want(t, "then", "released unconfirmed held=2s")
		if n := logged.count("a release failed after the work was done"); n != 1 {
			t.Errorf("logged %d times:\n\t%s", n, strings.Join(logged.all(), "\n\t"))
		}
		s.fail(release, hang)
		wantErr(t, l.DoAll(background, []string{"k", "j"}, nothing))
		time.Sleep(2*time.Second + prompt)
		if n := logged.count("a release failed after the work was done"); n != 2 {
			t.Errorf("of several: logged %d times", n-1)
		}
	})
}

func TestTheNextCallWaitsForABackgroundRelease(t *testing.T) {
	for _, wrapper := range []string{"Do", "DoAll"} {
		do := wrappers[wrapper]
		t.Run(wrapper, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l, other := s.locker(core.BackgroundRelease()), s.locker()
				for _, next := range []*core.Locker{l, other} {
					var slept atomic.Bool
					s.failAll(func(_ *embedded, _ *peer, _ string, args []string) bool { // that of k, in whatever order
						if slices.Contains(args, "lock:k") && slept.CompareAndSwap(false, true) {
							time.Sleep(slow)
						}
						return false
					}, release)
					wantErr(t, do(l, background, nothing))
					synctest.Wait() // until it is on its way
					_, err := other.TryLock(background, "k")
					wantBusy(t, err)
					o := <-start(background, next, "k")
					if o.err != nil {
						t.Fatal(o.err)
					}
					wantTime(t, "the next one has it", o.took, slow-prompt, slow+prompt)
					s.heal()
					unlock(t, o.lock)
				}
			})
		})
	}
}

// What a call of this process waits for Redis is not asked about.
func TestBackgroundReleaseOrHandOff(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.BackgroundRelease())
		var next <-chan outcome
		err := l.Do(background, "k", func(context.Context) error {
			time.Sleep(time.Millisecond)
			next = start(background, l, "k")
			return nil
		})
		wantErr(t, err)
		o := <-next
		if o.err != nil || len(s.commands(release)) != 0 {
			t.Fatalf("%v; %d releases", o.err, len(s.commands(release)))
		}
		unlock(t, o.lock)
	})
}

func TestBackgroundReleaseOfFormsAndFixedLeases(t *testing.T) {
	for name, opt := range map[string]core.Option{
		"shared": core.Shared(), "permits": core.Permits(1), "fixed": core.FixedLease(time.Minute), "max hold": core.MaxHold(time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker(core.BackgroundRelease())
				s.fail(release, lateRequest(slow))
				began := time.Now()
				wantErr(t, l.Do(background, "k", nothing, opt))
				wantTime(t, "Do ended", time.Since(began), 0, prompt)
				unlock(t, take(t, background, l, "k"))
				wantTime(t, "it was free", time.Since(began), slow, slow+prompt)
			})
		})
	}
}

func TestBackgroundReleaseOfALockThatWasHandedOver(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.BackgroundRelease())
		var ticket string
		wantErr(t, l.Do(background, "k", func(ctx context.Context) (err error) {
			k, _ := core.FromContext(ctx)
			ticket, err = k.Handover(background, time.Minute)
			return err
		}))
		time.Sleep(time.Second)
		if n := len(s.commands(release)); n != 0 {
			t.Errorf("%d releases of a lock that is somebody else's", n)
		}
		k, err := l.Resume(background, "k", ticket)
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, k)
	})
}

func TestBackgroundReleaseInAQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := []*embedded{newEmbedded(t), newEmbedded(t), newEmbedded(t)}
		var clients []redis.UniversalClient
		for _, s := range servers {
			clients = append(clients, s.client())
			s.fail(release, lateRequest(slow/4))
		}
		l, err := core.NewQuorum(clients, core.BackgroundRelease(), core.Logger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		for name, do := range wrappers {
			began := time.Now()
			wantErr(t, do(l, background, nothing))
			wantTime(t, name+" ended", time.Since(began), 0, prompt)
			time.Sleep(slow)
		}
		if err := l.Close(background); err != nil {
			t.Error(err)
		}
		for _, s := range servers {
			s.isFree("k")
			s.isFree("j")
		}
	})
}

// Lead returns when others can lead.
func TestLeadHasNoBackgroundRelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.BackgroundRelease())
		s.fail(release, lateRequest(slow))
		began := time.Now()
		wantErr(t, l.Lead(background, "k", nothing))
		wantTime(t, "Lead returned", time.Since(began), slow, slow+prompt)
		if err := s.locker().Lead(background, "k", nothing, core.BackgroundRelease()); err == nil || !strings.Contains(err.Error(), "Lease, MaxHold and Name only") {
			t.Errorf("the option: %v", err)
		}
	})
}
