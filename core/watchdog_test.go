package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

const lease = 30 * time.Second

func TestWatchdogHoldsForAnHour(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		began := time.Now()
		k := take(t, background, l, "k")
		time.Sleep(time.Hour + time.Second)
		if err := context.Cause(k.Context()); err != nil {
			t.Fatalf("lost: %v", err)
		}
		renewals := s.commands(renew)
		if len(renewals) != 360 {
			t.Errorf("%d renewals in an hour; want one per lease/3", len(renewals))
		}
		for i, c := range renewals {
			if got, want := c.at.Sub(began), time.Duration(i+1)*lease/3; got != want {
				t.Fatalf("renewal %d after %v; want %v", i+1, got, want)
			}
		}
		if got := s.TTL("lock:k"); got < lease*2/3 {
			t.Errorf("TTL %v", got)
		}
		unlock(t, k)
		s.isFree("k")
	})
}

// What a monitor beside a held lock shows: acquire, renewals, release.
func TestNothingElseIsSentForAHeldLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k")
		time.Sleep(25 * time.Second)
		unlock(t, k)
		time.Sleep(time.Hour)
		if a, w, r := len(s.commands(acquire)), len(s.commands(renew)), len(s.commands(release)); a != 1 || w != 2 || r != 1 || s.scripts() != 4 {
			t.Errorf("acquire %d, renew %d, release %d of %d scripts; want 1, 2, 1 and nothing else", a, w, r, s.scripts())
		}
		if n := len(s.commands("subscribe")); n != 0 {
			t.Errorf("%d subscriptions without anybody waiting", n)
		}
	})
}

func TestInvariant8ManyLocksShareARoundTrip(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		var locks []*core.Lock
		for i := range 300 {
			locks = append(locks, take(t, background, l, string(rune('a'+i))))
		}
		conns := s.TotalConnectionCount()
		time.Sleep(25 * time.Second)
		for _, k := range locks {
			if err := context.Cause(k.Context()); err != nil {
				t.Fatalf("%s lost: %v", k.Key(), err)
			}
		}
		if n := s.TotalConnectionCount() - conns; n > 2 {
			t.Errorf("the renewals opened %d connections", n)
		}
		unlock(t, locks...)
	})
}

// The renewal stops before the release is sent, however long that takes.
// Taken out, a slow release is overtaken by renewals: one that finds the lock gone
// raises the alarm of a loss that was none. Tried: this test then fails with
// "logged: [latchkey: a lock was lost while held]".
func TestInvariant8RenewalStopsBeforeTheReleaseIsSent(t *testing.T) {
	for name, slow := range map[string]fault{
		"request late": lateRequest(2 * time.Second), // across the time of a renewal
		"reply late":   lateReply(2 * time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				logged := &records{}
				l := s.locker(core.Lease(3*time.Second), core.Timeout(10*time.Second), core.Logger(logged.logger()))
				k := take(t, background, l, "k")
				time.Sleep(500 * time.Millisecond)
				s.fail(release, slow)
				unlock(t, k)
				time.Sleep(time.Minute)
				if all := logged.all(); len(all) > 0 {
					t.Errorf("logged: %v", all)
				}
				if n := len(s.commands(renew)); n != 0 {
					t.Errorf("%d renewals after Unlock began", n)
				}
				s.isFree("k")
			})
		})
	}
}

func TestInvariant8RenewalGoesOnWhileTheCallersContextIsCancelled(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		ctx, cancel := context.WithCancel(background)
		k := take(t, ctx, l, "k")
		cancel()
		time.Sleep(5 * time.Minute)
		if got := s.held("k"); got != k.Owner()+"=1" {
			t.Errorf("Redis shows %q; the handler still runs", got)
		}
		unlock(t, k)
	})
}

// The deadline: before the last successful renewal was sent, plus the lease.
// Taken out, a holder that cannot reach Redis is never told, and works on beside the
// next one. Tried: this test then fails with "loss after 1h0m25s; want 49.9s to 50s".
func TestInvariant4LossIsToldByTheLocalDeadline(t *testing.T) {
	for name, hurt := range map[string]func(*embedded){
		"unreachable":   (*embedded).outage,
		"server errors": func(s *embedded) { s.failAll(refuse("LOADING Redis is loading"), renew, release) },
		"silent":        func(s *embedded) { s.failAll(hang, renew, release) },
		"replies lost":  func(s *embedded) { s.failAll(loseRequest, renew, release) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				began := time.Now()
				k := take(t, background, l, "k")
				time.Sleep(25 * time.Second) // renewed at 20 s
				hurt(s)
				at, cause := endOf(k.Context())
				wantErr(t, cause, core.ErrLost)
				wantTime(t, "loss", at.Sub(began), 49900*time.Millisecond, 50*time.Second)
				if n := len(s.commands(renew)); name == "server errors" && n < 50 {
					t.Errorf("%d renewals; a failed one is to be repeated quickly", n)
				}
				wantErr(t, k.Unlock(background), core.ErrLost)
				s.heal()
			})
		})
	}
}

func TestOutageShorterThanTheLeaseIsSurvived(t *testing.T) {
	for name, hurt := range map[string]func(*embedded){
		"unreachable":   (*embedded).outage,
		"server errors": func(s *embedded) { s.failAll(refuse("READONLY You can't write against a read only replica."), renew) },
		"silent":        func(s *embedded) { s.failAll(hang, renew) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				k := take(t, background, l, "k")
				for range 5 {
					time.Sleep(9 * time.Second)
					hurt(s)
					time.Sleep(18 * time.Second)
					s.heal()
					time.Sleep(13 * time.Second)
					if got := s.TTL("lock:k"); got < lease/3 {
						t.Errorf("TTL %v: not renewed after the outage", got)
					}
				}
				if err := context.Cause(k.Context()); err != nil {
					t.Fatalf("lost: %v", err)
				}
				unlock(t, k)
				s.isFree("k")
			})
		})
	}
}

func TestFailedRenewalIsRepeatedWithinASecond(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		began := time.Now()
		k := take(t, background, l, "k")
		s.fail(renew, refuse("LOADING Redis is loading"))
		time.Sleep(11 * time.Second)
		renewals := s.commands(renew)
		if len(renewals) != 2 {
			t.Fatalf("%d renewals; want the failed one and its repetition", len(renewals))
		}
		wantTime(t, "repetition", renewals[1].at.Sub(began), 10*time.Second, 10500*time.Millisecond)
		unlock(t, k)
	})
}

// Also when the Locker's own timeout is longer.
func TestAnUnansweredRenewalTakesAThirdOfTheLeaseAtMost(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Timeout(10 * time.Second))
		k := take(t, background, l, "k", core.Lease(3*time.Second))
		s.fail(renew, hang)
		time.Sleep(10 * time.Second)
		if err := context.Cause(k.Context()); err != nil {
			t.Errorf("lost: %v", err)
		}
		unlock(t, k)
	})
}

func TestInvariant4DeletedOrStolenIsToldWithinAThirdOfTheLease(t *testing.T) {
	for name, hurt := range map[string]func(*embedded){
		"deleted": func(s *embedded) { s.Del("lock:k") },
		"stolen": func(s *embedded) {
			s.Del("lock:k")
			s.HSet("lock:k", "stranger", "1")
		},
		"flushed": func(s *embedded) { s.FlushAll() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				k := take(t, background, l, "k")
				time.Sleep(61 * time.Second)
				hurt(s)
				began := time.Now()
				at, cause := endOf(k.Context())
				wantErr(t, cause, core.ErrLost)
				wantTime(t, "loss", at.Sub(began), 0, lease/3)
				n := s.scripts()
				time.Sleep(time.Hour)
				if s.scripts() != n {
					t.Error("a lost lock is still renewed")
				}
				wantErr(t, k.Refresh(background), core.ErrLost)
				_, err := k.Count(background)
				wantErr(t, err, core.ErrLost)
				wantErr(t, k.Unlock(background), core.ErrLost)
			})
		})
	}
}

func TestCountAndTTLNoticeALoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k")
		if ttl, err := k.TTL(background); ttl != lease || err != nil {
			t.Errorf("TTL %v, %v", ttl, err)
		}
		next := start(background, l, "k")
		s.Del("lock:k")
		_, err := k.TTL(background)
		wantErr(t, err, core.ErrLost)
		wantErr(t, context.Cause(k.Context()), core.ErrLost)
		wantErr(t, k.Unlock(background), core.ErrLost)
		isServed(t, "the next call of the process", next, prompt)
	})
}

// A lease that ended for its holder is given back to Redis.
// Taken out, a renewal that arrived unanswered keeps the lock for nobody, one more
// lease. Tried: this test then fails with "the lock "k" is still in Redis".
func TestLateRenewalDoesNotKeepALostLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Lease(3 * time.Second))
		k := take(t, background, l, "k")
		// Renewals reach the server just before the lease ends there, unanswered.
		s.failAll(func(s *embedded, p *peer, cmd string, args []string) bool {
			time.Sleep(1900 * time.Millisecond)
			return loseReply(s, p, cmd, args)
		}, renew)
		_, cause := endOf(k.Context())
		wantErr(t, cause, core.ErrLost)
		time.Sleep(1500 * time.Millisecond)
		s.isFree("k")
		if err := k.Unlock(background); !errors.Is(err, core.ErrLost) {
			t.Errorf("Unlock: %v", err)
		}
		s.heal()
	})
}
