//go:build go1.25

package core_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// unsent has a wrapper hold its locks for so long, and end. Its releases are not sent until the test sleeps.
func unsent(t *testing.T, s *embedded, l *core.Locker, wrapper string, held time.Duration) (token int64) {
	t.Helper()
	wantErr(t, wrappers[wrapper](l, background, func(ctx context.Context) error {
		time.Sleep(held)
		s.fail(acquire, lateRequest(slow), lateRequest(slow))
		for _, other := range []string{"x", "y"} { // which nothing overtakes for a moment
			go func() { _ = l.Do(background, other, nothing) }()
			synctest.Wait()
		}
		token = tokenOfK(ctx)
		return nil
	}, core.BackgroundRelease()))
	synctest.Wait()
	if n := len(s.commands(release)); n != 0 {
		t.Fatalf("%d releases were sent; the test shows nothing", n)
	}
	return token
}

func tokenOfK(ctx context.Context) int64 {
	k, _ := core.FromContextKey(ctx, "k")
	return k.Token()
}

// taken is a lock, or several.
type taken interface {
	Context() context.Context
	Unlock(context.Context) error
}

// nextCalls are ways to take k. Some take j as well.
var nextCalls = map[string]func(l *core.Locker, opts ...core.Option) (taken, error){
	"Lock":    func(l *core.Locker, opts ...core.Option) (taken, error) { return l.Lock(background, "k", opts...) },
	"TryLock": func(l *core.Locker, opts ...core.Option) (taken, error) { return l.TryLock(background, "k", opts...) },
	"LockAll": func(l *core.Locker, opts ...core.Option) (taken, error) {
		return l.LockAll(background, []string{"k", "j"}, opts...)
	},
	"LockAll, NoWait": func(l *core.Locker, opts ...core.Option) (taken, error) {
		return l.LockAll(background, []string{"k", "j"}, append(opts, core.NoWait())...)
	},
}

// The next call of the process gets a lock whose release was not sent yet, as by a hand-off in memory.
func TestTheNextCallTakesTheLockOver(t *testing.T) {
	for name, call := range nextCalls {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				heard := &ear{}
				l := s.locker(core.Observe(heard))
				first, asked := unsent(t, s, l, "Do", time.Millisecond), len(s.commands(acquire))
				heard.take()
				k, err := call(l)
				if err != nil {
					t.Fatal(err)
				}
				if token := tokenOfK(k.Context()); token != first+1 {
					t.Errorf("token %d after %d", token, first)
				}
				if strings.HasPrefix(name, "LockAll") {
					asked++ // for the other one
				} else {
					heard.want(t, "in this order", "waiting", "released held=1ms", "acquired")
				}
				if n := len(s.commands(acquire)); n != asked {
					t.Errorf("%d questions; want %d", n, asked)
				}
				// Nothing is left of the release that was not sent: nobody waits for it, however long the lock is held.
				time.Sleep(slow)
				began := time.Now()
				_, err = l.TryLock(background, "k")
				wantBusy(t, err)
				wantTime(t, "it was refused", time.Since(began), 0, prompt)
				if time.Sleep(time.Minute); k.Context().Err() != nil || s.held("k") == "" {
					t.Error(context.Cause(k.Context()))
				}
				wantErr(t, k.Unlock(background))
				s.isFree("k")
				s.isFree("j")
			})
		})
	}
}

// Where a lock would not be handed off in memory it is not taken over either: the call asks Redis.
func TestTheNextCallTakesNothingOver(t *testing.T) {
	for name, test := range map[string]struct {
		last   string // wrapper
		held   time.Duration
		next   string
		opts   []core.Option
		before func(l *core.Locker)
	}{
		"held for too long":     {"Do", 20 * time.Millisecond, "Lock", nil, nil},
		"another lease":         {"Do", time.Millisecond, "Lock", []core.Option{core.Lease(time.Minute)}, nil},
		"a fixed lease":         {"Do", time.Millisecond, "Lock", []core.Option{core.FixedLease(30 * time.Second)}, nil},
		"a window":              {"Do", time.Millisecond, "Lock", []core.Option{core.KeepFor(time.Second)}, nil},
		"another form":          {"Do", time.Millisecond, "Lock", []core.Option{core.Shared()}, nil},
		"an owner":              {"Do", time.Millisecond, "Lock", []core.Option{core.Owner("o")}, nil},
		"another lease, many":   {"Do", time.Millisecond, "LockAll", []core.Option{core.Lease(time.Minute)}, nil},
		"another has its owner": {"DoAll", time.Millisecond, "Lock", nil, nil},
		"so it is for many":     {"DoAll", time.Millisecond, "LockAll", nil, nil},
		"others wait": {"Do", time.Millisecond, "TryLock", nil, func(l *core.Locker) {
			go func() { _ = l.Do(background, "k", nothing, core.Lease(time.Minute)) }()
			synctest.Wait()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				unsent(t, s, l, test.last, test.held)
				if test.before != nil {
					test.before(l)
				}
				began := time.Now()
				k, err := nextCalls[test.next](l, test.opts...)
				if time.Since(began) == 0 || len(s.commands(release)) == 0 {
					t.Errorf("it took %v, and %d releases", time.Since(began), len(s.commands(release)))
				}
				if test.before != nil && err != nil { // Redis may have granted it to the one that waits
					wantBusy(t, err)
					return
				}
				wantErr(t, err)
				wantErr(t, k.Unlock(background))
			})
		})
	}
}

// A call whose context ends while it takes locks over gets none of them.
func TestReclaimIsCancelled(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		ctx, cancel := context.WithCancel(background)
		l := s.locker(core.Observe(&ear{act: func(given context.Context, e core.Event) context.Context {
			if e.Kind == core.EventReleased {
				cancel()
			}
			return given
		}}))
		unsent(t, s, l, "Do", time.Millisecond)
		if ctx.Err() != nil {
			t.Fatal("a lock was released before; the test shows nothing")
		}
		_, err := l.LockAll(ctx, []string{"k", "j"})
		wantErr(t, err, core.ErrNotAcquired, context.Canceled)
		time.Sleep(slow)
		s.isFree("k")
		s.isFree("j")
	})
}

// A ticket is for the lock that was handed over, and takes nothing else over.
func TestResumeTakesNothingOver(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		unsent(t, s, l, "Do", time.Millisecond)
		_, err := l.Resume(background, "k", "unknown")
		wantErr(t, err, core.ErrTicket)
		s.isFree("k")
	})
}

// A release that is on its way the next call waits for, where it would be refused otherwise, if it does not wait.
func TestTryLockWaitsForAReleaseThatIsOnItsWay(t *testing.T) {
	for _, next := range []string{"TryLock", "LockAll, NoWait"} {
		t.Run(next, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				s.failAll(lateRequest(slow), release)
				wantErr(t, l.Do(background, "k", nothing, core.BackgroundRelease()))
				synctest.Wait()
				_, err := s.locker().TryLock(background, "k")
				wantBusy(t, err)
				began := time.Now()
				k, err := nextCalls[next](l)
				if err != nil {
					t.Fatal(err)
				}
				wantTime(t, "it was free", time.Since(began), slow, slow+prompt)
				s.heal()
				wantErr(t, k.Unlock(background))
			})
		})
	}
}

// Releases that fail are repeated each by itself: none holds up another.
func TestUnsentReleasesFail(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		s.failAll(refuse("LOADING Redis is loading"), release)
		unsent(t, s, l, "DoAll", time.Millisecond)
		time.Sleep(10 * time.Millisecond)
		if s.held("k") == "" || s.held("j") == "" {
			t.Error("they were released; the test shows nothing")
		}
		s.heal()
		time.Sleep(30 * time.Millisecond)
		s.isFree("k")
		s.isFree("j")
	})
}

// Many calls, with a lock of one key or of several, from two processes: one has each lock at a time, and tokens grow.
func TestReclaimsExclude(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		inside, last := 0, int64(0)
		done := make(chan error)
		const n, each = 8, 50
		for i := range n {
			l := s.locker(core.BackgroundRelease())
			do := wrappers[[]string{"Do", "DoAll"}[i%2]]
			for range 2 {
				go func() {
					for range each {
						err := do(l, background, func(ctx context.Context) error {
							if inside++; inside > 1 || tokenOfK(ctx) <= last {
								t.Errorf("%d inside, token %d after %d", inside, tokenOfK(ctx), last)
							}
							last = tokenOfK(ctx)
							time.Sleep(time.Microsecond)
							inside--
							return nil
						})
						if err != nil {
							done <- err
							return
						}
					}
					done <- nil
				}()
			}
		}
		for range 2 * n {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		time.Sleep(slow)
		s.isFree("k")
		s.isFree("j")
	})
}
