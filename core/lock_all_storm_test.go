//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// crowd is calls of LockAll that want locks in all orders, one inside of another.
type crowd struct {
	t       *testing.T
	lockers []*core.Locker
	keys    []string
	inside  map[string]*atomic.Int32
	done    atomic.Int64
	refused atomic.Int64 // for the sake of order
}

func newCrowd(t *testing.T, lockers ...*core.Locker) *crowd {
	c := &crowd{t: t, lockers: lockers, keys: []string{"a", "b", "c", "d", "e", "k"}, inside: map[string]*atomic.Int32{}}
	for _, key := range c.keys {
		c.inside[key] = new(atomic.Int32)
	}
	return c
}

// some are a few of the keys, in any order.
func (c *crowd) some(random *rand.Rand) []string {
	var keys []string
	for range 1 + random.IntN(3) {
		keys = append(keys, c.keys[random.IntN(len(c.keys))])
	}
	return keys
}

// call locks some keys, and inside of them others, as often as depth says.
func (c *crowd) call(ctx context.Context, random *rand.Rand, depth int, opts ...core.Option) {
	keys := c.some(random)
	l := c.lockers[random.IntN(len(c.lockers))]
	m, err := l.LockAll(ctx, keys, opts...)
	if err != nil {
		wantNot(c.t, err, core.ErrDeadlock, core.ErrLost)
		if busy := (*core.BusyError)(nil); depth == 2 && len(opts) == 0 && errors.As(err, &busy) {
			c.t.Errorf("a call that waits without end: %v", err)
		}
		c.refused.Add(1)
		return
	}
	for _, key := range m.Keys() {
		_, was := holds(ctx, key)
		if n := c.inside[key].Add(1); n > 1 && !was {
			c.t.Errorf("%d hold %s", n, key)
		}
	}
	time.Sleep(time.Duration(random.IntN(2000)) * time.Microsecond)
	if depth > 0 {
		inner := context.WithValue(m.Context(), heldKey{}, append(heldBy(ctx), m.Keys()...))
		if random.IntN(2) == 0 {
			c.call(inner, random, depth-1, opts...)
		} else if k, err := l.Lock(inner, c.keys[random.IntN(len(c.keys))], opts...); err == nil {
			unlock(c.t, k)
		} else {
			wantNot(c.t, err, core.ErrDeadlock, core.ErrLost)
		}
	}
	for _, key := range m.Keys() {
		c.inside[key].Add(-1)
	}
	wantNot(c.t, m.Unlock(background), core.ErrLost, core.ErrNotHeld)
	c.done.Add(1)
}

type heldKey struct{}

func heldBy(ctx context.Context) []string {
	keys, _ := ctx.Value(heldKey{}).([]string)
	return keys[:len(keys):len(keys)]
}

func holds(ctx context.Context, key string) (string, bool) {
	for _, k := range heldBy(ctx) {
		if k == key {
			return k, true
		}
	}
	return "", false
}

// No two calls of LockAll wait for each other, whatever they want, and whatever they hold: a
// circle would be found, as an ErrDeadlock.
func TestLockAllNeverDeadlocks(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				c := newCrowd(t, s.locker(), s.locker(), s.locker())
				began := time.Now()
				var calls sync.WaitGroup
				for i := range 20 {
					random := rand.New(rand.NewPCG(seed, uint64(i)))
					calls.Go(func() {
						for range 15 {
							c.call(background, random, 2)
						}
					})
				}
				calls.Wait()
				wantTime(t, "all done", time.Since(began), 0, 10*time.Second)
				time.Sleep(time.Second) // calls that were refused leave the queue behind their callers' backs
				wantLocked(t, s, "in the end", "")
				if c.refused.Load() == 0 || c.done.Load() < 300 {
					t.Errorf("%d done, %d refused", c.done.Load(), c.refused.Load())
				}
			})
		})
	}
}

// Commands that are lost, late, or arrive twice leave nothing behind, and lose no lock.
func TestLockAllOnABadNetwork(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				c := newCrowd(t, s.locker(), s.locker())
				trouble := &contest{t: t, s: s, random: rand.New(rand.NewPCG(seed, 1))}
				s.failAll(trouble.network, acquire, release)
				var calls sync.WaitGroup
				for i := range 8 {
					random := rand.New(rand.NewPCG(seed, uint64(i)))
					calls.Go(func() {
						for range 15 {
							ctx, cancel := context.WithCancel(background)
							if random.IntN(3) == 0 {
								time.AfterFunc(time.Duration(random.IntN(200))*time.Millisecond, cancel)
							}
							c.call(ctx, random, 1, core.Wait(time.Minute))
							cancel()
						}
					})
				}
				calls.Wait()
				time.Sleep(2 * time.Second) // what was late arrives
				s.heal()
				wantLocked(t, s, "in the end", "")
				if c.done.Load() < 30 {
					t.Errorf("only %d done", c.done.Load())
				}
			})
		})
	}
}

// The connection breaks while a command takes several locks, before or after it is done; the
// caller may have gone meanwhile.
func TestLockAllOverABrokenConnection(t *testing.T) {
	keys := []string{"a", "b", "c"}
	later := func(s *embedded, p *peer, cmd string, args []string) bool {
		time.AfterFunc(time.Second, func() { s.pass(nowhere(), cmd, args) })
		return loseRequest(s, p, cmd, args)
	}
	for name, breaks := range map[string]fault{"request": loseRequest, "request, which arrives later": later, "reply": loseReply} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				unlockAll(t, takeAll(t, background, l, keys)) // calls are merged from now on
				time.Sleep(time.Second)
				s.fail(acquire, breaks)
				m := takeAll(t, background, l, keys)
				wantLocked(t, s, "then", "a b c")
				s.fail(release, breaks)
				unlockAll(t, m)
				wantLocked(t, s, "after Unlock", "")
				time.Sleep(2 * time.Second)
				wantLocked(t, s, "in the end", "")
			})
		})
	}
	t.Run("nobody waits", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded) {
			l := s.locker()
			unlockAll(t, takeAll(t, background, l, keys))
			time.Sleep(time.Second)
			s.fail(acquire, lateReply(500*time.Millisecond))
			ctx, cancel := context.WithTimeout(background, 100*time.Millisecond)
			defer cancel()
			o := <-startAll(ctx, l, keys)
			wantErr(t, o.err, core.ErrNotAcquired, context.DeadlineExceeded)
			wantTime(t, "failed", o.took, 100*time.Millisecond, 100*time.Millisecond)
			time.Sleep(time.Second)
			wantLocked(t, s, "a second later", "")
		})
	})
	t.Run("outage", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded) {
			l := s.locker()
			unlockAll(t, takeAll(t, background, l, keys))
			s.outage()
			o := <-startAll(background, l, keys)
			wantErr(t, o.err, core.ErrUnavailable)
			wantTime(t, "failed", o.took, 0, 2*time.Second)
			s.heal()
			time.Sleep(time.Second)
			wantLocked(t, s, "after the outage", "")
		})
	})
}
