//go:build go1.25

package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// deadline is a context that ends after d.
func deadline(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(background, d)
	context.AfterFunc(ctx, cancel)
	return ctx
}

// A caller who has no time is told so. Taken out, alerts fire for a healthy Redis and
// clients read that the service is down.
func TestDeadlineOfTheCallerIsNoOutage(t *testing.T) {
	for name, lock := range map[string]func(*core.Locker, context.Context) error{
		"Lock": func(l *core.Locker, ctx context.Context) error { _, err := l.Lock(ctx, "k"); return err },
		"TryLock": func(l *core.Locker, ctx context.Context) error {
			_, err := l.TryLock(ctx, "k")
			return err
		},
		"chosen owner": func(l *core.Locker, ctx context.Context) error {
			_, err := l.Lock(ctx, "k", core.Owner("o"))
			return err
		},
		"re-entry": func(l *core.Locker, ctx context.Context) error {
			return l.Do(background, "k", func(held context.Context) error {
				end, _ := ctx.Deadline()
				held, cancel := context.WithDeadline(held, end)
				defer cancel()
				_, err := l.Lock(held, "k")
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				slow := lateReply(10 * time.Millisecond)
				for range 3 {
					if name == "re-entry" {
						s.fail(acquire, lateReply(0))
					}
					s.fail(acquire, slow)
					err := lock(l, deadline(400*time.Microsecond))
					wantErr(t, err, core.ErrNotAcquired, context.DeadlineExceeded)
					wantNot(t, err, core.ErrUnavailable)
					time.Sleep(time.Hour)
				}
				s.isFree("k")
			})
		})
	}
}

// lateContext is one whose timer fires after its deadline, as on a busy machine.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// The connection may notice the end of the time before the context does.
func TestDeadlineOfTheCallerThatTheConnectionNoticesFirst(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		unlock(t, take(t, background, l, "k")) // from now on calls go on their callers' goroutines
		s.fail(acquire, lateReply(10*time.Millisecond))
		_, err := l.Lock(lateContext{deadline(500 * time.Microsecond), time.Now().Add(400 * time.Microsecond)}, "k")
		wantErr(t, err, core.ErrNotAcquired, context.DeadlineExceeded)
		wantNot(t, err, core.ErrUnavailable)
	})
}

// The answer to somebody else shows that Redis is there.
func TestDeadlineOfTheCallerBesideOthers(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Timeout(time.Second))
		for range 20 {
			s.fail(acquire, hang)
			_, err := l.TryLock(deadline(400*time.Millisecond), "k")
			wantErr(t, err, core.ErrNotAcquired, context.DeadlineExceeded)
			wantNot(t, err, core.ErrUnavailable)
			unlock(t, take(t, background, l, "other"))
		}
	})
}

// Callers whose deadlines are shorter than Timeout learn of an outage too, when it has
// lasted for that long. Taken out, nobody is ever told that Redis is down.
func TestDeadlineOfTheCallerInAnOutage(t *testing.T) {
	for name, hurt := range map[string]func(*embedded){
		"unreachable": (*embedded).outage,
		"silent":      func(s *embedded) { s.failAll(hang, acquire, release) },
		"breaking":    func(s *embedded) { s.failAll(loseReply, acquire, release) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				unlock(t, take(t, background, l, "warm-up"))
				time.Sleep(time.Hour)
				hurt(s)
				began := time.Now()
				for time.Since(began) < 10*time.Second {
					silent := time.Since(began) >= 1700*time.Millisecond
					_, err := l.TryLock(deadline(300*time.Millisecond), "k")
					want, not := core.ErrNotAcquired, core.ErrUnavailable
					if silent {
						want, not = not, want
					}
					wantErr(t, err, want, context.DeadlineExceeded)
					wantNot(t, err, not)
					time.Sleep(50 * time.Millisecond)
				}
				s.heal()
				time.Sleep(20 * time.Second)
				unlock(t, take(t, background, l, "k"))
				s.fail(acquire, lateReply(time.Second))
				_, err := l.TryLock(deadline(300*time.Millisecond), "k")
				wantErr(t, err, core.ErrNotAcquired, context.DeadlineExceeded)
				wantNot(t, err, core.ErrUnavailable)
			})
		})
	}
}

// What was never sent says nothing about Redis.
func TestDeadlineOfTheCallerBeforeAnythingWasSent(t *testing.T) {
	bubbleOfFewConnections(t, func(t *testing.T, s *embedded) {
		client := redis.NewClient(&redis.Options{Addr: s.addr, Dialer: s.dial, PoolSize: 1})
		defer client.Close()
		l := onRedis(t, client)
		for range 5 {
			s.fail("get", lateReply(time.Second))
			go client.Get(background, "x") // has the only connection
			synctest.Wait()
			_, err := l.TryLock(deadline(time.Millisecond), "k")
			wantErr(t, err, core.ErrNotAcquired, context.DeadlineExceeded)
			wantNot(t, err, core.ErrUnavailable)
			time.Sleep(time.Hour)
		}
		if n := s.scripts(); n != 0 {
			t.Errorf("%d scripts were sent", n)
		}
	})
}

// A deadline that is not the reason does not hide it.
func TestErrorOfRedisJustBeforeTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		s.fail(acquire, func(_ *embedded, p *peer, _ string, _ []string) bool {
			p.WriteError("NOPERM this user has no permissions")
			return true
		})
		_, err := l.Lock(ctx, "k")
		wantErr(t, err, core.ErrUnavailable)
	})
}
