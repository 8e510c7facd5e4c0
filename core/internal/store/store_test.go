//go:build go1.25

package store_test

import (
	"context"
	"errors"
	"net"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/internal/buffered"
)

// silent is a logger for go-redis, which reports every failure at length.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(silent{}) }

type workers struct{ sync.WaitGroup }

func (w *workers) Start(f func())                { w.Go(f) }
func (w *workers) Begin(task interface{ Run() }) { w.Go(task.Run) }

// world is some embedded Redis and a Store on them, inside a synctest bubble.
type world struct {
	*store.Store
	redis []*miniredis.Miniredis
	kept  chan *store.Compensation
	ears  []func() // see hears
}

func in(t *testing.T, servers int, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		crew := new(workers)
		w := &world{kept: make(chan *store.Compensation, 16)}
		var members []*conn.Server
		for i := range servers {
			m := miniredis.NewMiniRedis()
			m.ClockTTL(true)
			client := redis.NewClient(&redis.Options{
				Addr: "127.0.0.1:" + strconv.Itoa(1+i),
				Dialer: func(context.Context, string, string) (net.Conn, error) {
					pipe, err := m.Dial()
					if err != nil {
						return nil, err
					}
					return buffered.New(pipe), nil
				},
			})
			t.Cleanup(func() { m.Close() })
			t.Cleanup(func() { _ = client.Close() })
			if err := client.Ping(background).Err(); err != nil {
				t.Fatal(err)
			}
			w.redis = append(w.redis, m)
			members = append(members, conn.New(client, conn.Config{
				Prefix: "lock:", Timeout: time.Second, Workers: crew,
			}))
		}
		config := store.Config{
			Process: "p", Timeout: time.Second, Workers: crew,
			Compensate: func(c *store.Compensation) { w.kept <- c },
		}
		if servers == 1 {
			w.Store = store.New(members[0], config)
		} else {
			w.Store = store.NewQuorum(members, config)
		}
		t.Cleanup(crew.Wait)
		test(t, w)
		for _, end := range w.ears {
			end()
		}
	})
}

var (
	background = context.Background()
	name       = store.NewName("lock:", "k")
)

func (w *world) claim() *store.Claim {
	hold := w.NewHold()
	return &store.Claim{Holding: store.Holding{Name: name, Owner: hold, Hold: hold}, Terms: store.Terms{Lease: 30 * time.Second}}
}

// take acquires a lock that stays held.
func (w *world) take(t *testing.T, c *store.Claim) store.Acquired {
	t.Helper()
	g, err := w.Acquire(background, c)
	if err != nil {
		t.Fatal(err)
	}
	c.Decided(held(true))
	synctest.Wait() // of a quorum, a majority has it so far
	return g
}

func releaseOf(c *store.Claim) store.Release {
	return store.Release{Holding: c.Holding, Terms: store.Terms{Form: c.Form}, Until: time.Now().Add(time.Minute)}
}

// release ends a hold. What it tells of the clock is left out.
func (w *world) release(t *testing.T, r store.Release) store.Released {
	t.Helper()
	released, err := w.Release(background, r, time.Second)
	if err != nil {
		t.Error(err)
	}
	released.Clock = store.Clock{}
	return released
}

// result receives what is queued.
type result chan any

func (r result) ReleaseAnswered(_ store.Released, err error) { r <- err }
func (r result) Renewed(held bool, err error, _ time.Time)   { r <- [2]any{held, err} }
func (w *world) state(t *testing.T) (s store.Inspection) {
	t.Helper()
	s, err := w.Inspect(background, name, false)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every script does what its typed request says, on one Redis and on a quorum.
func TestLifeOfALock(t *testing.T) {
	for which, servers := range map[string]int{"one Redis": 1, "a quorum": 3} {
		t.Run(which, func(t *testing.T) {
			in(t, servers, func(t *testing.T, w *world) {
				outer := w.claim()
				g := w.take(t, outer)
				if g.Token != time.Now().UnixMicro() || g.Lease != 30*time.Second || g.TTL != g.Lease || g.Fixed || !g.Outermost || g.Sent != time.Now() {
					t.Errorf("granted %+v", g)
				}
				_, err := w.Acquire(background, w.claim())
				var b *store.Busy
				if !errors.As(err, &b) || !b.Until.Equal(time.Now().Add(30*time.Second)) || b.Why != store.HolderMayProlong || b.Split {
					t.Errorf("another: %+v, %v", b, err)
				}

				time.Sleep(time.Second)
				inner := w.claim()
				inner.Owner, inner.Enter = outer.Owner, g.Token
				if e := w.take(t, inner); e.Token != g.Token || e.Outermost || e.Sent != time.Now() {
					t.Errorf("entered %+v", e)
				}
				holder := store.Holder{Owner: outer.Owner, Count: 2, TTL: 30 * time.Second, HeldFor: time.Second, Lease: 30 * time.Second}
				want := store.Inspection{Status: store.StatusHeld, Owner: outer.Owner, Holds: 2, TTL: holder.TTL, Holders: []store.Holder{holder}}
				if s := w.state(t); !reflect.DeepEqual(s, want) {
					t.Errorf("state %+v", s)
				}

				time.Sleep(time.Second)
				renewed := make(result, 1)
				w.Renew(store.Renew{Name: name, Owner: outer.Owner, Token: g.Token, Lease: 40 * time.Second}, time.Second, renewed)
				w.Flush()
				if got := <-renewed; got != any([2]any{true, error(nil)}) {
					t.Errorf("renewed: %v", got)
				}
				synctest.Wait()
				if s := w.state(t); s.TTL != 40*time.Second {
					t.Errorf("state %+v after a renewal", s)
				}
				if held, sent, err := w.Refresh(background, store.Renew{Name: name, Owner: outer.Owner, Token: g.Token + 1, Lease: time.Minute}); held || err != nil || sent.IsZero() {
					t.Errorf("refreshed with another's token: %v, %v", held, err)
				}
				synctest.Wait()
				if held, _, err := w.Refresh(background, store.Renew{Name: name, Owner: outer.Owner, Token: g.Token, Lease: time.Minute}); !held || err != nil {
					t.Errorf("refreshed: %v, %v", held, err)
				}

				for i, want := range []store.Released{{Found: true}, {Found: true}, {}} {
					c := []*store.Claim{inner, outer, outer}[i]
					if got := w.release(t, releaseOf(c)); got != want {
						t.Errorf("release %d: %+v", i, got)
					}
					synctest.Wait()
				}
				if s := w.state(t); !reflect.DeepEqual(s, store.Inspection{}) {
					t.Errorf("state %+v at the end", s)
				}
				gone := w.claim()
				gone.Owner, gone.Enter = outer.Owner, g.Token
				if _, err := w.Acquire(background, gone); !errors.Is(err, store.ErrGone) {
					t.Errorf("entered what is gone: %v", err)
				}
				if again := w.take(t, w.claim()); again.Token <= g.Token {
					t.Errorf("token %d after %d", again.Token, g.Token)
				}
				if len(w.kept) != 0 {
					t.Errorf("%d compensations", len(w.kept))
				}
			})
		})
	}
}

func TestFixedLeaseAndWindow(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		c := w.claim()
		c.Lease, c.Fixed, c.Window = 2*time.Second, true, time.Minute
		if g := w.take(t, c); g.Lease != 2*time.Second || !g.Fixed {
			t.Errorf("granted %+v", g)
		}
		var b *store.Busy
		if _, err := w.Acquire(background, w.claim()); !errors.As(err, &b) || b.Why != store.HolderIsFixed {
			t.Errorf("another: %+v, %v", b, err)
		}
		time.Sleep(time.Second)
		if got := w.release(t, releaseOf(c)); got != (store.Released{Found: true}) {
			t.Errorf("released: %+v", got)
		}
		if _, err := w.Acquire(background, w.claim()); !errors.As(err, &b) || b.Why != store.InDedupWindow || !b.Until.Equal(time.Now().Add(59*time.Second)) {
			t.Errorf("in the window: %+v, %v", b, err)
		}
		owner, ours, window := "somebody", "latchkey:keep", ""
		for i, tc := range []struct {
			owner *string
			want  bool
		}{{&owner, false}, {&ours, false}, {&window, true}, {&window, false}, {nil, false}} {
			if got, err := w.Force(background, name, tc.owner); got != tc.want || err != nil {
				t.Errorf("force %d: %v, %v", i, got, err)
			}
		}
		c = w.claim()
		w.take(t, c)
		if got, err := w.Force(background, name, &c.Owner); !got || err != nil {
			t.Errorf("force: %v, %v", got, err)
		}
	})
}

// A failed hold leaves no window; one whose copies may arrive leaves a tombstone.
func TestReleaseAfterAFailure(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		c := w.claim()
		c.Window = time.Minute
		w.take(t, c)
		r := releaseOf(c)
		r.Work, r.MayArrive = store.Failed, true
		if got := w.release(t, r); got != (store.Released{Found: true}) {
			t.Errorf("released: %+v", got)
		}
		late := &store.Claim{Holding: c.Holding, Terms: store.Terms{Lease: c.Lease, Window: c.Window}}
		if _, err := w.Acquire(background, late); !errors.Is(err, store.ErrGone) {
			t.Errorf("a copy that arrives late: %v", err)
		}
	})
}

// What is given back is released by each server, and refused when it arrives later.
func TestGiveBack(t *testing.T) {
	in(t, 3, func(t *testing.T, w *world) {
		c := w.claim()
		w.take(t, c)
		c.CompensateAll(time.Hour)
		for range w.redis {
			k := <-w.kept
			if k.Name.Lock() != "lock:k" || !k.Until.Equal(time.Now().Add(time.Hour+time.Minute)) {
				t.Errorf("compensation of %s until %v", k.Name.Lock(), k.Until)
			}
			done := make(result, 1)
			k.Send(done)
			w.Flush()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		for _, m := range w.redis {
			if m.Exists("lock:k") {
				t.Error("the lock stayed")
			}
		}
		late := &store.Claim{Holding: c.Holding, Terms: store.Terms{Lease: c.Lease}}
		if _, err := w.Acquire(background, late); err == nil || errors.As(err, new(*store.Busy)) {
			t.Errorf("it was taken later: %v", err)
		}
	})
}

// The holds that remain get no new lease by a release that is late.
func TestLateReleaseProlongsNothing(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		outer := w.claim()
		g := w.take(t, outer)
		inner := w.claim()
		inner.Owner, inner.Enter = outer.Owner, g.Token
		w.take(t, inner)
		time.Sleep(10 * time.Second)
		w.Compensate(releaseOf(inner))
		done := make(result, 1)
		(<-w.kept).Send(done)
		w.Flush()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if s := w.state(t); s.Holds != 1 || s.TTL != 20*time.Second {
			t.Errorf("state %+v", s)
		}
	})
}

func TestSilence(t *testing.T) {
	in(t, 3, func(t *testing.T, w *world) {
		hang := func(_ *server.Peer, cmd string, _ ...string) bool {
			if isScript(cmd) {
				time.Sleep(3 * time.Second)
			}
			return false
		}
		for i, silent := range []bool{false, true} {
			w.redis[i].Server().SetPreHook(hang)
			ctx, cancel := context.WithTimeout(background, 1500*time.Millisecond)
			_, err := w.Inspect(ctx, name, false)
			cancel()
			if (err != nil) != silent || silent && conn.OutcomeOf(err) != conn.Unknown {
				t.Errorf("%d are silent: %v", i+1, err)
			}
			if !silent {
				time.Sleep(time.Second)
			}
			if got := w.IsSilent(time.Second); got != silent {
				t.Errorf("%d are silent: IsSilent is %v", i+1, got)
			}
			time.Sleep(5 * time.Second)
		}
	})
}

// What counts once is sent again when its connection breaks; ForceUnlock might free what
// another has taken meanwhile.
func TestBrokenConnection(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		c := w.claim()
		g := w.take(t, c)
		for what, tc := range map[string]struct {
			do    func() error
			fails bool
		}{
			"inspect": {do: func() error { _, err := w.Inspect(background, name, true); return err }},
			"refresh": {do: func() error {
				_, _, err := w.Refresh(background, store.Renew{Name: name, Owner: c.Owner, Token: g.Token, Lease: time.Minute})
				return err
			}},
			"force": {do: func() error { _, err := w.Force(background, name, nil); return err }, fails: true},
		} {
			var sent atomic.Int32
			w.redis[0].Server().SetPreHook(func(p *server.Peer, cmd string, _ ...string) bool {
				if !isScript(cmd) || sent.Add(1) > 1 {
					return false
				}
				p.Close()
				return true
			})
			if err := tc.do(); (err != nil) != tc.fails {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// One server that only resembles Redis: what it may have done is compensated.
func TestForeignReplyIsCompensated(t *testing.T) {
	in(t, 1, func(t *testing.T, w *world) {
		w.redis[0].Server().SetPreHook(foreign)
		_, err := w.Acquire(background, w.claim())
		if err == nil || conn.OutcomeOf(err) != conn.Unknown || !strings.Contains(err.Error(), "the reply is not to this command") {
			t.Errorf("error %v", err)
		}
		if len(w.kept) != 1 {
			t.Errorf("%d compensations", len(w.kept))
		}
	})
}

// held says whether a lock is, for Decided.
type held bool

func (h held) Held() bool { return bool(h) }
