//go:build go1.25

package core_test

import (
	"bufio"
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	redisserver "github.com/alicebob/miniredis/v2/server"

	"github.com/latchkey-go/latchkey/core"
)

// swap has the server do the next two commands of these names, and give each the reply to the other, as on
// connections that are out of step.
func (s *embedded) swap(names ...string) {
	replies := [2]chan string{make(chan string, 1), make(chan string, 1)}
	for i, name := range names {
		s.fail(name, func(s *embedded, p *peer, cmd string, args []string) bool {
			var reply bytes.Buffer
			mine := redisserver.NewPeer(bufio.NewWriter(&reply))
			s.pass(mine, cmd, args)
			mine.Flush()
			replies[i] <- reply.String()
			p.WriteRaw(<-replies[1-i])
			return true
		})
	}
}

// tries calls TryLock in other goroutines, one after the other.
func tries(l *core.Locker, keys ...string) []outcome {
	results := make([]chan outcome, len(keys))
	for i, key := range keys {
		results[i] = make(chan outcome, 1)
		go func() {
			k, err := l.TryLock(background, key)
			results[i] <- outcome{lock: k, err: err}
		}()
		synctest.Wait()
	}
	outcomes := make([]outcome, len(keys))
	for i := range results {
		outcomes[i] = <-results[i]
	}
	return outcomes
}

// Nobody believes in a lock, or that it is busy, because of the answer to another command: what became of one's own is
// unknown, and nothing of it stays.
func TestAnswerIsOfAnotherAcquisition(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, s *embedded){
		"both are granted": func(*testing.T, *embedded) {},
		"one is busy":      func(t *testing.T, s *embedded) { s.HSet("lock:b", "java:1", "1") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				before(t, s)
				s.swap(acquire, acquire)
				for i, o := range tries(l, "a", "b") {
					wantErr(t, o.err, core.ErrUnavailable)
					wantNot(t, o.err, core.ErrNotAcquired)
					if o.lock != nil {
						t.Errorf("call %d has the lock %q, of which it has no answer", i, o.lock.Key())
					}
				}
				time.Sleep(time.Second)
				s.isFree("a")
				if k, err := l.TryLock(background, "a"); err != nil {
					t.Errorf("it is not free: %v", err)
				} else {
					unlock(t, k)
				}
			})
		})
	}
}

// A renewal of another lock prolongs nothing: a lock that is gone is lost as soon as Redis has said so, and the other is
// held on.
func TestAnswerIsOfAnotherRenewal(t *testing.T) {
	for name, opts := range map[string][]core.Option{"an owner each": nil, "one chosen owner": {core.Owner("job")}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				gone := take(t, background, s.locker(), "a", opts...)
				time.Sleep(time.Millisecond)
				held := take(t, background, s.locker(), "b", opts...)
				s.Del("lock:a")
				s.swap(renew, renew)
				began := time.Now()
				at, cause := endOf(gone.Context())
				wantErr(t, cause, core.ErrLost)
				wantTime(t, "the loss was noticed", at.Sub(began), 0, lease/3+time.Second)
				time.Sleep(lease)
				unlock(t, held)
			})
		})
	}
}

// A release is confirmed by its own answer only.
func TestAnswerIsOfAnotherRelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := take(t, background, s.locker(), "a"), take(t, background, s.locker(), "b")
		s.Del("lock:b")
		s.swap(release, release)
		left := make(chan error, 1)
		go func() { left <- a.Unlock(background) }()
		synctest.Wait()
		_ = b.Unlock(background)
		wantErr(t, <-left) // and not ErrLost, which is b's
		s.isFree("a")
	})
}

// The same for several locks that one command releases: each is released again, which confirms it.
func TestAnswerIsOfAnotherReleaseOfSeveral(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		unlockAll(t, takeAll(t, background, l, []string{"x", "y"})) // calls are merged from now on
		time.Sleep(time.Second)
		first, second := takeAll(t, background, l, []string{"a", "b"}), takeAll(t, background, l, []string{"c", "d"})
		before := len(s.commands(release))
		s.swap(release, release)
		left := make(chan error, 1)
		go func() { left <- first.Unlock(background) }()
		synctest.Wait()
		unlockAll(t, second)
		wantErr(t, <-left)
		if n := len(s.commands(release)) - before; n != 2+4 {
			t.Errorf("%d commands", n)
		}
		wantLocked(t, s, "in the end", "")
	})
}

// A request does not get the answer that another request has had.
func TestAnswerIsOfAnotherRequest(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		answer(t, attempts(t, l, 1), "paid")
		s.swap(acquire, acquire)
		mine := make(chan error, 1)
		go func() {
			_, err := l.TryLock(background, "k", attemptAt(request))
			mine <- err
		}()
		synctest.Wait()
		_, err := l.TryLock(background, "other", attemptAt(other))
		for _, err := range []error{err, <-mine} {
			wantErr(t, err, core.ErrUnavailable)
		}
		time.Sleep(time.Second)
		s.isFree("other")
		wantAnswer(t, l, "paid")
	})
}

// A lock is not believed to be parked, nor taken back, because of what was said of another.
func TestAnswerIsOfAnotherHandover(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := take(t, background, s.locker(), "a"), take(t, background, s.locker(), "b")
		s.Del("lock:b")
		s.swap("hand_over", "hand_over")
		parked := make(chan error, 1)
		go func() {
			_, err := a.Handover(background, time.Minute)
			parked <- err
		}()
		synctest.Wait()
		if _, err := b.Handover(background, time.Minute); err == nil {
			t.Error("a lock that is gone was handed over")
		}
		if err := <-parked; errors.Is(err, core.ErrLost) {
			t.Errorf("of a lock that is held: %v", err)
		}
		_ = a.Unlock(background)
	})
}
