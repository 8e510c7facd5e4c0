//go:build go1.25

package core_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// isKept waits whether a lock that was got stays with its holder.
func (s *embedded) isKept(t *testing.T, o outcome) {
	t.Helper()
	if o.err != nil {
		t.Fatal(o.err)
	}
	time.Sleep(time.Second)
	if held := s.held("k"); held != o.lock.Owner()+"=1" {
		t.Errorf("Redis shows %q", held)
	}
	unlock(t, o.lock)
}

// A head that is cancelled while the answer is on its way, which gave it the lock, gives
// its hold back, whatever the cause of the cancellation looks like.
// Taken out, the next call asks with that hold, and believes in a lock that is released.
func TestInvariant1CancelledHeadLeavesNoHoldBehind(t *testing.T) {
	for name, cause := range map[string]error{"answer of Redis": redis.Nil, "own": errEnough} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				client := redis.NewClient(&redis.Options{Addr: s.addr, Dialer: s.dial, ContextTimeoutEnabled: true})
				t.Cleanup(func() { _ = client.Close() })
				l := onRedis(t, client, core.Logger(slog.New(slog.DiscardHandler)))
				take(t, background, s.locker(), "k", core.FixedLease(50*time.Millisecond))
				ctx, cancel := context.WithCancelCause(background)
				head := start(ctx, l, "k")
				next := start(background, l, "k")
				s.fail(acquire, lateReply(20*time.Millisecond)) // the poll when the lease ends
				time.Sleep(60 * time.Millisecond)
				s.fail(release, lateRequest(5*time.Millisecond)) // the compensation
				cancel(cause)
				wantErr(t, (<-head).err, core.ErrNotAcquired)
				s.isKept(t, <-next)
			})
		})
	}
}

// A call that gives up leaves its position to the next one of its process, whatever kind of
// lock that wants.
// Taken out, those that came in between go first, or the old position stays in the queue and
// the lock goes to nobody.
func TestNextCallTakesTheEntryOver(t *testing.T) {
	short := core.Lease(200 * time.Millisecond)
	for name, c := range map[string]struct{ first, second []core.Option }{
		"plain, then another lease": {nil, []core.Option{short}},
		"another lease, then plain": {[]core.Option{short}, nil},
		"plain, then a window":      {nil, []core.Option{core.KeepFor(time.Millisecond)}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				k := take(t, background, s.locker(), "k")
				ctx, cancel := context.WithCancel(background)
				first := start(ctx, l, "k", c.first...)
				waits(t, first)
				place, err := s.ZMembers(waitQueue)
				if err != nil || len(place) != 1 {
					t.Fatal(place, err)
				}
				time.Sleep(time.Millisecond) // waits that begin at one time have no order
				other := start(background, s.locker(), "k")
				waits(t, other)
				second := start(background, l, "k", c.second...)
				cancel()
				<-first
				synctest.Wait()
				if now, _ := s.ZMembers(waitQueue); len(now) != 2 || now[0] != place[0] {
					t.Errorf("in the queue: %v, before %v", now, place)
				}
				unlock(t, k)
				o := <-second
				if o.err != nil {
					t.Fatal(o.err)
				}
				waits(t, other)
				unlock(t, o.lock)
				isServed(t, "the other process", other, time.Second)
				time.Sleep(6 * time.Second)
				if s.Exists(waitQueue) {
					t.Error("a position is left")
				}
			})
		})
	}
}

// A process releases a lock, twice nested, while its next call is asking for it, for the
// second time because a connection broke.
// Taken out, that call believes in a lock whose hold was given up, or hears of a loss.
func TestInvariant1EntryInUseIsNotGivenUp(t *testing.T) {
	for name, late := range map[string]time.Duration{"before it has the lock": 0, "once it has the lock": 400 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				k := take(t, background, l, "k")
				inner := take(t, k.Context(), l, "k")
				next := start(background, l, "k")
				waits(t, next)
				s.fail(acquire, loseRequest, lateRequest(300*time.Millisecond))
				for asked := len(s.commands(acquire)); len(s.commands(acquire)) < asked+2; {
					time.Sleep(time.Millisecond)
				}
				s.failAll(func(_ *embedded, _ *peer, _ string, args []string) bool {
					if slices.Contains(args, "60000") { // leaves a tombstone
						time.Sleep(late)
					}
					return false
				}, release)
				unlock(t, inner, k)
				s.isKept(t, <-next)
			})
		})
	}
}

// A call whose connection breaks asks with another hold from then on, soon.
func TestBrokenConnectionOfAWaitingCall(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		k := take(t, background, s.locker(), "k")
		waiting := start(background, s.locker(), "k")
		waits(t, waiting)
		s.fail(acquire, loseReply)
		asked := len(s.commands(acquire))
		for len(s.commands(acquire)) < asked+3 { // its poll, which breaks and goes again; the one after that
			time.Sleep(time.Millisecond)
		}
		time.Sleep(50 * time.Millisecond)
		granted := len(s.commands(acquire))
		unlock(t, k)
		o := <-waiting
		if n := len(s.commands(acquire)) - granted; n > 0 {
			t.Errorf("%d acquisitions after the release; want a grant", n)
		}
		unlock(t, o.lock)
		s.isFree("k")
	})
}

// So does one whose connection breaks, when the second copy is refused: the first may have had an effect, which is undone.
func TestRefusedCopyOfAWaitingCall(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		k := take(t, background, s.locker(), "k")
		waiting := start(background, s.locker(), "k")
		waits(t, waiting)
		s.fail(acquire, loseReply, refuse("OOM"))
		time.Sleep(3 * time.Second)
		unlock(t, k)
		s.isKept(t, <-waiting)
		s.isFree("k")
	})
}

// A claim that Redis refuses has put nothing into the queue.
// Taken out, a release is sent for it, and repeated as long as Redis refuses that, too.
func TestRefusedClaimLeavesNothingToRelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		s.failAll(refuse("MOVED 866 127.0.0.1:7001"), acquire, release)
		_, err := s.locker().Lock(background, "k")
		wantErr(t, err, core.ErrUnavailable)
		time.Sleep(time.Minute)
		if n := len(s.commands(release)); n > 0 {
			t.Errorf("%d releases", n)
		}
		s.heal()
	})
}

// A call that leaves while a release carries its wait to Redis is not waited for: the release
// arrives later than the word that it has left.
func TestCallThatLeavesWhileAReleaseCarriesItsWait(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		k := take(t, background, a, "k")
		ctx, cancel := context.WithCancel(background)
		waiting := start(ctx, a, "k", core.Lease(10*time.Second)) // is not passed the lock in memory
		other := start(background, b, "k")
		time.Sleep(100 * time.Millisecond)
		s.fail(release, lateRequest(50*time.Millisecond))
		released := make(chan error, 1)
		go func() { released <- k.Unlock(background) }()
		time.Sleep(10 * time.Millisecond)
		cancel()
		wantErr(t, (<-waiting).err, context.Canceled)
		wantErr(t, <-released)
		o := <-other
		if o.err != nil {
			t.Fatal(o.err)
		}
		began := time.Now()
		unlock(t, o.lock)
		again := take(t, background, b, "k")
		wantTime(t, "free", time.Since(began), 0, prompt)
		unlock(t, again)
	})
}

// A call that waits is cancelled while its next claim has no connection to go by.
// Taken out, its wait stays in the queue of the lock, which is granted to nobody.
func TestCancelledBeforeItsClaimLeft(t *testing.T) {
	bubbleOfFewConnections(t, func(t *testing.T, s *embedded) {
		k := take(t, background, s.locker(), "k")
		client := redis.NewClient(&redis.Options{Addr: s.addr, Dialer: s.dial, PoolSize: 1})
		t.Cleanup(func() { _ = client.Close() })
		ctx, cancel := context.WithCancel(background)
		waiting := start(ctx, onRedis(t, client), "k")
		time.Sleep(time.Millisecond) // waits that begin at one time have no order
		next := start(background, s.locker(), "k")
		s.fail("get", lateReply(1500*time.Millisecond))
		go client.Get(background, "x") // has the only connection, also when the next claim is due
		time.Sleep(1200 * time.Millisecond)
		cancel()
		wantErr(t, (<-waiting).err, context.Canceled)
		time.Sleep(time.Second)
		unlock(t, k)
		isServed(t, "the next call", next, prompt)
	})
}

// A call that has chosen its owner may enter the lock while a release is on its way, and leave it: the release must
// not bring its entry back.
func TestReleaseCarriesNoChosenOwner(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k")
		next := start(background, l, "k", core.Owner("cart-7"))
		waits(t, next)
		time.Sleep(time.Second) // it asks again, and is queued
		unlock(t, k)
		isServed(t, "who waits", next, prompt)
		for _, c := range s.commands(release) {
			if slices.ContainsFunc(c.args, func(arg string) bool { return strings.HasSuffix(arg, " cart-7") }) {
				t.Errorf("the release has its entry: %q", c.args)
			}
		}
	})
}
