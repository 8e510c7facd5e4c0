//go:build go1.25

package core_test

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// brokenConnections are the ways in which a connection ends without an answer.
var brokenConnections = map[string]fault{"reply lost": loseReply, "request lost": loseRequest}

// holdsOf are the holds that an acquisition names.
func holdsOf(c command) []string {
	keys, _ := strconv.Atoi(c.args[1])
	args := c.args[2+keys:]
	if calls := keys / 3; calls > 1 { // of each: hold, lease
		return slices.Collect(every(args, 0, len(args)/calls))
	}
	if len(args) > 3 {
		return args[3:4]
	}
	return args[:1]
}

// every yields each step-th of some words, from one on.
func every(words []string, from, step int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := from; i < len(words) && yield(words[i]); i += step {
		}
	}
}

// An acquisition counts once per hold, so it is sent again when its connection
// breaks. Taken out, each connection that was closed behind the pool's back costs
// somebody his lock.
func TestAcquisitionOutlivesBrokenConnections(t *testing.T) {
	for name, f := range brokenConnections {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				s.fail(acquire, f, f, f)
				began := time.Now()
				k := take(t, background, l, "k", core.KeepFor(time.Minute))
				wantTime(t, "Lock returned", time.Since(began), 0, 50*time.Millisecond)
				if got := s.held("k"); got != k.Owner()+"=1" {
					t.Errorf("Redis shows %q; want one hold", got)
				}
				if got, _ := s.mode(); got != strconv.FormatInt(k.Token(), 10) {
					t.Errorf("token %d; Redis has %q", k.Token(), got)
				}
				s.fail(acquire, f)
				inner := take(t, k.Context(), l, "k")
				if got := s.held("k"); got != k.Owner()+"=2" || inner.Token() != k.Token() {
					t.Errorf("Redis shows %q, token %d; want two holds of %d", got, inner.Token(), k.Token())
				}
				time.Sleep(time.Minute) // it is renewed
				unlock(t, inner)
				if err := k.Context().Err(); err != nil {
					t.Error(context.Cause(k.Context()))
				}
				unlock(t, k)
				s.isFree("k")

				k = take(t, background, l, "window", core.KeepFor(time.Minute))
				unlock(t, k)
				inWindow(t, l, "window", time.Minute)
			})
		})
	}
}

// The wait for connections that hold is bounded, and what they may have done is undone.
func TestInvariant3BrokenConnectionsEndWithTheTimeout(t *testing.T) {
	for name, f := range brokenConnections {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				s.failAll(f, acquire)
				began := time.Now()
				_, err := l.Lock(background, "k")
				wantErr(t, err, core.ErrUnavailable)
				wantTime(t, "Lock returned", time.Since(began), 1900*time.Millisecond, 2*time.Second)
				if n := len(s.commands(acquire)); n > 200 {
					t.Errorf("sent %d times", n)
				}
				holds := map[string]bool{}
				for _, c := range s.commands(acquire) {
					holds[holdsOf(c)[0]] = true
				}
				if len(holds) != 1 {
					t.Errorf("%d holds; want one", len(holds))
				}
				began = time.Now()
				ctx, cancel := context.WithTimeout(background, 300*time.Millisecond)
				defer cancel()
				_, err = l.TryLock(ctx, "k")
				wantErr(t, err, core.ErrNotAcquired, context.DeadlineExceeded)
				wantTime(t, "TryLock returned", time.Since(began), 300*time.Millisecond, 300*time.Millisecond)
				time.Sleep(time.Second)
				s.isFree("k")
				s.heal()
				unlock(t, take(t, background, l, "k"))
			})
		})
	}
}

// The first copy may have been the one that got the lock; then its lease runs since
// then. Taken out, the holder of a fixed lease works on after the next one has begun.
func TestRepeatedAcquisitionBelievesInNoMoreThanRedis(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		s.fail(acquire, func(s *embedded, p *peer, cmd string, args []string) bool {
			s.pass(nowhere(), cmd, args)
			time.Sleep(1500 * time.Millisecond)
			p.Close()
			return true
		})
		k := take(t, background, l, "k", core.FixedLease(4*time.Second))
		left := s.TTL("lock:k")
		began := time.Now()
		end, why := endOf(k.Context())
		wantErr(t, why, core.ErrLost)
		wantTime(t, "the holder stopped", end.Sub(began), left-1600*time.Millisecond, left)
	})
}

// Calls that are made together are not sent together for ever: they come back one
// after the other, and each of them gets its lock.
func TestBrokenConnectionFailsNoneOfTheCallsThatTravelTogether(t *testing.T) {
	for name, f := range brokenConnections {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				lockMany(t, background, l, 20)
				synctest.Wait() // now it is known that they may
				s.fail(acquire, f, f, f, f, f, f)
				lockMany(t, background, l, 60) // which tells of errors
				for _, key := range s.Keys() {
					if strings.HasPrefix(key, "lock:many") {
						t.Errorf("%s is left", key)
					}
				}
			})
		})
	}
}

// lateCopy breaks the connection of a call. Its copy gets through when it is told to.
func lateCopy(s *embedded) (f fault, arrive func()) {
	var p *peer
	var cmd string
	var args []string
	f = func(_ *embedded, broken *peer, c string, a []string) bool {
		p, cmd, args = nowhere(), c, a
		broken.Close()
		return true
	}
	return f, func() { s.pass(p, cmd, args) }
}

// A copy that was refused is answered for the one before it, too. Taken out, that one
// takes the lock for nobody, until the lease ends.
func TestInvariant3FirstCopyThatArrivesAfterARefusal(t *testing.T) {
	for name, f := range map[string]fault{
		"busy":  func(*embedded, *peer, string, []string) bool { return false },
		"error": refuse("LOADING Redis is loading"),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l, other := s.locker(), s.locker()
				k := take(t, background, other, "k")
				first, arrive := lateCopy(s)
				s.fail(acquire, first, f)
				if _, err := l.TryLock(background, "k"); err == nil {
					t.Fatal("two are inside")
				}
				time.Sleep(time.Second)
				unlock(t, k)
				arrive()
				s.isFree("k")
			})
		})
	}
}

// A lock that was passed on in this process is released by somebody else, who has to
// leave what refuses the copy.
func TestInvariant3FirstCopyThatArrivesAfterPassingOn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		first, arrive := lateCopy(s)
		s.fail(acquire, first)
		k := take(t, background, l, "k")
		next := start(background, l, "k")
		waits(t, next)
		time.Sleep(time.Millisecond)
		asked := len(s.commands(acquire))
		unlock(t, k)
		o := <-next
		if n := len(s.commands(acquire)) - asked; n > 0 {
			t.Errorf("%d acquisitions: it was not passed on", n)
		}
		unlock(t, o.lock)
		arrive()
		synctest.Wait() // it has left the queue
		s.isFree("k")
	})
}

// A fixed lease ends by itself, but what refuses the copy is left. Taken out, the copy takes the lock for nobody.
func TestInvariant3FirstCopyThatArrivesAfterAFixedLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		first, arrive := lateCopy(s)
		s.fail(acquire, first)
		k := take(t, background, l, "k", core.FixedLease(5*time.Second))
		<-k.Context().Done()
		time.Sleep(time.Second)
		arrive()
		s.isFree("k")
	})
}

// The lease that counts is that of the copy which was answered. Taken out, a lease that
// is shorter than what the first copy took is over before it has begun.
func TestLeaseOfARepeatedAcquisitionBeginsWithTheLastCopy(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		s.fail(acquire, func(_ *embedded, p *peer, _ string, _ []string) bool {
			time.Sleep(700 * time.Millisecond)
			p.Close()
			return true
		})
		k := take(t, background, l, "k", core.Lease(500*time.Millisecond))
		time.Sleep(time.Minute)
		if err := k.Context().Err(); err != nil {
			t.Error(context.Cause(k.Context()))
		}
		unlock(t, k)
	})
}
