package core

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// unconnected runs a test in a bubble, with a Locker whose Redis is nowhere.
func unconnected(t *testing.T, test func(t *testing.T, l *Locker)) {
	synctest.Test(t, func(t *testing.T) {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		l, err := New(client, Logger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		test(t, l)
		_ = l.Close(t.Context())
		_ = client.Close()
	})
}

// leased is a lease with a handle, whose time is over at that time.
func leased(t *testing.T, l *Locker, ends schedule.Time) (*lease, *Lock) {
	t.Helper()
	name, err := l.nameOf("k")
	if err != nil {
		t.Fatal(err)
	}
	h := new(Lock)
	h.under.call = t.Context()
	s := &lease{engine: &l.engine, first: &h.handle, name: name, handles: &h.handle}
	s.life = life.New(&h.state, life.Times{Ends: ends}, 0)
	return s, h
}

// An answer of Redis, or a call that re-enters, may come just after the Unlock. Only the release itself can tell a loss.
func TestWhatComesJustAfterTheUnlock(t *testing.T) {
	unconnected(t, func(t *testing.T, l *Locker) {
		s, h := leased(t, l, schedule.Now().Add(time.Hour))
		if last, err := s.leave(h); !last || err != nil {
			t.Fatal(last, err)
		}
		if err := s.join(new(handle)); !errors.Is(err, ErrNotHeld) {
			t.Errorf("a call that enters it: %v", err)
		}
		if s.Renewed(false, nil, time.Now()); s.check() != nil {
			t.Errorf("a renewal: %v", s.check())
		}
		if s.Renewed(true, nil, time.Now()); s.renewals != 0 {
			t.Error("a renewal counts")
		}
		if err := s.notFound(); !errors.Is(err, ErrNotHeld) || s.check() != nil {
			t.Errorf("a question that came before: %v", err)
		}
		signal, err := (&releasing{lease: s, lock: h}).confirm(t.Context(), store.Released{}, nil)
		if !bool(signal) || !errors.Is(err, ErrLost) || !errors.Is(s.check(), ErrLost) {
			t.Errorf("its release: %v", err)
		}
	})
}

// Who unlocks a lock whose time is over finds it lost, and so does who waits for the end of its context.
func TestUnlockThatIsTheFirstToNoticeTheEnd(t *testing.T) {
	unconnected(t, func(t *testing.T, l *Locker) {
		s, h := leased(t, l, schedule.Now())
		ctx := h.under.context(true)
		if _, err := s.leave(h); !errors.Is(err, ErrLost) || !errors.Is(context.Cause(ctx), ErrLost) {
			t.Errorf("%v, and its context ends with %v", err, context.Cause(ctx))
		}
	})
}

// The log gives the reason that Observers count: who was paused past the end of a lease does not look for somebody who has deleted it.
func TestWhyRedisDoesNotKnowALease(t *testing.T) {
	unconnected(t, func(t *testing.T, l *Locker) {
		for why, left := range map[string]time.Duration{"it could not be renewed in time": 0, "it was deleted, or somebody else has taken it": time.Hour} {
			s, _ := leased(t, l, schedule.Now().Add(left))
			if err := s.notFound(); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), why) {
				t.Errorf("%v before its end: %v", left, err)
			}
		}
	})
}

// A lock that was entered, once, names holds that a short release does not know; one that was granted, and not renewed yet, has
// no lease of its own.
func TestWhatAReleaseKnowsOfItsLock(t *testing.T) {
	unconnected(t, func(t *testing.T, l *Locker) {
		s, h := leased(t, l, schedule.Now().Add(time.Minute))
		s.Lease = time.Minute
		if r := s.releaseOf(&h.handle, store.Done); r.Entered || r.Terms != s.Terms {
			t.Errorf("as it was taken: %+v", r)
		}
		if err := s.join(new(handle)); err != nil {
			t.Fatal(err)
		}
		s.life = life.New(&h.state, life.Times{Granted: true}, 0)
		if r := s.releaseOf(&h.handle, store.Done); !r.Entered || r.Lease != 0 {
			t.Errorf("entered, and not renewed: %+v", r)
		}
		// What the holder has said stays, whoever says less.
		s.failed(store.FailedForGood)
		s.failed(store.Failed)
		r := releasing{lease: s, lock: h}
		if r.start(store.Done); r.request.Work != store.FailedForGood {
			t.Errorf("failed for good: %+v", r.request)
		}
	})
}

// replicated is a store that has to be asked for each lock.
type replicated struct{ lockStore }

func (replicated) HandOffNeedsRedis() bool { return true }

func TestWhoMayBeHandedOffALock(t *testing.T) {
	unconnected(t, func(t *testing.T, l *Locker) {
		attempt := l.defaults
		attempt.Attempt = new(store.Attempt)
		ordinary, other := wanted(t.Context(), store.Name{}, &l.defaults), wanted(t.Context(), store.Name{}, &attempt)
		if !l.mayGetInMemory(&ordinary, store.Exclusive) || l.mayGetInMemory(&ordinary, store.Shared) || l.mayGetInMemory(&other, store.Exclusive) {
			t.Error("not the call that wants an ordinary lock, or another one")
		}
		l.store = replicated{l.store}
		if l.mayGetInMemory(&ordinary, store.Exclusive) {
			t.Error("a lock that replicas have to confirm")
		}
	})
}

// A lock is handed off in memory for as long as others can wait for their turn, and never
// after its end, should the process have stood still just then.
func TestHowLongALockIsHandedOff(t *testing.T) {
	unconnected(t, func(t *testing.T, l *Locker) {
		next := wanted(t.Context(), store.Name{}, &l.defaults)
		for kept, ends := range map[time.Duration]time.Duration{
			time.Millisecond:              time.Millisecond,
			9 * time.Millisecond:          time.Hour,
			2 * time.Millisecond:          0,
			3 * time.Millisecond:          -time.Millisecond,
			handOffFor:                    time.Hour,
			handOffFor + time.Millisecond: time.Hour,
		} {
			s, h := leased(t, l, schedule.Now().Add(ends))
			s.life.Leave(0, &h.state)
			s.Terms, s.heldSince = next.terms(), schedule.Now().Add(-kept)
			if want := kept < handOffFor && ends > 0; s.mayHandOffTo(&next) != want {
				t.Errorf("held for %v, ends in %v: handed off is %v", kept, ends, !want)
			}
		}
		// Redis gives a token of its own to whoever has the lock next, should it end without a release.
		for given, want := range map[int64]bool{999: true, 1000: false} {
			s, h := leased(t, l, schedule.Now().Add(time.Hour))
			s.life.Leave(0, &h.state)
			s.Terms, s.token, s.heldSince = next.terms(), given, schedule.Now().Add(-time.Millisecond)
			if s.mayHandOffTo(&next) != want {
				t.Errorf("%d tokens given in a millisecond: handed off is %v", given, !want)
			}
		}
	})
}

// A lock that was about to be handed off to a call of LockAll ends, and all contexts of the call with
// it, when the Locker closes just then. The call fails because of that.
func TestLockAllThatIsHandedALockWhenTheLockerCloses(t *testing.T) {
	unconnected(t, func(t *testing.T, l *Locker) {
		base, cancel := context.WithCancelCause(t.Context())
		a := &multiCall{locker: l, caller: t.Context(), base: base, settings: &l.defaults, group: &group{cancel: cancel, began: time.Now()}}
		if err := a.prepare([]string{"a", "b"}); err != nil {
			t.Fatal(err)
		}
		i := a.observe(a.calls[0])
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		k, err := a.calls[0].lockGivenInMemory(grant{Times: life.Times{Ends: schedule.Now().Add(time.Hour)}})
		if err := a.add(k, err, i); !errors.Is(err, ErrClosed) {
			t.Errorf("the call fails: %v", err)
		}
		if !errors.Is(context.Cause(base), ErrClosed) {
			t.Errorf("its contexts have ended: %v", context.Cause(base))
		}
	})
}

// A call of LockAll may wait for a lock more than once. Who has found it in the queue looks at what it wanted then, without a lock.
func TestLockAllThatWaitsAgainWhileOthersLookAtIt(t *testing.T) {
	unconnected(t, func(t *testing.T, l *Locker) {
		a := &multiCall{locker: l, caller: t.Context(), base: t.Context(), settings: &l.defaults, group: &group{began: time.Now()}}
		if err := a.prepare([]string{"a", "b"}); err != nil {
			t.Fatal(err)
		}
		c := a.calls[0]
		before, _ := l.queues.Join(c.name.Lock(), "", new(want), nil)
		waited := make(chan error, 1)
		go func() { waited <- a.waitFor(c) }()
		synctest.Wait()
		before.Leave()
		found := l.queues.Find(c.name.Lock())[0].Request
		ctx := found.ctx
		if err := <-waited; !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		a.base = context.WithValue(t.Context(), ownershipKey{}, (*Lock)(nil))
		if a.observe(c); found.ctx != ctx {
			t.Error("what was found has changed")
		}
	})
}
