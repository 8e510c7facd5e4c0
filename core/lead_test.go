//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// candidate is a call of Lead for "k". Its fn leads until its context ends, or until it is
// told to step down.
type candidate struct {
	terms    chan context.Context
	stepDown chan error
	done     chan error
}

func campaign(ctx context.Context, l *core.Locker, opts ...core.Option) *candidate {
	c := &candidate{terms: make(chan context.Context, 100), stepDown: make(chan error), done: make(chan error, 1)}
	go func() {
		c.done <- l.Lead(ctx, "k", func(ctx context.Context) error {
			c.terms <- ctx
			select {
			case <-ctx.Done():
				return fmt.Errorf("cleaning up: %w", context.Cause(ctx))
			case err := <-c.stepDown:
				return err
			}
		}, opts...)
	}()
	synctest.Wait()
	return c
}

// leads returns the context of the term that has begun, and whether one has.
func (c *candidate) leads() (context.Context, bool) {
	synctest.Wait()
	select {
	case term := <-c.terms:
		return term, true
	default:
		return nil, false
	}
}

// term returns the context of the next term, which begins within a time.
func (c *candidate) term(tb testing.TB, within time.Duration) context.Context {
	tb.Helper()
	select {
	case term := <-c.terms:
		return term
	case err := <-c.done:
		tb.Fatalf("Lead has returned: %v", err)
	case <-time.After(within):
		tb.Fatalf("no term within %v", within)
	}
	panic("unreachable")
}

// waits fails the test when the candidate leads, or has given up.
func (c *candidate) waits(tb testing.TB) {
	tb.Helper()
	if _, leads := c.leads(); leads {
		tb.Fatal("it leads; it should wait")
	}
	select {
	case err := <-c.done:
		tb.Fatalf("Lead has returned: %v", err)
	default:
	}
}

// end has the leader step down, without an error.
func (c *candidate) end(tb testing.TB) {
	tb.Helper()
	c.stepDown <- nil
	if err := <-c.done; err != nil {
		tb.Errorf("Lead: %v", err)
	}
}

func TestOneLeads(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		one, two := s.locker(), s.locker()
		candidates := []*candidate{campaign(background, one), campaign(background, one), campaign(background, two)}
		boom := errors.New("boom")
		token := int64(0)
		for len(candidates) > 0 {
			i := slices.IndexFunc(candidates, func(c *candidate) bool { return len(c.terms) > 0 })
			if i < 0 {
				t.Fatalf("nobody leads, %d wait", len(candidates))
			}
			leader := candidates[i]
			term := leader.term(t, prompt)
			k, _ := core.FromContext(term)
			if k.Token() <= token || s.held("k") == "" {
				t.Errorf("token %d after %d, Redis shows %q", k.Token(), token, s.held("k"))
			}
			token = k.Token()
			time.Sleep(2 * time.Minute)
			candidates = slices.Delete(candidates, i, i+1)
			for _, c := range candidates {
				c.waits(t)
			}
			leader.stepDown <- boom
			if err := <-leader.done; err != boom {
				t.Errorf("Lead: %#v; want the very value of fn", err)
			}
			time.Sleep(prompt) // the next takes over at once
			synctest.Wait()
		}
		s.isFree("k")
	})
}

// When leadership is lost fn's context says so; when fn has returned, there is a new campaign.
func TestLeaderThatLosesTheLockCampaignsAgain(t *testing.T) {
	for name, lose := range map[string]func(s *embedded, term context.Context){
		"deleted":       func(s *embedded, _ context.Context) { s.Del("lock:k") },
		"away for long": func(s *embedded, _ context.Context) { s.outage(); time.Sleep(10 * time.Minute); s.heal() },
		"silent for long": func(s *embedded, _ context.Context) {
			s.failAll(hang, renew, acquire)
			time.Sleep(10 * time.Minute)
			s.heal()
		},
		// No longer, or the next term, which a grant may begin, is lost as well.
		"renewals are denied": func(s *embedded, term context.Context) { s.failAll(refuse("NOPERM"), renew); <-term.Done(); s.heal() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				logged := &records{}
				c := campaign(background, s.locker(core.Logger(logged.logger()), core.Lease(15*time.Second)))
				term := c.term(t, prompt)
				began := time.Now()
				lose(s, term)
				ended, cause := endOf(term)
				wantErr(t, cause, core.ErrLost)
				c.term(t, 10*time.Second)
				if name == "deleted" {
					wantTime(t, "the context ended", ended.Sub(began), 0, 5*time.Second)
				}
				if logged.count("leadership has ended") != 1 {
					t.Errorf("logged: %q", logged.all())
				}
				c.end(t)
			})
		})
	}
}

// Redis may be away for a moment.
func TestLeaderOutlivesABlip(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		c := campaign(background, s.locker())
		term := c.term(t, prompt)
		s.outage()
		time.Sleep(15 * time.Second)
		s.heal()
		time.Sleep(time.Minute)
		if term.Err() != nil {
			t.Error(context.Cause(term))
		}
		c.end(t)
	})
}

func TestLossWhileFnReturnsByItself(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		boom := errors.New("boom")
		err := s.locker().Lead(background, "k", func(context.Context) error {
			s.Del("lock:k") // nobody has noticed when fn returns
			return boom
		})
		wantErr(t, err, boom)
		err = s.locker().Lead(background, "k", func(context.Context) error { s.Del("lock:k"); return nil })
		wantErr(t, err, core.ErrLost)
	})
}

func TestLeadEndsWithItsContext(t *testing.T) {
	boom := errors.New("boom")
	for name, test := range map[string]struct {
		fn   func(context.Context) error
		want error
	}{
		"nil":                     {func(context.Context) error { return nil }, nil},
		"the context's error":     {func(ctx context.Context) error { return ctx.Err() }, nil},
		"an error of its own":     {func(context.Context) error { return boom }, boom},
		"the lock is lost by now": {func(ctx context.Context) error { time.Sleep(10 * time.Minute); return boom }, boom},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				ctx, cancel := context.WithCancelCause(background)
				lost := name == "the lock is lost by now"
				err := s.locker().Lead(ctx, "k", func(ctx context.Context) error {
					cancel(errEnough)
					if cause := context.Cause(ctx); cause != errEnough {
						t.Errorf("cause %v", cause)
					}
					if lost {
						s.Del("lock:k")
					}
					return test.fn(ctx)
				})
				wantErr(t, err, context.Canceled, errEnough)
				wantNot(t, err, core.ErrNotAcquired)
				if test.want != nil {
					wantErr(t, err, test.want)
				}
				if lost != errors.Is(err, core.ErrLost) {
					t.Errorf("error %v", err)
				}
				s.isFree("k")
			})
		})
	}
}

// Nobody else leads before fn has returned, however long that takes.
func TestLeadWaitsForFn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		logged := &records{}
		ctx, cancel := context.WithCancel(background)
		returned := make(chan struct{})
		done := make(chan error, 1)
		go func() {
			done <- s.locker(core.Logger(logged.logger())).Lead(ctx, "k", func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(10 * time.Minute)
				close(returned)
				return nil
			})
		}()
		synctest.Wait()
		next := campaign(background, s.locker())
		cancel()
		time.Sleep(4999 * time.Millisecond)
		synctest.Wait()
		if logged.count("goes on") != 0 {
			t.Errorf("logged: %q", logged.all())
		}
		time.Sleep(9 * time.Minute)
		next.waits(t)
		if logged.count("a leader goes on although its context has ended, and nobody can follow") != 1 || logged.count("goes on") != 1 {
			t.Errorf("logged: %q", logged.all())
		}
		next.term(t, time.Hour)
		select {
		case <-returned:
		default:
			t.Error("somebody else leads before fn has returned")
		}
		wantErr(t, <-done, context.Canceled)
		next.end(t)
	})
}

// A lost lock is somebody else's at the end of its lease: who goes on is told.
func TestLeaderThatIgnoresALoss(t *testing.T) {
	for after, lines := range map[time.Duration]int{4 * time.Second: 0, 10 * time.Minute: 1} {
		bubble(t, func(t *testing.T, s *embedded) {
			logged := &records{}
			l := s.locker(core.Logger(logged.logger()))
			terms := 0
			err := l.Lead(background, "k", func(ctx context.Context) error {
				if terms++; terms > 1 {
					return nil
				}
				s.Del("lock:k")
				<-ctx.Done()
				time.Sleep(after)
				return errors.New("boom")
			})
			if err != nil || terms != 2 {
				t.Errorf("%v after %d terms", err, terms)
			}
			time.Sleep(time.Minute)
			if logged.count("another may lead") != lines || logged.count("goes on") != lines || logged.count("leadership has ended") != 1 {
				t.Errorf("logged: %q", logged.all())
			}
		})
	}
}

// MaxHold bounds a term: the candidates take turns.
func TestMaxHoldBoundsATerm(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		const long = 2 * time.Minute
		ctx, cancel := context.WithCancel(background)
		a, b := campaign(ctx, s.locker(), core.MaxHold(long)), campaign(ctx, s.locker(), core.MaxHold(long))
		for range 3 {
			for _, c := range []*candidate{a, b} {
				term := c.term(t, prompt)
				began := time.Now()
				ended, cause := endOf(term)
				wantErr(t, cause, core.ErrMaxHold)
				wantTime(t, "the term ended", ended.Sub(began), long-time.Second, long+time.Second)
			}
		}
		cancel()
		wantErr(t, <-a.done, context.Canceled)
		wantErr(t, <-b.done, context.Canceled)
	})
}

func TestLeaderThatDoesNotReturn(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		bubble(t, func(t *testing.T, s *embedded) {
			l := s.locker()
			left := make(chan any)
			go func() {
				defer func() { left <- recover() }()
				_ = l.Lead(background, "k", func(context.Context) error { leave(); return nil })
				t.Errorf("%s: Lead has returned", name)
			}()
			if v := <-left; name == "panic" && v != "boom" {
				t.Errorf("recovered %v", v)
			}
			s.isFree("k")
		})
	}
}

// fn has an error of Redis, and the campaign had none.
func TestLeaderWhoseWorkFindsRedisAway(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		err := l.Lead(background, "k", func(ctx context.Context) error {
			s.fail(acquire, refuse("OOM"))
			return l.Do(ctx, "other", never(t))
		})
		wantErr(t, err, core.ErrUnavailable)
		s.isFree("k")
	})
}

// A process that was paused may return by itself before it has heard that its lease is over.
func TestLeaderThatReturnsUnawareOfItsLoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, boom := s.locker(), errors.New("boom")
		core.OnSchedule(l, time.Second, func() { time.Sleep(10 * time.Minute) })
		err := l.Lead(background, "k", func(ctx context.Context) error {
			time.Sleep(5 * time.Minute)
			if ctx.Err() != nil {
				t.Error("the context has ended")
			}
			return boom
		})
		wantErr(t, err, boom, core.ErrLost)
		time.Sleep(10 * time.Minute)
	})
}

func TestLeaderThatUnlocksByItself(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		boom := errors.New("boom")
		err := s.locker().Lead(background, "k", func(ctx context.Context) error {
			k, _ := core.FromContext(ctx)
			unlock(t, k)
			return boom
		})
		if err != boom {
			t.Errorf("error %v", err)
		}
	})
}
