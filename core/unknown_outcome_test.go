package core_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// lossy are the ways in which an exchange can end without an answer.
var lossy = map[string]fault{
	"reply lost":      loseReply,
	"request lost":    loseRequest,
	"reply late":      lateReply(4 * time.Second),
	"request late":    lateRequest(4 * time.Second),
	"never answered":  hang,
	"connection slow": lateReply(1900 * time.Millisecond),
}

// copies is how often an acquisition is sent that goes wrong once.
func copies(lossy string) int {
	if lossy == "reply lost" || lossy == "request lost" {
		return 2
	}
	return 1
}

func TestInvariant3FreshAcquisitionWithUnknownOutcomeLeavesNothing(t *testing.T) {
	for name, f := range lossy {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				s.fail(acquire, f)
				began := time.Now()
				k, err := l.Lock(background, "k")
				if n, want := len(s.commands(acquire)), copies(name); n != want {
					t.Errorf("sent %d times; only a broken connection is reason to send it again", n)
				}
				if name == "connection slow" || copies(name) == 2 {
					if err != nil {
						t.Fatal(err)
					}
					unlock(t, k)
					s.isFree("k")
					return
				}
				wantErr(t, err, core.ErrUnavailable)
				wantNot(t, err, core.ErrNotAcquired)
				wantTime(t, "Lock returned", time.Since(began), 0, 2*time.Second)
				time.Sleep(time.Second)
				s.isFree("k")
				time.Sleep(9 * time.Second) // the late one arrives
				s.isFree("k")
			})
		})
	}
}

func TestInvariant3ReentryWithUnknownOutcomeCountsOnce(t *testing.T) {
	for name, f := range lossy {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				outer := take(t, background, l, "k")
				s.fail(acquire, f)
				inner, err := l.Lock(outer.Context(), "k")
				if name == "connection slow" || copies(name) == 2 {
					if err != nil {
						t.Fatal(err)
					}
					if got := s.held("k"); got != outer.Owner()+"=2" {
						t.Errorf("Redis shows %q; want two holds", got)
					}
					unlock(t, inner, outer)
					s.isFree("k")
					return
				}
				wantErr(t, err, core.ErrUnavailable)
				time.Sleep(10 * time.Second)
				if got := s.held("k"); got != outer.Owner()+"=1" {
					t.Errorf("Redis shows %q; want the outer hold", got)
				}
				again := take(t, outer.Context(), l, "k")
				if got := s.held("k"); got != outer.Owner()+"=2" {
					t.Errorf("Redis shows %q", got)
				}
				unlock(t, again, outer)
				s.isFree("k")
			})
		})
	}
}

func TestInvariant3ReleaseWithUnknownOutcomeCountsOnce(t *testing.T) {
	for name, f := range lossy {
		for holds := 1; holds <= 2; holds++ {
			t.Run(fmt.Sprintf("%s, %d holds", name, holds), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					l := s.locker()
					outer := take(t, background, l, "k")
					k := outer
					if holds == 2 {
						k = take(t, outer.Context(), l, "k")
					}
					s.fail(release, f)
					began := time.Now()
					err := k.Unlock(background)
					if name == "reply lost" || name == "request lost" || name == "connection slow" {
						if err != nil {
							t.Errorf("Unlock: %v; a broken connection is tried again", err)
						}
					} else {
						wantErr(t, err, core.ErrUnavailable)
					}
					wantTime(t, "Unlock returned", time.Since(began), 0, 2*time.Second)
					wantErr(t, k.Unlock(background), core.ErrNotHeld)
					time.Sleep(10 * time.Second)
					if holds == 2 {
						if got := s.held("k"); got != outer.Owner()+"=1" {
							t.Errorf("Redis shows %q; want one hold", got)
						}
						unlock(t, outer)
					}
					s.isFree("k")
				})
			})
		}
	}
}

func TestReleaseThatFailsIsRepeatedWithinASecondOfRedisAnswering(t *testing.T) {
	for name, hurt := range map[string]func(*embedded){
		"unreachable":   (*embedded).outage,
		"server errors": func(s *embedded) { s.failAll(refuse("LOADING Redis is loading"), release) },
		"silent":        func(s *embedded) { s.failAll(hang, release) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				if name == "silent" {
				}
				l := s.locker()
				k := take(t, background, l, "k")
				hurt(s)
				wantErr(t, k.Unlock(background), core.ErrUnavailable)
				time.Sleep(15 * time.Second)
				if s.held("k") == "" {
					t.Fatal("released in an outage")
				}
				s.heal()
				time.Sleep(time.Second)
				s.isFree("k")
			})
		})
	}
}

// The lock ends with its lease, and nobody waits longer for it than that.
func TestReleaseThatNeverSucceedsEndsWithTheLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		k := take(t, background, a, "k")
		time.Sleep(5 * time.Second)
		s.failAll(refuse("NOPERM"), release)
		waiting := start(background, b, "k")
		wantErr(t, k.Unlock(background), core.ErrUnavailable)
		o := <-waiting
		if o.err != nil {
			t.Fatal(o.err)
		}
		wantTime(t, "the next was served", o.took, 25*time.Second, 25*time.Second+prompt)
		n := len(s.commands(renew))
		time.Sleep(10 * time.Minute)
		if got := s.held("k"); got != o.lock.Owner()+"=1" {
			t.Errorf("Redis shows %q", got)
		}
		if len(s.commands(renew)) == n {
			t.Error("the next holder is not renewed")
		}
		n = len(s.commands(release))
		time.Sleep(time.Minute)
		if len(s.commands(release)) > n {
			t.Error("the release is still repeated")
		}
		s.heal()
		unlock(t, o.lock)
	})
}

// An acquisition that is sent twice counts once, and so does a release.
// Taken out of acquire.lua, a re-sent re-entry counts two holds and its Unlock ends
// one: the lock stays taken for nobody. Tried: this test then fails with "Redis
// shows …=4; want two holds".
func TestInvariant3EveryScriptRunTwiceCountsOnce(t *testing.T) {
	twice := func(s *embedded, p *peer, cmd string, args []string) bool {
		s.pass(nowhere(), cmd, args)
		return false
	}
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		s.failAll(twice, acquire, renew)
		outer := take(t, background, l, "k", core.KeepFor(time.Hour))
		inner := take(t, outer.Context(), l, "k")
		if got := s.held("k"); got != outer.Owner()+"=2" {
			t.Errorf("Redis shows %s; want two holds", got)
		}
		time.Sleep(time.Minute)
		s.failAll(func(s *embedded, p *peer, cmd string, args []string) bool {
			s.pass(p, cmd, args)
			s.pass(nowhere(), cmd, args)
			return true
		}, release)
		unlock(t, inner)
		if got := s.held("k"); got != outer.Owner()+"=1" {
			t.Errorf("Redis shows %s; want one hold", got)
		}
		unlock(t, outer)
		inWindow(t, l, "k", 59*time.Minute)
	})
}

func TestTombstonesEnd(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		s.failAll(loseRequest, acquire)
		_, err := l.Lock(background, "k")
		wantErr(t, err, core.ErrUnavailable)
		s.heal()
		time.Sleep(time.Second)
		if len(s.Keys()) != 1 {
			t.Errorf("keys: %v; want a tombstone", s.Keys())
		}
		time.Sleep(time.Minute)
		if len(s.Keys()) != 0 {
			t.Errorf("keys that live on: %v", s.Keys())
		}
	})
}

// Releases that are repeated in the background may reach Redis one by one.
// Taken out, the first of them gives the lock a new lease, for nobody.
func TestLateReleaseOfOneHoldDoesNotProlongTheLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker(core.Lease(3 * time.Second))
		outer := take(t, background, l, "k")
		inner := take(t, outer.Context(), l, "k")
		holds := map[string]bool{} // that the server refuses to end
		listed := strings.Fields(strings.TrimSuffix(s.HGet("lock:k", "mode"), "+"))[2:]
		for _, hold := range listed {
			holds[hold] = true
		}
		var mu sync.Mutex
		s.failAll(func(_ *embedded, p *peer, _ string, args []string) bool {
			mu.Lock()
			defer mu.Unlock()
			if slices.ContainsFunc(args, func(arg string) bool { return holds[arg] }) {
				p.WriteError("OOM")
				return true
			}
			return false
		}, release)
		wantErr(t, inner.Unlock(background), core.ErrUnavailable)
		time.Sleep(150 * time.Millisecond) // or their releases would travel together
		wantErr(t, outer.Unlock(background), core.ErrUnavailable)
		time.Sleep(1850 * time.Millisecond)
		mu.Lock()
		delete(holds, listed[1]) // the inner one
		mu.Unlock()
		if len(holds) != 1 {
			t.Fatalf("%d holds", len(holds))
		}
		time.Sleep(1100 * time.Millisecond)
		s.isFree("k")
	})
}
