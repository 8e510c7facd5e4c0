//go:build go1.25

package core_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// farAway is how keys come to last for longer than anybody has asked for, by far.
var farAway = map[string]func(s *embedded){
	"the clock was set back": func(s *embedded) { s.setBack(time.Hour) },
	"a foreign EXPIRE": func(s *embedded) {
		for _, key := range s.Keys() {
			if s.TTL(key) > 0 {
				s.SetTTL(key, time.Hour)
			}
		}
	},
	"a foreign PERSIST": func(s *embedded) {
		client := s.client()
		for _, key := range s.Keys() {
			if s.TTL(key) > 0 {
				client.Persist(background, key)
			}
		}
	},
}

// deadHolders are all kinds of locks, as a process leaves them that dies; and how long each may last from the next
// question on.
var deadHolders = map[string]struct {
	hold  func(t *testing.T, s *embedded, l *core.Locker)
	lasts time.Duration
}{
	"held":  {func(t *testing.T, s *embedded, l *core.Locker) { take(t, background, l, "k") }, lease},
	"fixed": {func(t *testing.T, s *embedded, l *core.Locker) { take(t, background, l, "k", core.FixedLease(lease)) }, lease},
	"granted": {func(t *testing.T, s *embedded, l *core.Locker) {
		k := take(t, background, s.locker(), "k")
		waiting := start(background, l, "k")
		s.failAll(loseRequest, renew)
		unlock(t, k)
		<-waiting
	}, time.Second},
	"entered again": {func(t *testing.T, s *embedded, l *core.Locker) {
		take(t, take(t, background, l, "k").Context(), l, "k")
	}, lease},
	"entered again, and the outer one was unlocked": {func(t *testing.T, s *embedded, l *core.Locker) {
		k := take(t, background, l, "k")
		take(t, k.Context(), l, "k")
		unlock(t, k)
	}, lease},
	"entered again, and the outer one was aborted": {func(t *testing.T, s *embedded, l *core.Locker) {
		k := take(t, background, l, "k", core.KeepFor(2*time.Minute))
		take(t, k.Context(), l, "k")
		_ = k.Abort(background)
	}, lease},
	"entered again, and the inner one was unlocked": {func(t *testing.T, s *embedded, l *core.Locker) {
		k := take(t, background, l, "k")
		unlock(t, take(t, k.Context(), l, "k"))
	}, lease},
	"entered again, and the outer one has earned a window": {func(t *testing.T, s *embedded, l *core.Locker) {
		k := take(t, background, l, "k", core.KeepFor(2*time.Minute))
		take(t, k.Context(), l, "k")
		unlock(t, k)
	}, 2 * time.Minute},
	"entered by a chosen owner": {func(t *testing.T, s *embedded, l *core.Locker) {
		for range 3 {
			take(t, background, l, "k", core.Owner("job"))
		}
	}, lease},
	"shared": {func(t *testing.T, s *embedded, l *core.Locker) {
		for range 2 {
			take(t, background, l, "k", core.Shared())
		}
	}, lease},
	"shared by a chosen owner": {func(t *testing.T, s *embedded, l *core.Locker) {
		for range 2 {
			take(t, background, l, "k", core.Shared(), core.Owner("job"))
		}
	}, lease},
	"permits": {func(t *testing.T, s *embedded, l *core.Locker) {
		for range 2 {
			take(t, background, l, "k", core.Permits(2))
		}
	}, lease},
	"handed over": {func(t *testing.T, s *embedded, l *core.Locker) {
		parkedBy(t, take(t, background, l, "k"), time.Minute)
	}, time.Minute},
	"resumed": {func(t *testing.T, s *embedded, l *core.Locker) {
		if _, err := l.Resume(background, "k", parkedBy(t, take(t, background, l, "k"), time.Minute)); err != nil {
			t.Error(err)
		}
	}, lease + time.Minute},
	"of an attempt": {func(t *testing.T, s *embedded, l *core.Locker) { requests["of a process that has died"](t, l) }, lease + time.Minute},
	"of an attempt, and its outcome is unknown": {func(t *testing.T, s *embedded, l *core.Locker) { requests["unknown"](t, l) }, time.Minute},
	"answered": {func(t *testing.T, s *embedded, l *core.Locker) { requests["answered"](t, l) }, time.Minute},
	"in a window": {func(t *testing.T, s *embedded, l *core.Locker) {
		unlock(t, take(t, background, l, "k", core.KeepFor(time.Minute)))
	}, time.Minute},
}

// What a dead process leaves is free in time, of whatever kind, also when its key would last for longer.
func TestLockOfADeadProcessWhoseExpiryIsFarAway(t *testing.T) {
	for kind, c := range deadHolders {
		for why, far := range farAway {
			t.Run(kind+"/"+why, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					dead := s.open()
					c.hold(t, s, dead)
					s.failAll(loseRequest, renew, release)
					far(s)
					o := <-start(within(5*time.Minute), s.locker(), "k")
					if o.err != nil {
						t.Fatal(o.err)
					}
					wantTime(t, "the next call had it", o.took, 0, c.lasts+3*time.Second)
					s.heal()
					unlock(t, o.lock)
					_ = dead.Close(background)
				})
			})
		}
	}
}

// requests are all that may be known of a request, for a minute.
var requests = map[string]func(t *testing.T, l *core.Locker){
	"answered": func(t *testing.T, l *core.Locker) {
		if err := adapter.Answer(background, attemptFor(t, l), []byte("paid"), time.Minute); err != nil {
			t.Error(err)
		}
	},
	"unknown":                    func(t *testing.T, l *core.Locker) { unlock(t, attemptFor(t, l)) },
	"of a process that has died": func(t *testing.T, l *core.Locker) { attemptFor(t, l) },
}

func attemptFor(t *testing.T, l *core.Locker) *core.Lock {
	return take(t, background, l, "k", adapter.Attempt(request, time.Minute, true))
}

// The same of who comes to repeat a request.
func TestRequestWhoseExpiryIsFarAway(t *testing.T) {
	for kind, hold := range requests {
		for why, far := range farAway {
			t.Run(kind+"/"+why, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					dead, l := s.open(), s.locker()
					hold(t, dead)
					s.failAll(loseRequest, renew, release)
					far(s)
					refused := func() bool {
						k, err := l.TryLock(background, "k", adapter.Attempt(request, time.Minute, true))
						if err == nil {
							s.heal()
							unlockFailed(t, k)
						}
						return err != nil
					}
					began := time.Now()
					for refused() && time.Since(began) < 5*time.Minute {
						time.Sleep(time.Second)
					}
					wantTime(t, "it was as if it had never come", time.Since(began), time.Minute-time.Second, time.Minute+lease+3*time.Second)
					_ = dead.Close(background)
				})
			})
		}
	}
}

// Neither does the queue last of which those are dead who wait, once somebody comes.
func TestQueueWhoseExpiryIsFarAway(t *testing.T) {
	for why, far := range farAway {
		t.Run(why, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				k := take(t, background, s.locker(), "k")
				gone := s.open()
				dead := start(within(time.Minute), gone, "k")
				s.failAll(loseRequest, release)
				<-dead // it was given up, and leaves a tombstone
				s.heal()
				mustAdd(s, "dead:1")
				far(s)
				waits := start(within(10*time.Second), s.locker(), "k")
				synctest.Wait()
				if ttl := s.TTL(waitQueue); ttl > time.Minute {
					t.Errorf("with somebody who waits it lasts %v", ttl)
				}
				<-waits
				unlock(t, k)
				_ = gone.Close(background)
				time.Sleep(2 * time.Minute)
				if s.Exists(waitQueue) {
					t.Error("it is still there")
				}
			})
		})
	}
}
