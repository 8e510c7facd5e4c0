package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// A wait keeps its place when it is repeated, and when its process is heard from then on or
// no more. The answer tells whether the queue has had it.
func TestPlaceOfAWait(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		w.take(t, w.claimOf("p:1"))
		for i, tc := range []struct {
			hold  string
			polls bool
			after time.Duration
			isNew bool
			queue string
		}{
			{hold: "a:1", isNew: true, queue: "a:1 0s"},
			{hold: "a:1", queue: "a:1 0s"},
			{hold: "b:1", polls: true, isNew: true, queue: "a:1 0s, b:1 402ms polls"},
			{hold: "b:1", polls: true, queue: "a:1 0s, b:1 402ms polls"},
			{hold: "c:1", polls: true, isNew: true, queue: "a:1 0s, b:1 402ms polls, c:1 404ms polls"},
			{hold: "b:1", queue: "a:1 0s, b:1 5ms, c:1 404ms polls"},
			{hold: "a:1", polls: true, queue: "a:1 0s polls, b:1 5ms, c:1 404ms polls"},
			{hold: "a:1", queue: "a:1 0s, b:1 5ms, c:1 404ms polls"},
			{hold: "c:1", after: 500 * ms, queue: "a:1 0s, b:1 5ms, c:1 404ms"},
		} {
			time.Sleep(tc.after)
			c := w.claimOf(tc.hold)
			if tc.polls {
				polling(c)
			}
			if b := w.waits(t, c); b.New != tc.isNew {
				t.Errorf("%d, %s: new is %v", i, tc.hold, b.New)
			}
			w.wantQueue(t, tc.queue)
		}
		w.release(t, releaseOf(w.claimOf("a:1")))
		if b := w.waits(t, w.claimOf("a:1")); !b.New {
			t.Error("it has left, and is not new")
		}
	})
}

// A queue ends some seconds after its calls have asked last, also when it was emptied.
func TestQueueEndsByItself(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		w.take(t, w.claimOf("p:1"))
		for range 2 {
			w.waits(t, w.claimOf("q:1"))
			time.Sleep(2 * time.Second)
			w.waits(t, w.claimOf("q:1"))
			if ttl := w.redis[0].TTL(queueKey); ttl <= 4*time.Second || ttl > 5*time.Second {
				t.Errorf("the queue lasts %v", ttl)
			}
			w.release(t, releaseOf(w.claimOf("q:1")))
		}
	})
}

// A hold is ended wherever it is, once.
func TestHoldEndsWhereverItIs(t *testing.T) {
	for where, tc := range map[string]struct {
		then        func(t *testing.T, w *world, c *store.Claim)
		found       bool
		hash, queue string
	}{
		"in the lock": {then: func(t *testing.T, w *world, c *store.Claim) { w.take(t, c) }, found: true},
		"in the queue": {then: func(t *testing.T, w *world, c *store.Claim) {
			w.take(t, w.claimOf("q:1"))
			w.waits(t, c)
		}, found: true, hash: "mode=xT+, q:1=1"},
		"in the queue, first of those of a free lock": {then: func(t *testing.T, w *world, c *store.Claim) {
			w.take(t, w.claimOf("q:1"))
			w.waits(t, c)
			w.waits(t, polling(w.claimOf("r:1")))
			w.redis[0].Del("lock:k")
		}, found: true, hash: "mode=xT 0+, r:1=1"},
		"not yet arrived":                          {then: func(*testing.T, *world, *store.Claim) {}},
		"not yet arrived, of a lock that is taken": {then: func(t *testing.T, w *world, _ *store.Claim) { w.take(t, w.claimOf("q:1")) }, hash: "mode=xT, q:1=1"},
	} {
		for _, owner := range []string{"p:1", "o"} {
			t.Run(where+" of "+owner, func(t *testing.T) {
				in(t, 1, func(t *testing.T, w *world) {
					c := w.claimOf("p:1")
					c.Owner = owner
					tc.then(t, w, c)
					r := releaseOf(c)
					r.MayArrive = true
					for i := range 2 {
						if got := w.release(t, r); got.Found != (tc.found && i == 0) {
							t.Errorf("release %d: %+v", i, got)
						}
					}
					for range 2 {
						if _, err := w.Acquire(background, c); !errors.Is(err, store.ErrGone) {
							t.Errorf("a copy that arrives later: %v", err)
						}
					}
					var token int64
					if tc.hash != "" {
						token = w.inLock(t)
					}
					w.wantHash(t, token, tc.hash)
					member := "p:1"
					if owner != "p:1" {
						member += " o"
					}
					w.wantQueue(t, member+" given up")
					w.redis[0].Del("lock:k")
					time.Sleep(61 * time.Second)
					w.take(t, c)
				})
			})
		}
	}
}

// What was given up does not wait, is not passed the lock, and goes after a minute, however
// long others keep the queue.
func TestTombstoneIsNoWait(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		bury := func(hold string) {
			r := releaseOf(w.claimOf(hold))
			r.MayArrive = true
			w.release(t, r)
		}
		bury("x:1")
		c := w.claimOf("p:1")
		g := w.take(t, c)
		w.wantHash(t, g.Token, "mode=xT, p:1=1")
		full := releaseOf(c)
		full.Work = store.Failed
		if got := w.release(t, full); got != (store.Released{Found: true}) {
			t.Errorf("released: %+v", got)
		}
		w.wantQueue(t, "x:1 given up")
		time.Sleep(30 * time.Second)
		bury("y:1")
		w.take(t, w.claimOf("p:2"))
		w.waits(t, w.claimOf("q:1"))
		if ttl := w.redis[0].TTL(queueKey); ttl < 59*time.Second {
			t.Errorf("a wait has the tombstones end after %v", ttl)
		}
		time.Sleep(31 * time.Second)
		bury("z:1")
		w.wantQueue(t, "q:1 30s, y:1 given up, z:1 given up")
	})
}

// A process that goes on waiting has a place from the release on: behind the others, when
// its calls have had the lock meanwhile.
func TestProcessGoesOnWaiting(t *testing.T) {
	for what, tc := range map[string]struct {
		waits, as string
		others    bool // wait
		passed    int64
		hash      string
		queue     string
	}{
		"alone":                       {waits: "p:2", as: "p:2", hash: "mode=xT 0+, p:2=1"},
		"with an owner":               {waits: "p:2", as: "o", hash: "mode=xT 0 p:2+, o=1"},
		"behind others":               {waits: "p:2", as: "p:2", others: true, hash: "mode=xT 0+, q:1=1", queue: "p:2 2ms"},
		"in its old place":            {waits: "p:9", as: "p:9", others: true, hash: "mode=xT 0+, p:9=1", queue: "q:1 1ms"},
		"its calls had the lock":      {waits: "p:9", as: "p:9", others: true, passed: 5, hash: "mode=xT 0+, q:1=1", queue: "p:9 2ms"},
		"with nobody of this process": {others: true, hash: "mode=xT 0+, p:9=1", queue: "q:1 1ms"},
	} {
		t.Run(what, func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *world) {
				w.hears("p")
				w.hears("q")
				c := w.claimOf("p:1")
				g := w.take(t, c)
				if strings.Contains(tc.hash+tc.queue, "p:9") {
					w.waits(t, w.claimOf("p:9"))
				} else {
					time.Sleep(ms)
				}
				if tc.others {
					w.waits(t, w.claimOf("q:1"))
				} else {
					time.Sleep(ms)
				}
				r := releaseOf(c)
				r.Token, r.LastToken, r.Enqueues = g.Token, g.Token+tc.passed, store.Entry{Hold: tc.waits, Owner: tc.as}
				if got := w.release(t, r); got != (store.Released{Found: true, QueueIsNext: true}) {
					t.Errorf("released: %+v", got)
				}
				w.wantHash(t, w.inLock(t), tc.hash)
				w.wantQueue(t, tc.queue)
			})
		})
	}
}

// A call that waits, and enters a lock that its owner has got elsewhere, waits no more.
func TestWhoEntersLeavesTheQueue(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		w.hears("q")
		first := w.claimOf("p:1")
		w.take(t, first)
		q, r := w.claimOf("q:1"), w.claimOf("r:1")
		q.Owner, r.Owner = "o", "o"
		w.waits(t, q)
		w.waits(t, r)
		w.release(t, releaseOf(first)) // to q
		w.wantQueue(t, "r:1 o 1ms")
		w.take(t, r)
		w.wantQueue(t, "")
	})
}

// A wait that was given up while a release carries it stays given up.
func TestCarriedWaitStaysGivenUp(t *testing.T) {
	for what, passed := range map[string]int64{"plain": 0, "its calls had the lock": 5} {
		t.Run(what, func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *world) {
				w.hears("p")
				c, next := w.claimOf("p:1"), w.claimOf("p:2")
				g := w.take(t, c)
				w.waits(t, next)
				gone := releaseOf(next)
				gone.MayArrive = true
				w.release(t, gone)
				r := releaseOf(c)
				r.Token, r.LastToken, r.Enqueues = g.Token, g.Token+passed, store.Entry{Hold: "p:2", Owner: "p:2"}
				if got := w.release(t, r); got.QueueIsNext {
					t.Errorf("released: %+v", got)
				}
				w.wantHash(t, 0, "")
				w.wantQueue(t, "p:2 given up")
			})
		})
	}
}
