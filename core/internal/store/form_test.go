//go:build go1.25

package store_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// formOf is claimOf in a form.
func (w *world) formOf(hold string, form store.Form) *store.Claim {
	c := w.claimOf(hold)
	c.Form = form
	return c
}

// gets has a claim of one that was told, or may have been: it confirms.
func (w *world) takeAll(t *testing.T, claims ...*store.Claim) {
	t.Helper()
	for _, c := range claims {
		w.take(t, c)
		time.Sleep(ms)
	}
}

func (w *world) refused(t *testing.T, c *store.Claim) {
	t.Helper()
	if _, err := w.Acquire(background, c); !errors.As(err, new(*store.Busy)) {
		t.Errorf("%s: %v, want busy", c.Hold, err)
	}
}

// holders are how many hold the lock.
func (w *world) holders(t *testing.T) int { t.Helper(); return len(w.state(t).Holders) }

// Calls go together as their forms allow, in order of arrival.
func TestFormsGoTogether(t *testing.T) {
	exclusive, shared := store.Exclusive, store.Shared
	two, three := store.Permits(2), store.Permits(3)
	for what, tc := range map[string]struct {
		holds []store.Form // that have the lock
		comes store.Form
		goes  bool // together
	}{
		"sharers":                       {[]store.Form{shared, shared}, shared, true},
		"exclusive beside a sharer":     {[]store.Form{shared}, exclusive, false},
		"sharer beside an exclusive":    {[]store.Form{exclusive}, shared, false},
		"second of two permits":         {[]store.Form{two}, two, true},
		"third of two permits":          {[]store.Form{two, two}, two, false},
		"third, of a larger number":     {[]store.Form{two, two}, three, true},
		"permit beside a sharer":        {[]store.Form{shared}, three, false},
		"sharer beside a permit":        {[]store.Form{three}, shared, false},
		"permit beside an exclusive":    {[]store.Form{exclusive}, three, false},
		"exclusive beside a permit":     {[]store.Form{three}, exclusive, false},
		"third beside a larger number":  {[]store.Form{three, three}, two, false},
		"second beside a larger number": {[]store.Form{three}, two, true},
	} {
		t.Run(what, func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *world) {
				w.hears("q")
				var claims []*store.Claim
				for i, form := range tc.holds {
					claims = append(claims, w.formOf("p:"+itoa(int64(i)), form))
				}
				w.takeAll(t, claims...)
				comes := w.formOf("q:1", tc.comes)
				if tc.goes {
					w.take(t, comes)
					return
				}
				w.waits(t, comes)
				for i, c := range claims {
					if tc.comes.Permits() == 0 && i < len(claims)-1 {
						w.release(t, releaseOf(c))
						w.refused(t, comes)
					}
				}
				w.release(t, releaseOf(claims[len(claims)-1]))
				w.take(t, comes)
			})
		})
	}
}

// Who shares waits behind an exclusive call that waits; neighbours that share are granted
// the lock together.
func TestOrderOfForms(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		p, q := w.hears("p"), w.hears("q")
		first := w.formOf("p:1", store.Shared)
		w.take(t, first)
		writer := w.claimOf("q:1")
		w.waits(t, writer)
		readers := []*store.Claim{w.formOf("p:2", store.Shared), w.formOf("q:3", store.Shared), w.formOf("p:4", store.Shared)}
		for _, r := range readers {
			w.waits(t, r)
		}
		w.waits(t, w.claimOf("p:5"))
		w.waits(t, w.formOf("p:6", store.Shared))
		w.wantQueue(t, "q:1 0s, p:2|s 1ms, q:3|s 2ms, p:4|s 3ms, p:5 4ms, p:6|s 5ms")
		w.refused(t, &store.Claim{Holding: store.Holding{Name: name, Owner: "p:7", Hold: "p:7"}, Terms: store.Terms{Form: store.Shared, Lease: time.Second}})

		w.release(t, releaseOf(first)) // to the writer
		if got := w.state(t); got.Owner != "q:1" || got.Form != store.Exclusive {
			t.Errorf("the lock is %+v", got)
		}
		w.take(t, writer)
		w.release(t, releaseOf(writer))
		if got := w.holders(t); got != 3 {
			t.Errorf("%d share the lock, want the three that waited side by side", got)
		}
		w.wantQueue(t, "p:5 4ms, p:6|s 5ms")
		synctest.Wait()
		if len(p.heard) == 0 || len(q.heard) == 0 {
			t.Errorf("p hears %q, q hears %q", p.heard, q.heard)
		}
	})
}

// Who waits with an owner that has the lock meanwhile enters it: being granted it would replace
// that holder.
func TestOwnerThatWaitsTwice(t *testing.T) {
	for _, form := range []store.Form{store.Shared, store.Permits(2)} {
		t.Run(form.Label(), func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *world) {
				w.hears("p")
				q := w.hears("q")
				one, two := w.formOf("p:1", form), w.formOf("p:2", form)
				w.takeAll(t, one, two)
				alone := w.claimOf("p:3")
				w.waits(t, alone)
				a, b := w.formOf("p:4", form), w.formOf("q:5", form)
				a.Owner, b.Owner = "job", "job"
				w.waits(t, a)
				w.waits(t, b)
				w.release(t, releaseOf(alone)) // all that it kept out go together
				w.release(t, releaseOf(one))
				w.release(t, releaseOf(two))
				first := w.take(t, a)
				synctest.Wait()
				if !slices.Contains(q.heard, "open") || len(slices.Compact(q.heard)) > 1 {
					t.Errorf("q hears %q", q.heard)
				}
				second := w.take(t, b)
				if first.Token != second.Token || !first.Outermost || second.Outermost {
					t.Errorf("%+v, then %+v", first, second)
				}
				w.release(t, releaseOf(b))
				if got := w.state(t); len(got.Holders) != 1 {
					t.Errorf("after the entry has ended the lock is %+v", got)
				}
			})
		})
	}
}

// Each holder has a lease of its own: one that died is in the way of others for no longer.
func TestHoldersEndByThemselves(t *testing.T) {
	for what, form := range map[string]store.Form{"shared": store.Shared, "permits": store.Permits(2)} {
		t.Run(what, func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *world) {
				w.hears("p")
				short, long := w.formOf("p:1", form), w.formOf("p:2", form)
				short.Lease = time.Second
				dead := w.take(t, short)
				g := w.take(t, long)
				third := w.formOf("p:3", store.Permits(2))
				w.refused(t, third)
				time.Sleep(time.Second)
				if held, _, err := w.Refresh(background, store.Renew{Name: name, Owner: "p:1", Token: dead.Token, Lease: time.Second}); held || err != nil {
					t.Errorf("renewed a dead holder: %v, %v", held, err)
				}
				if got := w.holders(t); got != 1 {
					t.Errorf("%d hold the lock, one is dead", got)
				}
				if form.Permits() > 0 {
					w.take(t, third)
					w.release(t, releaseOf(third))
				}
				time.Sleep(28 * time.Second)
				if held, _, err := w.Refresh(background, store.Renew{Name: name, Owner: "p:2", Token: g.Token, Lease: 10 * time.Second}); !held || err != nil {
					t.Errorf("not renewed: %v, %v", held, err)
				}
				time.Sleep(10*time.Second - ms)
				writer := w.claimOf("q:1")
				w.refused(t, writer)
				time.Sleep(ms)
				w.take(t, writer)
			})
		})
	}
}

// Who asks for a lock that has no room need not look at each of its holders, and still finds it
// free when the first of them ends.
func TestHoldersThatWereLookedThrough(t *testing.T) {
	for what, tc := range map[string]struct {
		lease time.Duration
		first store.Form // who asks before the short one comes; none: after it
	}{
		"one with a short lease":            {300 * time.Millisecond, store.Exclusive},
		"one with a longer lease":           {1500 * time.Millisecond, store.Exclusive},
		"one that comes when all was full":  {300 * time.Millisecond, store.Permits(1)},
		"a long one that comes when it was": {3 * time.Second, store.Permits(1)},
	} {
		t.Run(what, func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *world) {
				w.take(t, w.formOf("p:1", store.Permits(2)))
				if tc.first != store.Exclusive {
					first := w.formOf("p:2", tc.first)
					first.Wait = store.NotWaiting
					w.refused(t, first)
				}
				short := w.formOf("p:3", store.Permits(2))
				short.Lease = tc.lease
				w.take(t, short)
				began := time.Now()
				next := w.formOf("p:4", store.Permits(2))
				next.Wait = store.NotWaiting
				time.Sleep(ms / 2) // the time that is left is rounded up
				w.refused(t, next)
				for time.Sleep(50*ms - ms/2); ; time.Sleep(50 * ms) {
					if _, err := w.Acquire(background, next); err == nil {
						break
					}
				}
				if got := time.Since(began); got != tc.lease {
					t.Errorf("there is room after %v, want %v", got, tc.lease)
				}
			})
		})
	}
}

// The lock lasts in Redis as long as the last of its holders: others than ours look at that.
func TestExpiryOfALockOfSeveral(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		lasts := func(want time.Duration) {
			t.Helper()
			if got := w.state(t).TTL; got != want {
				t.Errorf("the lock lasts %v, want %v", got, want)
			}
		}
		long, short := w.formOf("p:1", store.Shared), w.formOf("p:2", store.Shared)
		long.Lease, short.Lease = time.Minute, time.Second
		w.take(t, long)
		w.take(t, short)
		lasts(time.Minute)
		w.release(t, releaseOf(long))
		lasts(time.Second)
		time.Sleep(time.Second)
		lasts(0)
	})
}

// An owner has one record, with a hold for each entry, however often it is sent.
func TestEntriesOfAHolder(t *testing.T) {
	for what, form := range map[string]store.Form{"shared": store.Shared, "permits": store.Permits(1)} {
		t.Run(what, func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *world) {
				w.hears("q")
				outer := w.formOf("p:1", form)
				g := w.take(t, outer)
				inner := w.enter("p:2", "p:1", g)
				inner.Form = form
				w.waits(t, w.claimOf("q:1")) // is passed by
				for _, c := range []*store.Claim{outer, inner, inner} {
					if e := w.take(t, c); e.Token != g.Token || e.Outermost != (c == outer) {
						t.Errorf("%s entered %+v", c.Hold, e)
					}
				}
				if s := w.state(t); s.Holds != 2 || s.Owner != "p:1" {
					t.Errorf("the lock is %+v", s)
				}
				for i, want := range []store.Released{{Found: true}, {}, {Found: true, QueueIsNext: true}, {}} {
					c := []*store.Claim{outer, outer, inner, inner}[i]
					if got := w.release(t, releaseOf(c)); got != want {
						t.Errorf("release %d: %+v, want %+v", i, got, want)
					}
				}
				gone := w.enter("p:3", "p:1", g)
				gone.Form = form
				if _, err := w.Acquire(background, gone); !errors.Is(err, store.ErrGone) {
					t.Errorf("entered a lock that is gone: %v", err)
				}
			})
		})
	}
}

// A re-entry with a shorter lease takes nothing from a grant that is not renewed yet: the outer
// holder believes in it.
func TestReentryCutsNoGrant(t *testing.T) {
	for what, form := range map[string]store.Form{"shared": store.Shared, "permits": store.Permits(1)} {
		t.Run(what, func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *world) {
				w.hears("q")
				first := w.claimOf("p:1")
				w.take(t, first)
				w.waits(t, w.formOf("q:1", form))
				w.release(t, releaseOf(first)) // to q
				inner := w.formOf("q:2", form)
				inner.Owner, inner.Lease = "q:1", 100*ms
				w.take(t, inner)
				time.Sleep(store.GrantLease - ms)
				w.refused(t, w.claimOf("p:2"))
				time.Sleep(ms)
				w.take(t, w.claimOf("p:2"))
			})
		})
	}
}

// An owner does not wait for itself.
func TestNoUpgrade(t *testing.T) {
	for _, tc := range []struct {
		held, wanted store.Form
		upgrade      bool
	}{
		{store.Shared, store.Exclusive, true},
		{store.Shared, store.Permits(2), true},
		{store.Permits(2), store.Exclusive, true},
		{store.Permits(2), store.Shared, true},
		{store.Permits(2), store.Permits(1), false},
		{store.Exclusive, store.Shared, false},
		{store.Exclusive, store.Permits(2), false},
	} {
		in(t, 1, func(t *testing.T, w *world) {
			held, wanted := w.formOf("p:1", tc.held), w.formOf("q:1", tc.wanted)
			held.Owner, wanted.Owner = "o", "o"
			w.take(t, held)
			_, err := w.Acquire(background, wanted)
			if errors.Is(err, store.ErrUpgrade) != tc.upgrade || !tc.upgrade && err != nil {
				t.Errorf("%v under %v: %v", tc.wanted, tc.held, err)
			}
			if tc.held.Includes(tc.wanted) == tc.upgrade {
				t.Errorf("%v includes %v: %v", tc.held, tc.wanted, !tc.upgrade)
			}
		})
	}
}

// Whoever leaves lets those in for whom it was in the way.
func TestLeavingCallLetsOthersIn(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		p := w.hears("p")
		w.hears("q")
		w.take(t, w.formOf("p:1", store.Shared))
		writer, reader := w.claimOf("q:1"), w.formOf("p:2", store.Shared)
		w.waits(t, writer)
		w.waits(t, reader)
		w.release(t, releaseOf(writer))
		if got := w.holders(t); got != 2 {
			t.Errorf("%d share the lock, want two", got)
		}
		synctest.Wait()
		if len(p.heard) != 1 {
			t.Errorf("p hears %q", p.heard)
		}
	})
}

// A claim in a form that was given up is refused when it arrives late.
func TestTombstoneOfAForm(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		c := w.formOf("p:1", store.Shared)
		r := releaseOf(c)
		r.MayArrive = true
		if got := w.release(t, r); got.Found {
			t.Errorf("released: %+v", got)
		}
		if _, err := w.Acquire(background, c); !errors.Is(err, store.ErrGone) {
			t.Errorf("took it: %v", err)
		}
	})
}

// A process that is dead, and was to be the next, does not stay in the way of those behind it.
func TestDeadWriterIsNotInTheWay(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		w.hears("p")
		w.take(t, w.formOf("p:1", store.Shared))
		w.waits(t, w.claimOf("dead:1"))
		reader := w.formOf("p:2", store.Shared)
		w.waits(t, reader)
		time.Sleep(1100 * ms)
		w.take(t, reader)
		w.wantQueue(t, "")
	})
}

// crowd has many waits enter the queue, each of a process of its own, which does not subscribe.
func (w *world) crowd(t *testing.T, form store.Form) {
	t.Helper()
	for i := range 150 {
		w.waits(t, w.formOf("deaf"+strconv.Itoa(i)+":1", form))
	}
}

// However many dead processes wait before one that lives, a release grants it the lock.
func TestDeadCrowdIsNotInTheWay(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		w.hears("p")
		first := w.claimOf("p:1")
		w.take(t, first)
		w.crowd(t, store.Exclusive)
		time.Sleep(time.Second)
		w.waits(t, w.claimOf("p:2"))
		w.release(t, releaseOf(first))
		w.wantHash(t, w.inLock(t), "mode=xT 0+, p:2=1")
		w.wantQueue(t, "")
	})
}

// One command grants the lock to so many at most, and passes over so many that are about to
// subscribe: it must not keep Redis from others.
func TestPassingOnIsBounded(t *testing.T) {
	for what, tc := range map[string]struct {
		hears  string
		passed bool
		queue  int
	}{"all hear": {"deaf", true, 51}, "the last hears": {"p", false, 151}} {
		t.Run(what, func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *world) {
				w.hears(tc.hears)
				first := w.claimOf("p:1")
				w.take(t, first)
				for i := range 150 {
					w.waits(t, w.formOf("deaf:"+strconv.Itoa(i), store.Shared))
				}
				w.waits(t, w.formOf("p:2", store.Shared))
				if got := w.release(t, releaseOf(first)); got.QueueIsNext != tc.passed {
					t.Errorf("released: %+v", got)
				}
				if got := strings.Count(w.queue(), ", ") + 1; got != tc.queue {
					t.Errorf("%d are in the queue, want %d", got, tc.queue)
				}
			})
		})
	}
}

// A reader that comes in beside another does not go on waiting, however many were in the queue: it
// would be granted the lock once more, in place of what it has, and a writer would come in after that.
func TestReaderThatHasTheLockDoesNotWait(t *testing.T) {
	for what, tc := range map[string]struct {
		form store.Form
		age  time.Duration
	}{"past dead processes": {store.Exclusive, time.Second}, "past new ones": {store.Shared, 0}} {
		t.Run(what, func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *world) {
				w.hears("p")
				others := []*store.Claim{w.formOf("p:1", store.Shared), w.formOf("p:2", store.Shared)}
				w.takeAll(t, others...)
				left := w.claimOf("p:9")
				w.waits(t, left)
				w.crowd(t, tc.form)
				w.release(t, releaseOf(left))
				time.Sleep(tc.age)
				w.take(t, w.formOf("p:3", store.Shared))
				writer := w.claimOf("p:4")
				w.waits(t, writer)
				time.Sleep(time.Second)
				for _, c := range others {
					w.release(t, releaseOf(c))
				}
				time.Sleep(store.GrantLease)
				w.refused(t, writer)
			})
		})
	}
}

// Of several holders one can be put out.
func TestForceOneHolder(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		w.takeAll(t, w.formOf("p:1", store.Shared), w.formOf("p:2", store.Shared))
		one, nobody := "p:1", ""
		for i, tc := range []struct {
			owner *string
			freed bool
			left  int
		}{{&nobody, false, 2}, {&one, true, 1}, {&one, false, 1}, {nil, true, 0}} {
			freed, err := w.Force(background, name, tc.owner)
			if freed != tc.freed || err != nil || w.holders(t) != tc.left {
				t.Errorf("%d: %v, %v; %d are left", i, freed, err, w.holders(t))
			}
		}
		w.take(t, w.formOf("p:1", store.Shared))
		if freed, err := w.Force(background, name, &one); !freed || err != nil || w.redis[0].Exists("lock:k") {
			t.Errorf("the last one: %v, %v; the lock is left: %v", freed, err, w.redis[0].Exists("lock:k"))
		}
	})
}

// A release of a resumed lock that comes after its lease ends the lock if nobody has resumed it since. Whoever has asked
// for the lock meanwhile does not change that. Work that has failed is tried again, if not for good: that leaves no window.
func TestLateReleaseOfAResumedLock(t *testing.T) {
	for what, tc := range map[string]struct {
		work store.Work
		want store.Status
	}{
		"done":            {store.Done, store.StatusDedupWindow},
		"failed":          {store.Failed, store.StatusParked},
		"failed for good": {store.FailedForGood, store.StatusFree},
	} {
		in(t, 1, func(t *testing.T, w *world) {
			c := w.claim()
			c.Window = time.Minute
			g := w.take(t, c)
			h := store.HandOver{Holding: c.Holding, Terms: store.Terms{Lease: c.Lease}, Token: g.Token, LastToken: g.Token, ID: "id", Ticket: "ticket", TTL: time.Minute}
			if err := w.HandOver(background, h); err != nil {
				t.Fatal(err)
			}
			resumed := w.claimOf("p:2")
			resumed.Ticket, resumed.Lease = h.Ticket, time.Second
			g = w.take(t, resumed)
			time.Sleep(2 * time.Second)
			w.waits(t, w.claimOf("q:1"))
			r := releaseOf(resumed)
			r.Terms, r.Token, r.LastToken, r.Work = g.Terms, g.Token, g.Token, tc.work
			w.release(t, r)
			if s := w.state(t); s.Status != tc.want {
				t.Errorf("%s: %+v", what, s)
			}
		})
	}
}

// A lock that was never parked is held as before when that is taken back: a fixed lease ends when it would have.
func TestFixedLeaseOfALockThatWasNotParked(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		c := w.claim()
		c.Lease, c.Fixed = 2*time.Second, true
		g := w.take(t, c)
		h := store.HandOver{Holding: c.Holding, Terms: store.Terms{Lease: c.Lease, Fixed: true}, Token: g.Token, LastToken: g.Token, ID: "id", Ticket: "ticket", TTL: time.Minute}
		time.Sleep(time.Second)
		if _, err := w.TakeBack(background, h, c.Lease); err != nil {
			t.Fatal(err)
		}
		if s := w.state(t); s.TTL > time.Second {
			t.Errorf("%+v", s)
		}
	})
}

// No lock is parked that Redisson has entered.
func TestNoHandOverOfALockThatRedissonHasEntered(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		c := w.claim()
		g := w.take(t, c)
		if _, err := w.redis[0].HIncrBy("lock:k", c.Owner, 1); err != nil {
			t.Fatal(err)
		}
		h := store.HandOver{Holding: c.Holding, Terms: store.Terms{Lease: c.Lease}, Token: g.Token, LastToken: g.Token, ID: "id", Ticket: "ticket", TTL: time.Minute}
		if err := w.HandOver(background, h); err != store.ErrOthers {
			t.Error(err)
		}
		w.redis[0].HIncrBy("lock:k", c.Owner, -1)
		if err := w.HandOver(background, h); err != nil {
			t.Error(err)
		}
	})
}
