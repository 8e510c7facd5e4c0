package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Tokens are the clock of Redis, and grow however it goes: after it was set back the first
// leaves room for those that were given in memory.
func TestTokensGrow(t *testing.T) {
	now := started.UnixMicro()
	ahead := now + time.Hour.Microseconds()
	for what, tc := range map[string]struct {
		clock string
		want  []int64
		left  string
	}{
		"first of all":          {want: []int64{now}, left: itoa(now)},
		"in order":              {clock: itoa(now - 1), want: []int64{now}, left: itoa(now)},
		"within a µs":           {clock: itoa(now - 1), want: []int64{now, now + 1, now + 2}, left: itoa(now+2) + "+"},
		"the clock was back":    {clock: itoa(ahead), want: []int64{ahead + 10_000, ahead + 10_001, ahead + 10_002}, left: itoa(ahead+10_002) + "+"},
		"it still is":           {clock: itoa(ahead) + "+", want: []int64{ahead + 1, ahead + 2}, left: itoa(ahead+2) + "+"},
		"it has just caught up": {clock: itoa(now) + "+", want: []int64{now + 1}, left: itoa(now+1) + "+"},
	} {
		for _, brief := range []bool{true, false} {
			t.Run(fmt.Sprint(what, ", brief ", brief), func(t *testing.T) {
				in(t, 1, func(t *testing.T, w *world) {
					clock := store.ClockOf("lock:", "lock:k")
					if tc.clock != "" {
						_ = w.redis[0].Set(clock, tc.clock)
					}
					for i, want := range tc.want {
						c := w.claimOf(fmt.Sprint("p:", i))
						if !brief {
							c.Owner = "o"
						}
						g := w.take(t, c)
						if g.Token != want || g.Ahead != (want > now) || g.TTL != 30*time.Second || g.Lease != g.TTL || !g.Outermost {
							t.Errorf("granted %+v, want token %d", g, want)
						}
						if again := w.take(t, c); again.Token != want || again.Ahead != g.Ahead || !again.Outermost {
							t.Errorf("sent twice: granted %+v", again)
						}
						w.release(t, releaseOf(c))
					}
					if got, _ := w.redis[0].Get(clock); got != tc.left {
						t.Errorf("the clock is left at %s, want %s", got, tc.left)
					}
					w.redis[0].Set(clock, tc.left)
					time.Sleep(2 * time.Hour)
					if g := w.take(t, w.claimOf("p:9")); g.Token != time.Now().UnixMicro() || g.Ahead {
						t.Errorf("later: %+v", g)
					}
				})
			})
		}
	}
}

// So do those of locks that Redisson took, and which are entered.
func TestTokenOfALockOfRedisson(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		last := w.ahead(0)
		w.redis[0].HSet("lock:k", "o", "1")
		c := w.claimOf("p:1")
		c.Owner = "o"
		if g := w.take(t, c); g.Token <= last || !g.Ahead || g.Outermost {
			t.Errorf("entered %+v after %d", g, last)
		}
	})
}

// Later tokens than that of the lock, which calls of the process have had in memory, are
// behind every token that follows.
func TestReleaseTellsOfLaterTokens(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		c := w.claimOf("p:1")
		g := w.take(t, c)
		r := releaseOf(c)
		r.Token, r.LastToken = g.Token, g.Token+100
		w.release(t, r)
		if again := w.take(t, w.claimOf("p:2")); again.Token <= r.LastToken || !again.Ahead {
			t.Errorf("%+v after %d", again, r.LastToken)
		}
		last := w.ahead(0) // another lock of the slot has had a later one
		w.release(t, store.Release{Holding: store.Holding{Name: name, Owner: "p:2", Hold: "p:2"}, LastToken: r.LastToken + 200})
		if again := w.take(t, w.claimOf("p:3")); again.Token <= last {
			t.Errorf("%+v after %d", again, last)
		}
	})
}

// So are they behind that of who resumes the lock, should the clock of Redis be set back meanwhile.
func TestHandoverTellsOfLaterTokens(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		c := w.claimOf("p:1")
		g := w.take(t, c)
		h := store.HandOver{Holding: c.Holding, Terms: store.Terms{Lease: c.Lease}, Token: g.Token, LastToken: g.Token + 100, ID: "id", Ticket: "ticket", TTL: time.Minute}
		if err := w.HandOver(background, h); err != nil {
			t.Fatal(err)
		}
		resumes := w.claimOf("q:1")
		resumes.Ticket = h.Ticket
		if again := w.take(t, resumes); again.Token <= h.LastToken || !again.Ahead {
			t.Errorf("%+v after %d", again, h.LastToken)
		}
	})
}

// And behind those of who shares it.
func TestDowngradeTellsOfLaterTokens(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		g := w.take(t, w.claimOf("p:1"))
		ask := store.Renew{Name: name, Owner: "p:1", Token: g.Token, Lease: time.Minute, LastToken: g.Token + 5000}
		w.hears("q")
		w.waits(t, w.formOf("q:1", store.Shared))
		for range 2 { // it counts once
			if _, _, err := w.Downgrade(background, ask); err != nil {
				t.Fatal(err)
			}
		}
		if again := w.take(t, w.formOf("q:1", store.Shared)); again.Token <= ask.LastToken || !again.Ahead {
			t.Errorf("%+v after %d", again, ask.LastToken)
		}
		if ends := w.redis[0].HGet("lock:k", "latchkey:holder:p:1"); ends != fmt.Sprintf("946684860001000 30000 %d p:1", g.Token) {
			t.Errorf("the holder is %q", ends)
		}
		ask.Token++
		if _, _, err := w.Downgrade(background, ask); err != store.ErrGone {
			t.Errorf("a lock of another token: %v", err)
		}
	})
}

// The holder of a lock that was freed by force may have given later tokens in memory.
func TestTokensAfterForce(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		g := w.take(t, w.claimOf("p:1"))
		if freed, err := w.Force(background, name, nil); !freed || err != nil {
			t.Fatal(freed, err)
		}
		if again := w.take(t, w.claimOf("p:2")); again.Token <= g.Token+10_000 {
			t.Errorf("token %d after %d", again.Token, g.Token)
		}
	})
}
