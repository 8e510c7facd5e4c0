package store_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

func isScript(cmd string) bool { return cmd == "EVALSHA" || cmd == "EVAL" }

func foreign(p *server.Peer, cmd string, _ ...string) bool {
	if isScript(cmd) {
		p.WriteOK()
	}
	return isScript(cmd)
}

func refuse(p *server.Peer, cmd string, _ ...string) bool {
	if isScript(cmd) {
		p.WriteError("LOADING Redis is loading")
	}
	return isScript(cmd)
}

// late has a member answer after the others.
func late(_ *server.Peer, cmd string, _ ...string) bool {
	if isScript(cmd) {
		time.Sleep(100 * time.Millisecond)
	}
	return false
}

// ahead makes the last token that a member has given greater than those of others.
func (w *world) ahead(member int) int64 {
	token := time.Now().Add(time.Hour).UnixMicro()
	_ = w.redis[member].Set(store.ClockOf("lock:", "lock:k"), itoa(token))
	return token
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func (w *world) token(member int) string {
	token, _, _ := strings.Cut(w.redis[member].HGet("lock:k", "mode"), " ")
	return strings.Trim(token, "x+")
}

// The token of the lock is the greatest that a member gave. All have it, also one that
// grants late.
func TestQuorumAgreesOnTheToken(t *testing.T) {
	in(t, 3, func(t *testing.T, w *world) {
		token := w.ahead(0)
		w.redis[2].Server().SetPreHook(late)
		g := w.take(t, w.claim())
		if want := token + 10_000; g.Token != want {
			t.Errorf("token %d, want %d", g.Token, want)
		}
		if got := w.token(1); got != itoa(g.Token) {
			t.Errorf("when Acquire has returned a member has %s, want %d", got, g.Token)
		}
		time.Sleep(time.Second)
		if got := w.token(2); got != itoa(g.Token) {
			t.Errorf("the late member has %s, want %d", got, g.Token)
		}
	})
}

// isWriteBack tells the command that raises the token of a lock.
func isWriteBack(cmd string, args []string) bool {
	return isScript(cmd) && slices.Contains(args, "raise")
}

// A member that votes late takes the place of one that cannot be given the token.
func TestQuorumTokenReachesALateMember(t *testing.T) {
	in(t, 3, func(t *testing.T, w *world) {
		w.ahead(1)
		w.redis[0].Server().SetPreHook(func(p *server.Peer, cmd string, args ...string) bool {
			return isWriteBack(cmd, args) && refuse(p, cmd)
		})
		w.redis[2].Server().SetPreHook(late)
		g := w.take(t, w.claim())
		if got := w.token(2); got != itoa(g.Token) {
			t.Errorf("the late member has %s, want %d", got, g.Token)
		}
	})
}

// A caller who gives up meanwhile is not told that the lock is busy.
func TestQuorumCallerGivesUpDuringTheWriteBack(t *testing.T) {
	in(t, 3, func(t *testing.T, w *world) {
		w.ahead(1)
		w.redis[0].Server().SetPreHook(func(_ *server.Peer, cmd string, args ...string) bool {
			if isWriteBack(cmd, args) {
				time.Sleep(500 * time.Millisecond)
			}
			return false
		})
		w.redis[2].HSet("lock:k", "stranger", "1")
		ctx, cancel := context.WithTimeout(background, 100*time.Millisecond)
		defer cancel()
		c := w.claim()
		_, err := w.Acquire(ctx, c)
		c.Decided(nil)
		if !errors.Is(err, context.DeadlineExceeded) || conn.OutcomeOf(err) != conn.Unknown {
			t.Errorf("error %v", err)
		}
		w.confirm(t, 2)
	})
}

// A member that refuses a second copy is about to end the first: it is not asked again.
func TestQuorumAsksNoMemberAgainAfterACopy(t *testing.T) {
	in(t, 3, func(t *testing.T, w *world) {
		w.redis[1].HSet("lock:k", "stranger", "1")
		var copies atomic.Int32
		w.redis[1].Server().SetPreHook(func(p *server.Peer, cmd string, _ ...string) bool {
			if !isScript(cmd) {
				return false
			}
			if copies.Add(1) == 1 {
				p.Close()
				return true
			}
			return false
		})
		w.redis[2].Server().SetPreHook(late)
		c := w.claim()
		_, err := w.Acquire(background, c)
		c.Decided(nil)
		if !errors.As(err, new(*store.Busy)) {
			t.Errorf("error %v", err)
		}
		if !c.Resends.MayArriveTwice() || copies.Load() > 3 { // EVALSHA that is lost, EVALSHA, EVAL
			t.Errorf("asked %d times", copies.Load())
		}
		time.Sleep(time.Second)
	})
}

// A member that grants a lock late which nobody got is compensated, and only that one.
func TestQuorumCompensatesALateGrant(t *testing.T) {
	in(t, 3, func(t *testing.T, w *world) {
		w.redis[2].Server().SetPreHook(late)
		c := w.claim()
		if _, err := w.Acquire(background, c); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if len(w.kept) != 0 {
			t.Error("compensated before it was decided")
		}
		c.Decided(nil)
		w.confirm(t, 1)
		if w.redis[2].Exists("lock:k") || !w.redis[0].Exists("lock:k") {
			t.Error("another member was compensated")
		}
	})
}

// The grant of a late member ends with the release of the lock, which knows that it may arrive yet.
// Taken out, such a member has half as much to do again, and becomes no quicker.
func TestReleaseEndsALateGrant(t *testing.T) {
	in(t, 3, func(t *testing.T, w *world) {
		w.redis[2].Server().SetPreHook(late)
		c := w.claim()
		if _, err := w.Acquire(background, c); err != nil || !c.Resends.MayArriveTwice() {
			t.Fatal(err, "or nothing may arrive")
		}
		c.Decided(held(false))
		time.Sleep(time.Second)
		if len(w.kept) != 0 || c.Resends.MayArriveTwice() {
			t.Errorf("%d compensations, or all have answered and something may arrive", len(w.kept))
		}
	})
}

// What no majority grants is given back by those that did, also by late ones.
func TestQuorumCompensatesTheMinority(t *testing.T) {
	for when, hook := range map[string]server.Hook{"at once": nil, "late": late} {
		t.Run(when, func(t *testing.T) {
			in(t, 3, func(t *testing.T, w *world) {
				for _, m := range w.redis[:2] {
					m.HSet("lock:k", "stranger", "1")
				}
				w.redis[2].Server().SetPreHook(hook)
				c := w.claim()
				_, err := w.Acquire(background, c)
				c.Decided(nil)
				if !errors.As(err, new(*store.Busy)) {
					t.Errorf("error %v", err)
				}
				w.confirm(t, 1)
				if w.redis[2].Exists("lock:k") {
					t.Error("the minority keeps it")
				}
			})
		})
	}
}

// A member that misses a release which the others have done is compensated, also when
// that turns out late.
func TestQuorumCompensatesAMissedRelease(t *testing.T) {
	for when, delay := range map[string]time.Duration{"at once": 0, "late": 300 * time.Millisecond} {
		t.Run(when, func(t *testing.T) {
			in(t, 3, func(t *testing.T, w *world) {
				c := w.claim()
				w.take(t, c)
				for i, m := range w.redis {
					m.Server().SetPreHook(func(p *server.Peer, cmd string, _ ...string) bool {
						switch {
						case !isScript(cmd):
							return false
						case i == 1:
							time.Sleep(delay)
							return refuse(p, cmd)
						}
						time.Sleep(50 * time.Millisecond)
						return false
					})
				}
				if got, err := w.Release(background, releaseOf(c), time.Second); !got.Found || err != nil {
					t.Errorf("released: %+v, %v", got, err)
				}
				time.Sleep(time.Second)
				w.redis[1].Server().SetPreHook(nil)
				w.confirm(t, 1)
				if w.redis[1].Exists("lock:k") {
					t.Error("it keeps the lock")
				}
			})
		})
	}
}

// A release that no majority has done is the caller's to repeat.
func TestQuorumReleaseWithoutMajority(t *testing.T) {
	in(t, 3, func(t *testing.T, w *world) {
		c := w.claim()
		w.take(t, c)
		time.Sleep(time.Second)
		for _, m := range w.redis[1:] {
			m.Server().SetPreHook(refuse)
		}
		if _, err := w.Release(background, releaseOf(c), time.Second); err == nil {
			t.Error("released")
		}
		time.Sleep(time.Second)
		if len(w.kept) != 0 {
			t.Errorf("%d compensations", len(w.kept))
		}
	})
}

// confirm sends the compensations there are, of which there must be so many.
func (w *world) confirm(t *testing.T, want int) {
	t.Helper()
	time.Sleep(time.Second)
	if len(w.kept) != want {
		t.Errorf("%d compensations, want %d", len(w.kept), want)
	}
	for len(w.kept) > 0 {
		done := make(result, 1)
		(<-w.kept).Send(done)
		w.Flush()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
