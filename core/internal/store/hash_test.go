package store_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// claimOf is a claim of any process, which waits if the lock is busy.
func (w *world) claimOf(hold string) *store.Claim {
	return &store.Claim{Holding: store.Holding{Name: name, Owner: hold, Hold: hold}, Terms: store.Terms{Lease: 30 * time.Second}, Wait: store.Listening}
}

// waits has a claim wait for the lock, and is a millisecond later.
func (w *world) waits(t *testing.T, c *store.Claim) *store.Busy {
	t.Helper()
	var b *store.Busy
	if _, err := w.Acquire(background, c); !errors.As(err, &b) {
		t.Fatalf("%s does not wait: %v", c.Hold, err)
	}
	time.Sleep(time.Millisecond)
	return b
}

// enter is a claim of one more hold of an owner.
func (w *world) enter(hold, owner string, g store.Acquired) *store.Claim {
	c := w.claimOf(hold)
	c.Owner, c.Enter = owner, g.Token
	return c
}

// soleOf is a release of a lock of which no more is known than its one hold.
func soleOf(c *store.Claim, g store.Acquired) store.Release {
	r := releaseOf(c)
	r.Token, r.LastToken, r.Lease = g.Token, g.Token, c.Lease
	return r
}

// hash is the lock as it is in Redis, with T for a token.
func (w *world) hash(token int64) string {
	fields, _ := w.redis[0].HKeys("lock:k")
	for i, field := range fields {
		fields[i] = field + "=" + strings.ReplaceAll(w.redis[0].HGet("lock:k", field), itoa(token), "T")
	}
	slices.Sort(fields)
	return strings.Join(fields, ", ")
}

func (w *world) wantHash(t *testing.T, token int64, want string) {
	t.Helper()
	if got := w.hash(token); got != want {
		t.Errorf("the lock is %s\nwant %s", got, want)
	}
}

// Whatever is done with a lock, its hash has one form. Redisson counts by numbers: only the
// count of an owner may be one.
func TestFormOfALock(t *testing.T) {
	plain := func(w *world) *store.Claim { return w.claimOf("p:1") }
	with := func(change func(*store.Claim)) func(*world) *store.Claim {
		return func(w *world) *store.Claim {
			c := w.claimOf("p:1")
			change(c)
			return c
		}
	}
	short := with(func(c *store.Claim) { c.Lease = 900 * time.Millisecond })
	fixed := with(func(c *store.Claim) { c.Lease, c.Fixed = 2*time.Second, true })
	window := with(func(c *store.Claim) { c.Window = time.Minute })
	chosen := with(func(c *store.Claim) { c.Owner = "o" })
	waiter := func(change func(*store.Claim)) func(t *testing.T, w *world, first *store.Claim, g *store.Acquired) {
		return func(t *testing.T, w *world, first *store.Claim, g *store.Acquired) {
			next := w.claimOf("q:1")
			next.Wait = store.Polling
			change(next)
			w.waits(t, next)
			w.release(t, releaseOf(first))
			g.Token = w.inLock(t)
		}
	}
	confirmed := func(change func(*store.Claim)) func(t *testing.T, w *world, first *store.Claim, g *store.Acquired) {
		return func(t *testing.T, w *world, first *store.Claim, g *store.Acquired) {
			waiter(change)(t, w, first, g)
			c := w.claimOf("q:1")
			change(c)
			if again := w.take(t, c); !again.Outermost || again.Lease != c.Lease || again.TTL != c.Lease {
				t.Errorf("confirmed by %+v", again)
			}
		}
	}
	none := func(*store.Claim) {}
	renewed := func(lease time.Duration) func(*testing.T, *world, *store.Claim, *store.Acquired) {
		return func(t *testing.T, w *world, first *store.Claim, g *store.Acquired) {
			waiter(none)(t, w, first, g)
			if held, _, err := w.Refresh(background, store.Renew{Name: name, Owner: "q:1", Token: g.Token, Lease: lease, First: true}); !held || err != nil {
				t.Errorf("renewed: %v, %v", held, err)
			}
			if s := w.state(t); s.TTL != lease {
				t.Errorf("lasts %v", s.TTL)
			}
		}
	}
	for name, tc := range map[string]struct {
		claim func(*world) *store.Claim
		then  func(t *testing.T, w *world, first *store.Claim, g *store.Acquired)
		want  string
	}{
		"plain":              {claim: plain, want: "mode=xT, p:1=1"},
		"short lease":        {claim: short, want: "mode=xT 900, p:1=1"},
		"fixed lease":        {claim: fixed, want: "mode=xT -2000, p:1=1"},
		"window":             {claim: window, want: "latchkey:keep=946684860000000 60000, mode=xT+, p:1=1"},
		"chosen owner":       {claim: chosen, want: "mode=xT 30000 p:1+, o=1"},
		"sent twice":         {claim: chosen, then: func(t *testing.T, w *world, c *store.Claim, _ *store.Acquired) { w.take(t, c) }, want: "mode=xT 30000 p:1+, o=1"},
		"re-entry":           {claim: short, then: enterOnce("p:1"), want: "mode=xT 900 p:1 p:2+, p:1=2"},
		"re-entry of chosen": {claim: chosen, then: enterOnce("o"), want: "mode=xT 30000 p:1 p:2+, o=2"},
		"re-entry that ended": {claim: plain, then: func(t *testing.T, w *world, c *store.Claim, g *store.Acquired) {
			enterOnce("p:1")(t, w, c, g)
			w.release(t, releaseOf(w.enter("p:2", "p:1", *g)))
		}, want: "mode=xT+, p:1=1"},
		"somebody waits": {claim: short, then: func(t *testing.T, w *world, _ *store.Claim, _ *store.Acquired) { w.waits(t, w.claimOf("q:1")) }, want: "mode=xT 900+, p:1=1"},
		"window that stands": {claim: window, then: func(t *testing.T, w *world, c *store.Claim, _ *store.Acquired) {
			time.Sleep(time.Second)
			w.release(t, releaseOf(c))
		}, want: "mode=w59000"},
		"granted":                     {claim: plain, then: waiter(none), want: "mode=xT 0+, q:1=1"},
		"granted to a chosen owner":   {claim: plain, then: waiter(func(c *store.Claim) { c.Owner = "o" }), want: "mode=xT 0 q:1+, o=1"},
		"granted and renewed":         {claim: plain, then: renewed(30 * time.Second), want: "mode=xT 30000+, q:1=1"},
		"granted and renewed, short":  {claim: plain, then: renewed(2 * time.Second), want: "mode=xT 2000+, q:1=1"},
		"granted and confirmed":       {claim: plain, then: confirmed(none), want: "mode=xT+, q:1=1"},
		"granted and confirmed fixed": {claim: plain, then: confirmed(func(c *store.Claim) { c.Lease, c.Fixed = time.Minute, true }), want: "mode=xT -60000+, q:1=1"},
		"granted and confirmed with a window": {claim: plain, then: confirmed(func(c *store.Claim) { c.Window = time.Minute }),
			want: "latchkey:keep=946684860001000 60000, mode=xT+, q:1=1"},
		"taken by Redisson, entered": {claim: func(w *world) *store.Claim {
			w.redis[0].HSet("lock:k", "o", "1")
			c := w.claimOf("p:1")
			c.Owner = "o"
			return c
		}, want: "mode=xT 30000 - p:1+, o=2"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *world) {
				c := tc.claim(w)
				g := w.take(t, c)
				if tc.then != nil {
					tc.then(t, w, c, &g)
				}
				w.wantHash(t, g.Token, tc.want)
				fields, _ := w.redis[0].HKeys("lock:k")
				for _, field := range fields {
					value := w.redis[0].HGet("lock:k", field)
					if _, err := strconv.ParseFloat(value, 64); err == nil && store.IsOwnField(field) {
						t.Errorf("%s is the number %s", field, value)
					}
				}
			})
		})
	}
}

func enterOnce(owner string) func(*testing.T, *world, *store.Claim, *store.Acquired) {
	return func(t *testing.T, w *world, _ *store.Claim, g *store.Acquired) {
		w.take(t, w.enter("p:2", owner, *g))
	}
}

// inLock is the token that the lock has in Redis.
func (w *world) inLock(t *testing.T) int64 {
	t.Helper()
	token, err := strconv.ParseInt(w.token(0), 10, 64)
	if err != nil {
		t.Fatalf("the lock is %s", w.hash(0))
	}
	return token
}

// The brief release frees a lock only if nobody else has to do with it.
func TestBriefReleaseLooksFurther(t *testing.T) {
	for name, tc := range map[string]struct {
		then func(t *testing.T, w *world, g store.Acquired)
		want store.Released
		hash string
	}{
		"nobody else": {func(*testing.T, *world, store.Acquired) {}, store.Released{Found: true}, ""},
		"a Redisson thread has entered": {func(_ *testing.T, w *world, _ store.Acquired) { _, _ = w.redis[0].HIncrBy("lock:k", "p:1", 1) },
			store.Released{Found: true}, "mode=xT 30000 -+, p:1=1"},
		"another hold": {func(t *testing.T, w *world, g store.Acquired) { w.take(t, w.enter("p:2", "p:1", g)) },
			store.Released{Found: true}, "mode=xT 30000 - p:2+, p:1=1"},
		"somebody waits": {func(t *testing.T, w *world, _ store.Acquired) {
			c := w.claimOf("q:1")
			c.Wait = store.Polling
			w.waits(t, c)
		}, store.Released{Found: true, QueueIsNext: true}, "mode=x946684800001000 0+, q:1=1"},
		"it is another's": {func(_ *testing.T, w *world, _ store.Acquired) {
			w.redis[0].Del("lock:k")
			w.redis[0].HSet("lock:k", "q:1", "1", "mode", "x7")
		}, store.Released{}, "mode=x7, q:1=1"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *world) {
				c := w.claimOf("p:1")
				g := w.take(t, c)
				tc.then(t, w, g)
				if got := w.release(t, soleOf(c, g)); got != tc.want {
					t.Errorf("released: %+v", got)
				}
				w.wantHash(t, g.Token, tc.hash)
			})
		})
	}
}

// A lock of another kind is left alone.
func TestLockOfAnotherKind(t *testing.T) {
	for _, mode := range []string{"read", "write", "x", "x 30000"} {
		in(t, 1, func(t *testing.T, w *world) {
			w.redis[0].HSet("lock:k", "mode", mode, "thread:1", "1", "thread:1:write", "1")
			before := w.hash(0)
			full := w.claimOf("p:2")
			full.Window = time.Minute
			its := w.claimOf("p:3")
			its.Owner = "thread:1"
			for _, c := range []*store.Claim{w.claimOf("p:1"), full, its} {
				_, err := w.Acquire(background, c)
				if conn.OutcomeOf(err) != conn.Refused || !strings.Contains(err.Error(), "another kind") {
					t.Errorf("%s: %v", c.Hold, err)
				}
				if got := w.release(t, releaseOf(c)); got != (store.Released{}) {
					t.Errorf("released: %+v", got)
				}
			}
			w.wantHash(t, 0, before)
			if got, err := w.Force(background, name, new(string)); got || err != nil {
				t.Errorf("its dedup window was ended: %v, %v", got, err)
			}
			if keys := w.redis[0].Keys(); len(keys) != 1 {
				t.Errorf("%q were written", keys)
			}
		})
	}
}

// A hold that is to enter a lock never takes or waits for another.
func TestLockToEnterIsGone(t *testing.T) {
	for what, change := range map[string]func(w *world){
		"free":                      func(w *world) { w.redis[0].Del("lock:k") },
		"another's":                 func(w *world) { w.redis[0].HDel("lock:k", "p:1"); w.redis[0].HSet("lock:k", "q:1", "1") },
		"of the same, taken anew":   func(w *world) { w.redis[0].HSet("lock:k", "mode", "x7") },
		"a dedup window":            func(w *world) { w.redis[0].HDel("lock:k", "p:1"); w.redis[0].HSet("lock:k", "mode", "w7") },
		"taken by Redisson instead": func(w *world) { w.redis[0].HDel("lock:k", "mode") },
	} {
		in(t, 1, func(t *testing.T, w *world) {
			g := w.take(t, w.claimOf("p:1"))
			change(w)
			before := w.hash(0)
			if _, err := w.Acquire(background, w.enter("p:2", "p:1", g)); !errors.Is(err, store.ErrGone) {
				t.Errorf("%s: %v", what, err)
			}
			w.wantHash(t, 0, before)
			w.wantQueue(t, "")
		})
	}
}

// All hear that a lock is free for them, and so does who asks how many have.
func TestFreeForAll(t *testing.T) {
	for brief, release := range map[bool]func(*store.Claim, store.Acquired) store.Release{
		true: soleOf, false: func(c *store.Claim, _ store.Acquired) store.Release { return releaseOf(c) },
	} {
		in(t, 1, func(t *testing.T, w *world) {
			all, q := w.hears(""), w.hears("q")
			c := w.claimOf("p:1")
			g := w.take(t, c)
			if got := w.release(t, release(c, g)); got != (store.Released{Found: true, Heard: 2}) {
				t.Errorf("brief %v: released %+v", brief, got)
			}
			all.want(t, "all", "all: 0")
			q.want(t, "q", "all: 0")
		})
	}
}
