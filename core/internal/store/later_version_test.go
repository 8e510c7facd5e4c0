package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// A lock in a form of a later version is busy: it is neither taken nor changed.
func TestLockInAFormOfALaterVersion(t *testing.T) {
	for _, mode := range []string{"z946684800000000", "z7 0", "s7 abc more", "i1 nodigest 5"} {
		t.Run(mode, func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *world) {
				w.redis[0].HSet("lock:k", "mode", mode, "latchkey:holder:thread:1", "946684900000000 30000 7 thread:1")
				w.redis[0].SetTTL("lock:k", time.Minute)
				before := w.hash(0)
				window, its := w.claimOf("p:2"), w.claimOf("p:3")
				window.Window, its.Owner = time.Minute, "thread:1"
				attempt := w.claimOf("p:4")
				attempt.Attempt = &store.Attempt{Request: "abc", Known: time.Minute}
				for _, c := range []*store.Claim{
					w.claimOf("p:1"), window, its, attempt, w.formOf("p:5", store.Shared), w.formOf("p:6", store.Permits(2)),
				} {
					c.Wait = store.NotWaiting
					w.refused(t, c)
					if got := w.release(t, releaseOf(c)); got != (store.Released{}) {
						t.Errorf("released: %+v", got)
					}
				}
				if _, err := w.Acquire(background, w.enter("p:7", "thread:1", store.Acquired{Token: 7})); !errors.Is(err, store.ErrGone) {
					t.Errorf("it was entered: %v", err)
				}
				if got, err := w.Force(background, name, new(string)); got || err != nil {
					t.Errorf("its dedup window was ended: %v, %v", got, err)
				}
				w.wantHash(t, 0, before)
				if w.state(t).Status == store.StatusFree {
					t.Error("it is shown as free")
				}

				w.hears("q")
				c := w.claimOf("q:1")
				w.waits(t, c)
				w.wantHash(t, 0, before)
				w.redis[0].Del("lock:k")
				w.take(t, c)
			})
		})
	}
}

// Who waits for a form of a later version is granted nothing by this one, and not overtaken.
func TestWaiterOfALaterVersion(t *testing.T) {
	for _, form := range []string{"z", "z5", "p2w1x", "s1"} {
		t.Run(form, func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *world) {
				later := w.hears("q")
				c := w.claimOf("p:1")
				g := w.take(t, c)
				w.waits(t, w.claimOf("q:1"))
				w.waits(t, w.claimOf("r:1"))
				score, _ := w.redis[0].ZScore(queueKey, "q:1")
				w.redis[0].ZRem(queueKey, "q:1")
				w.redis[0].ZAdd(queueKey, score, "q:1|"+form)
				w.release(t, soleOf(c, g))
				w.wantHash(t, 0, "")
				w.refused(t, w.claimOf("r:1"))
				w.refused(t, w.formOf("p:2", store.Shared))
				w.redis[0].ZRem(queueKey, "q:1|"+form)
				w.take(t, w.claimOf("r:1"))
				for _, heard := range later.heard {
					if len(heard) > 40 {
						t.Errorf("it was granted the lock: %q", heard)
					}
				}
			})
		})
	}
}
