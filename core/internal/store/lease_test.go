package store_test

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// What has ended once does not end another hold, and a lock whose outermost hold has ended
// is still that of the others.
func TestOutermostHoldEndsFirst(t *testing.T) {
	for owner, last := range map[string]string{
		"p:1": "mode=xT 30000 - p:2+, p:1=1",
		"o":   "mode=xT 30000 - p:2+, o=1",
	} {
		in(t, 1, func(t *testing.T, w *world) {
			outer := w.claimOf("p:1")
			outer.Owner = owner
			g := w.take(t, outer)
			inner := w.enter("p:2", owner, g)
			w.take(t, inner)
			for i, want := range []store.Released{{Found: true}, {}} {
				if got := w.release(t, releaseOf(outer)); got != want {
					t.Errorf("release %d of the outermost: %+v", i, got)
				}
				w.wantHash(t, g.Token, last)
			}
			w.waits(t, w.claimOf("q:1"))
			if got := w.release(t, releaseOf(inner)); !got.Found || w.redis[0].Exists("lock:k") {
				t.Errorf("the last: %+v, leaves %s", got, w.hash(g.Token))
			}
		})
	}
}

// A hold that ends gives those that remain a lease, but a fixed one is not prolonged.
func TestLeaseAfterOneOfSeveralHolds(t *testing.T) {
	for fixed, want := range map[bool]time.Duration{false: 2 * time.Second, true: time.Second} {
		for _, first := range []int{0, 1} {
			in(t, 1, func(t *testing.T, w *world) {
				outer := w.claimOf("p:1")
				outer.Lease, outer.Fixed = 2*time.Second, fixed
				g := w.take(t, outer)
				inner := w.enter("p:2", "p:1", g)
				if e := w.take(t, inner); e.Fixed != fixed || e.Lease != outer.Lease {
					t.Errorf("entered %+v", e)
				}
				time.Sleep(time.Second)
				w.release(t, releaseOf([]*store.Claim{outer, inner}[first]))
				if s := w.state(t); s.TTL != want || s.Holds != 1 {
					t.Errorf("fixed %v: %+v, want %v", fixed, s, want)
				}
			})
		}
	}
}

// After the clock of Redis was set back, a lock would last for long. What Redisson may have
// given longer is left.
func TestExpiryFarAway(t *testing.T) {
	for what, tc := range map[string]struct {
		then func(t *testing.T, w *world, c *store.Claim, g store.Acquired)
		want time.Duration
	}{
		"one hold": {func(*testing.T, *world, *store.Claim, store.Acquired) {}, 30 * time.Second},
		"two":      {func(t *testing.T, w *world, c *store.Claim, g store.Acquired) { w.take(t, w.enter("p:2", "p:1", g)) }, 30 * time.Second},
		"one, and one of Redisson's": {func(t *testing.T, w *world, c *store.Claim, g store.Acquired) {
			_, _ = w.redis[0].HIncrBy("lock:k", "p:1", 1)
		}, time.Hour},
		"two, and one of Redisson's": {func(t *testing.T, w *world, c *store.Claim, g store.Acquired) {
			w.take(t, w.enter("p:2", "p:1", g))
			_, _ = w.redis[0].HIncrBy("lock:k", "p:1", 1)
		}, time.Hour},
		"the outermost has ended, and one of Redisson's": {func(t *testing.T, w *world, c *store.Claim, g store.Acquired) {
			w.take(t, w.enter("p:2", "p:1", g))
			w.release(t, releaseOf(c))
			_, _ = w.redis[0].HIncrBy("lock:k", "p:1", 1)
		}, time.Hour},
		"the outermost has ended": {func(t *testing.T, w *world, c *store.Claim, g store.Acquired) {
			w.take(t, w.enter("p:2", "p:1", g))
			w.release(t, releaseOf(c))
		}, 30 * time.Second},
		"dedup window": {func(t *testing.T, w *world, c *store.Claim, g store.Acquired) {
			c.Window = 20 * time.Second
			w.redis[0].Del("lock:k")
			w.take(t, c)
			w.release(t, releaseOf(c))
		}, 20 * time.Second},
	} {
		in(t, 1, func(t *testing.T, w *world) {
			c := w.claimOf("p:1")
			tc.then(t, w, c, w.take(t, c))
			w.redis[0].SetTTL("lock:k", time.Hour)
			asked := time.Now()
			if b := w.waits(t, w.claimOf("q:1")); b.Until.Sub(asked) != tc.want {
				t.Errorf("%s: busy for %v", what, b.Until.Sub(asked))
			}
			if s := w.state(t); s.TTL != tc.want-ms {
				t.Errorf("%s: lasts %v", what, s.TTL)
			}
		})
	}
}

// A dedup window is earned by the outermost hold, also when others end later or never.
func TestWindowOfSeveralHolds(t *testing.T) {
	for work, want := range map[store.Work]struct {
		hash          string
		lasts, window time.Duration
	}{
		store.Done:   {"latchkey:keep=946684860000000 60000, mode=xT 30000 - p:2+, p:1=1", 59 * time.Second, 58 * time.Second},
		store.Failed: {"latchkey:keep=946684860000000 60000, mode=xT 30000 ! p:2+, p:1=1", 30 * time.Second, 0},
	} {
		in(t, 1, func(t *testing.T, w *world) {
			all := w.hears("")
			outer := w.claimOf("p:1")
			outer.Window = time.Minute
			g := w.take(t, outer)
			inner := w.enter("p:2", "p:1", g)
			w.take(t, inner)
			time.Sleep(time.Second)
			r := releaseOf(outer)
			r.Work = work
			w.release(t, r)
			w.wantHash(t, g.Token, want.hash)
			if s := w.state(t); s.TTL != want.lasts {
				t.Errorf("work %v: lasts %v", work, s.TTL)
			}
			all.want(t, "all")
			time.Sleep(time.Second)
			last := releaseOf(inner)
			last.Work = store.Failed // which is not the outermost
			got := w.release(t, last)
			if got.Heard = 0; got != (store.Released{Found: true}) {
				t.Errorf("work %v: released %+v", work, got)
			}
			all.want(t, "all", "all: 0")
			if s := w.state(t); (s.Status == store.StatusFree) != (work != store.Done) || s.TTL != want.window {
				t.Errorf("work %v: %+v", work, s)
			}
		})
	}
}

// A renewal shortens no lease that another hold, or a Redisson thread, may have given.
func TestRenewalOfALockWithOthers(t *testing.T) {
	for what, tc := range map[string]struct {
		then func(t *testing.T, w *world, g store.Acquired)
		held bool
		want time.Duration
	}{
		"alone":                         {func(*testing.T, *world, store.Acquired) {}, true, 2 * time.Second},
		"somebody waits, or has":        {func(t *testing.T, w *world, _ store.Acquired) { w.waits(t, polling(w.claimOf("q:1"))) }, true, 30 * time.Second},
		"a Redisson thread has entered": {func(_ *testing.T, w *world, _ store.Acquired) { _, _ = w.redis[0].HIncrBy("lock:k", "p:1", 1) }, true, 30 * time.Second},
		"the owner has gone": {func(_ *testing.T, w *world, _ store.Acquired) {
			w.redis[0].HSet("lock:k", "x:1", "1")
			w.redis[0].HDel("lock:k", "p:1")
		}, false, 30 * time.Second},
		"it has another token": {func(_ *testing.T, w *world, _ store.Acquired) { w.redis[0].HSet("lock:k", "mode", "x7") }, false, 30 * time.Second},
	} {
		in(t, 1, func(t *testing.T, w *world) {
			g := w.take(t, w.claimOf("p:1"))
			tc.then(t, w, g)
			w.redis[0].SetTTL("lock:k", 30*time.Second)
			held, _, err := w.Refresh(background, store.Renew{Name: name, Owner: "p:1", Token: g.Token, Lease: 2 * time.Second})
			if held != tc.held || err != nil || w.state(t).TTL != tc.want {
				t.Errorf("%s: %v, %v, lasts %v", what, held, err, w.state(t).TTL)
			}
		})
	}
}

// A claim that is sent again does not begin its window anew.
func TestWindowOfAClaimThatIsSentTwice(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		claim := func() *store.Claim {
			c := w.claimOf("p:1")
			c.Window = time.Minute
			return c
		}
		w.take(t, claim())
		window := w.redis[0].HGet("lock:k", "latchkey:keep")
		time.Sleep(time.Second)
		w.take(t, claim())
		if again := w.redis[0].HGet("lock:k", "latchkey:keep"); again != window || window == "" {
			t.Errorf("the window is %q, and was %q", again, window)
		}
	})
}

// Only the outermost hold decides about the window, also that of a chosen owner.
func TestWindowIsOfTheOutermostHold(t *testing.T) {
	for _, owner := range []string{"p:1", "o"} {
		in(t, 1, func(t *testing.T, w *world) {
			outer := w.claimOf("p:1")
			outer.Owner, outer.Window = owner, time.Minute
			inner := w.enter("p:2", owner, w.take(t, outer))
			w.take(t, inner)
			time.Sleep(time.Second)
			w.release(t, releaseOf(inner))
			if s := w.state(t); s.TTL != 30*time.Second {
				t.Errorf("owner %s: lasts %v after a re-entry", owner, s.TTL)
			}
			r := releaseOf(outer)
			r.Work = store.Failed
			if got := w.release(t, r); got != (store.Released{Found: true}) || w.state(t).Status != store.StatusFree {
				t.Errorf("owner %s: a failure leaves %+v", owner, got)
			}
		})
	}
}

// The lease that a Redisson thread has chosen outlasts what ours do with its lock: a call
// that enters by its owner and leaves, or one whose lock it enters.
func TestLeaseOfRedissonIsNotCut(t *testing.T) {
	for name, ours := range map[string]func(t *testing.T, w *world, c *store.Claim){
		"entered by ours": func(t *testing.T, w *world, c *store.Claim) {
			w.redis[0].HSet("lock:k", "java:1", "1")
			w.redis[0].SetTTL("lock:k", 10*time.Minute)
			w.take(t, c)
		},
		"enters ours": func(t *testing.T, w *world, c *store.Claim) {
			w.take(t, c)
			_, _ = w.redis[0].HIncrBy("lock:k", "java:1", 1)
			w.redis[0].SetTTL("lock:k", 10*time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *world) {
				c := w.claimOf("p:1")
				c.Owner = "java:1"
				ours(t, w, c)
				w.release(t, releaseOf(c))
				w.waits(t, w.claimOf("q:1"))
				if s := w.state(t); s.Holds != 1 || s.TTL < 9*time.Minute {
					t.Errorf("somebody waits, and it is %+v", s)
				}
			})
		})
	}
}

// A window that the outermost hold has earned outlasts a re-entry that goes on, whoever asks.
func TestEarnedWindowIsNotCut(t *testing.T) {
	for _, owner := range []string{"p:1", "job:p:1"} {
		t.Run(owner, func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *world) {
				outer := w.claimOf("p:1")
				outer.Owner, outer.Window = owner, time.Hour
				g := w.take(t, outer)
				w.take(t, w.enter("p:2", owner, g))
				w.release(t, releaseOf(outer))
				w.waits(t, w.claimOf("q:1"))
				if s := w.state(t); s.TTL != time.Hour-ms {
					t.Errorf("it ends in %v", s.TTL)
				}
			})
		})
	}
}
