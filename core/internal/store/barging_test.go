package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Once in 50 ms in which somebody outside the queue listens, a release leaves the lock
// free for them.
func TestReleaseIsOpenToThoseOutside(t *testing.T) {
	for what, tc := range map[string]struct {
		held    time.Duration
		outside int
		waits   []string
		polls   bool // all of them
		buried  bool // somebody has given up, who is not counted
		open    bool
	}{
		"after 50 ms":                        {held: 50 * ms, outside: 1, waits: []string{"q:1", "r:1"}, open: true},
		"within 50 ms":                       {held: 49 * ms, outside: 1, waits: []string{"q:1", "r:1"}},
		"nobody is outside":                  {held: 50 * ms, waits: []string{"q:1", "r:1"}},
		"of one process":                     {held: 50 * ms, outside: 1, waits: []string{"q:1", "q:2", "q:3"}, open: true},
		"of one process, nobody outside":     {held: 50 * ms, waits: []string{"q:1", "q:2", "q:3"}},
		"of its own process":                 {held: 50 * ms, outside: 1, waits: []string{"p:2", "q:1"}, open: true},
		"of its own process, nobody outside": {held: 50 * ms, waits: []string{"p:2", "q:1"}},
		"of those that poll":                 {held: 50 * ms, outside: 1, waits: []string{"q:1"}, polls: true},
		"somebody has given up":              {held: 50 * ms, outside: 1, waits: []string{"q:1"}, buried: true, open: true},
	} {
		t.Run(what, func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *world) {
				ears := map[string]*ear{"p": w.hears("p")}
				for _, hold := range tc.waits {
					if process := hold[:1]; ears[process] == nil {
						ears[process] = w.hears(process)
					}
				}
				var outside []*ear
				for range tc.outside {
					outside = append(outside, w.hears(""))
				}
				c := w.claimOf("p:1")
				began := time.Now()
				g := w.take(t, c)
				for _, hold := range tc.waits {
					next := w.claimOf(hold)
					if tc.polls {
						polling(next)
					}
					w.waits(t, next)
				}
				if tc.buried {
					r := releaseOf(w.claimOf("q:9"))
					r.MayArrive = true
					w.release(t, r)
				}
				time.Sleep(tc.held - time.Since(began))
				if got := w.release(t, releaseOf(c)); got != (store.Released{Found: true, QueueIsNext: true}) {
					t.Errorf("released: %+v", got)
				}
				first := tc.waits[0]
				if !tc.open {
					token := w.inLock(t)
					w.wantHash(t, token, fmt.Sprintf("%s, %s=1", "mode=xT 0+", first))
					for _, e := range outside {
						e.want(t, "outside")
					}
					return
				}
				w.wantHash(t, g.Token, "")
				for _, e := range outside {
					e.want(t, "outside", "all: 00")
				}
				for process, e := range ears {
					if process == first[:1] {
						e.want(t, process, "all: 00", "open")
					} else {
						e.want(t, process, "all: 00")
					}
				}
				// Nobody has taken it: the first, which asks, has it.
				time.Sleep(store.BargingWindow)
				w.take(t, w.claimOf(first))
			})
		})
	}
}

// Those outside go first only where a process of the queue hears of it, which asks after them.
func TestFirstThatHearsAsksAfterThoseOutside(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		q := w.hears("q")
		w.hears("")
		c := w.claimOf("p:1")
		w.take(t, c)
		for _, hold := range []string{"gone:1", "q:1"} {
			w.waits(t, w.claimOf(hold))
		}
		time.Sleep(50 * ms)
		w.release(t, releaseOf(c))
		q.want(t, "q", "all: 00", "open")
	})
}
