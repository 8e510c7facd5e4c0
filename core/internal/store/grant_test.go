//go:build go1.25

package store_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

const (
	queueKey = "lock:{lock:k}:queue"
	ms       = time.Millisecond
)

// ear hears what is published on some channels.
type ear struct{ heard []string }

// hears subscribes as a process does, or as somebody who is no process of ours: then it is
// named nothing.
func (w *world) hears(process string) *ear {
	e, s := new(ear), w.redis[0].NewSubscriber()
	s.Subscribe(name.Channel())
	own := name.Channel() + ":" + store.ProcessChannel(process)
	if process != "" {
		s.Subscribe(own)
	}
	go func() {
		for m := range s.Messages() {
			what := "all: "
			if m.Channel == own {
				what = ""
			}
			e.heard = append(e.heard, what+m.Message)
		}
	}()
	w.ears = append(w.ears, s.Close)
	return e
}

// want fails the test unless that is what was heard since the last time.
func (e *ear) want(t *testing.T, who string, want ...string) {
	t.Helper()
	synctest.Wait()
	if !slices.Equal(e.heard, want) {
		t.Errorf("%s hears %q, want %q", who, e.heard, want)
	}
	e.heard = nil
}

// queue lists those who wait, in order, with their time of arrival since the start.
func (w *world) queue() string {
	scores, _ := w.redis[0].SortedSet(queueKey)
	var all []string
	for _, member := range slices.SortedFunc(maps.Keys(scores), func(a, b string) int { return int(2 * (scores[a] - scores[b])) }) {
		score := scores[member]
		if strings.HasPrefix(member, "!") {
			continue // an entry that polls
		} else if score >= 5e16 {
			all = append(all, member+" given up")
			continue
		}
		whole := int64(score)
		polls := ""
		if score > float64(whole) {
			polls = " polls"
		}
		all = append(all, fmt.Sprint(member, " ", time.Duration(whole-started.UnixMicro())*time.Microsecond, polls))
	}
	return strings.Join(all, ", ")
}

func (w *world) wantQueue(t *testing.T, want string) {
	t.Helper()
	if got := w.queue(); got != want {
		t.Errorf("in the queue: %s\nwant: %s", got, want)
	}
}

// started is when each bubble starts.
var started = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func polling(c *store.Claim) *store.Claim {
	c.Wait = store.Polling
	return c
}

func TestReleaseGrantsToTheFirstThatIsSubscribed(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		all, p, q, r := w.hears(""), w.hears("p"), w.hears("q"), w.hears("r")
		c := w.claimOf("p:1")
		w.take(t, c)
		w.waits(t, w.claimOf("q:1"))
		w.waits(t, w.claimOf("r:1"))
		w.wantQueue(t, "q:1 0s, r:1 1ms")
		released, err := w.Release(background, releaseOf(c), time.Second)
		now := time.Duration(time.Now().UnixMicro()) * time.Microsecond
		if !released.QueueIsNext || released.Clock.Redis != now || err != nil {
			t.Errorf("released: %+v, %v", released, err)
		}
		token := w.inLock(t)
		w.wantHash(t, token, "mode=xT 0+, q:1=1")
		w.wantQueue(t, "r:1 1ms")
		if s := w.state(t); s.TTL != store.GrantLease {
			t.Errorf("granted for %v", s.TTL)
		}
		text := fmt.Sprintf("%s %d %d", redistest.Digest("q:1"), token, now.Microseconds())
		q.want(t, "q", text)
		for who, other := range map[string]*ear{"all": all, "p": p, "r": r} {
			other.want(t, who)
		}
		if m, err := store.ReadMessage(text); !m.IsFor("q:1") || m.IsFor("q:2") || m.Token != token || m.At != now || err != nil {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

// A grant that nobody has confirmed ends within a second, and those who ask know it.
func TestGrantThatNobodyConfirms(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		c := w.claimOf("p:1")
		w.take(t, c)
		w.waits(t, polling(w.claimOf("q:1")))
		w.release(t, releaseOf(c))
		if b := w.waits(t, w.claimOf("r:1")); b.Why != store.HolderMayProlong || time.Until(b.Until) != time.Second-ms {
			t.Errorf("busy until %v: %+v", b.Until, b)
		}
		time.Sleep(time.Second)
		w.take(t, w.claimOf("r:1"))
		w.wantQueue(t, "")
	})
}

// One that polls comes later, is granted the lock without a message, and finds out when it
// asks again.
func TestPollingWaitIsGranted(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		q := w.hears("q")
		c := w.claimOf("p:1")
		w.take(t, c)
		w.waits(t, polling(w.claimOf("q:1")))
		w.waits(t, polling(w.claimOf("r:1")))
		w.wantQueue(t, "q:1 400ms polls, r:1 401ms polls")
		w.release(t, releaseOf(c))
		token := w.inLock(t)
		w.wantHash(t, token, "mode=xT 0+, q:1=1")
		w.wantQueue(t, "r:1 401ms polls")
		q.want(t, "q")
		if g := w.take(t, polling(w.claimOf("q:1"))); g.Token != token || !g.Outermost || g.TTL != 30*time.Second {
			t.Errorf("granted %+v", g)
		}
	})
}

// A process that nobody hears is passed over while it may be about to subscribe, and taken
// out later.
func TestHeadThatNobodyHears(t *testing.T) {
	for age, queue := range map[time.Duration]string{999 * ms: "q:1 0s", 1000 * ms: ""} {
		for _, heard := range []bool{true, false} {
			in(t, 1, func(t *testing.T, w *world) {
				c := w.claimOf("p:1")
				w.take(t, c)
				w.waits(t, w.claimOf("q:1"))
				time.Sleep(age - 2*ms)
				want := ""
				if heard {
					w.hears("r")
					w.waits(t, w.claimOf("r:1"))
					want = "mode=xT 0+, r:1=1"
				} else {
					time.Sleep(ms)
				}
				if got := w.release(t, releaseOf(c)); got != (store.Released{Found: true, QueueIsNext: heard}) {
					t.Errorf("released: %+v", got)
				}
				w.wantQueue(t, queue)
				if token := w.token(0); token != "" {
					w.wantHash(t, w.inLock(t), want)
				} else {
					w.wantHash(t, 0, want)
				}
			})
		}
	}
}

// Who finds a free lock for which others wait is queued, and when it asks again the first
// has it.
func TestNewcomerFindsAFreeLock(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		q := w.hears("q")
		w.take(t, w.claimOf("p:1"))
		w.waits(t, w.claimOf("q:1"))
		w.redis[0].Del("lock:k")
		r, asked := w.claimOf("r:1"), time.Now()
		b := w.waits(t, r)
		if !b.New || b.Why != store.HolderMayProlong || b.Until.Sub(asked) != store.BargingWindow || w.redis[0].Exists("lock:k") {
			t.Errorf("busy %+v for %v", b, b.Until.Sub(asked))
		}
		w.wantQueue(t, "q:1 0s, r:1 1ms")
		asked = time.Now()
		if b = w.waits(t, r); b.New || b.Until.Sub(asked) != store.GrantLease {
			t.Errorf("busy %+v for %v", b, b.Until.Sub(asked))
		}
		token := w.inLock(t)
		w.wantHash(t, token, "mode=xT 0+, q:1=1")
		w.wantQueue(t, "r:1 1ms")
		q.want(t, "q", fmt.Sprint(redistest.Digest("q:1"), " ", token, " ", asked.UnixMicro()))
	})
}

// So does one that would not wait; and when the first has gone, who asks is next.
func TestWhoAsksForAFreeLock(t *testing.T) {
	for what, tc := range map[string]struct {
		claim       func(w *world) *store.Claim
		heard       bool
		hash, queue string
	}{
		"does not wait":        {claim: notWaiting, heard: true, hash: "mode=xT 0+, q:1=1", queue: "r:1 1ms"},
		"does not wait, alone": {claim: notWaiting, hash: "mode=xT+, s:1=1", queue: "q:1 0s, r:1 1ms"},
		"the first":            {claim: func(w *world) *store.Claim { return w.claimOf("q:1") }, heard: true, hash: "mode=xT+, q:1=1", queue: "r:1 1ms"},
		"after deaf ones":      {claim: func(w *world) *store.Claim { return w.claimOf("r:1") }, hash: "mode=xT 0+, r:1=1", queue: "q:1 0s"},
	} {
		t.Run(what, func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *world) {
				w.take(t, w.claimOf("p:1"))
				w.waits(t, w.claimOf("q:1"))
				w.waits(t, w.claimOf("r:1"))
				if tc.heard {
					w.hears("q")
				}
				w.redis[0].Del("lock:k")
				c := tc.claim(w)
				asking := w.hears(c.Hold[:1])
				g, err := w.Acquire(background, c)
				token := w.inLock(t)
				hash := tc.hash
				if err == nil {
					if g.Token != token || !g.Outermost || g.TTL != 30*time.Second || w.state(t).TTL != g.TTL {
						t.Errorf("granted %+v", g)
					}
					hash = strings.ReplaceAll(hash, " 0+", "+")
				}
				if (err == nil) != strings.Contains(hash, c.Hold) {
					t.Errorf("acquired: %v", err)
				}
				w.wantHash(t, token, hash)
				w.wantQueue(t, tc.queue)
				asking.want(t, "who asks")
			})
		})
	}
}

// Who asks for a free lock has it with the first, where their forms go together.
func TestWhoAsksForAFreeLockSharesIt(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		w.hears("q")
		w.hears("r")
		w.take(t, w.claimOf("p:1"))
		first, asks := w.formOf("q:1", store.Shared), w.formOf("r:1", store.Shared)
		w.waits(t, first)
		w.waits(t, asks)
		w.redis[0].Del("lock:k")
		w.take(t, asks)
		if got := w.holders(t); got != 2 {
			t.Errorf("%d have it, want both", got)
		}
	})
}

func notWaiting(w *world) *store.Claim {
	c := w.claimOf("s:1")
	c.Wait = store.NotWaiting
	return c
}

// Processes that polled and died do not get the lock one after the other.
func TestDeadThatPolledAreNotGranted(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		c := w.claimOf("p:1")
		w.take(t, c)
		for i := range 5 {
			dead := polling(w.claimOf(fmt.Sprintf("dead:%d", i)))
			dead.Owner = fmt.Sprintf("owner-%d", i)
			w.waits(t, dead)
		}
		for range 5 { // the queue lasts as long as somebody asks
			w.waits(t, polling(w.claimOf("q:1")))
			time.Sleep(time.Second)
		}
		w.waits(t, polling(w.claimOf("q:1")))
		w.release(t, releaseOf(c))
		w.wantQueue(t, "")
		if s := w.state(t); s.Owner != "q:1" {
			t.Errorf("granted to %q", s.Owner)
		}
		if members, err := w.redis[0].ZMembers("{lock:k}:queue"); err == nil {
			t.Errorf("left behind: %v", members)
		}
	})
}

// Who asks lives, however long it has not: it is not passed over.
func TestWhoAsksAgainAfterLongKeepsItsPlace(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		c := w.claimOf("p:1")
		c.Lease = 5 * time.Second
		w.take(t, c)
		w.waits(t, polling(w.claimOf("dead:1")))
		w.waits(t, polling(w.claimOf("q:1")))
		time.Sleep(3 * time.Second)
		w.waits(t, polling(w.claimOf("r:1")))
		time.Sleep(3 * time.Second)
		w.take(t, polling(w.claimOf("q:1")))
		w.wantQueue(t, "r:1 3.402s polls")
	})
}
