//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// Two processes of calls of all kinds want one lock, on a network that loses, delays and
// repeats their acquisitions and releases: there is one holder at a time, Redis shows it, and
// nobody hears of a loss. What interleaves depends on the seed and on the scheduler: a run that
// failed shows what is wrong, another of its seed may not.
func TestInvariant1CallsOfAllKindsOnABadNetwork(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				c := &contest{t: t, s: s, random: rand.New(rand.NewPCG(seed, 1))}
				s.failAll(c.network, acquire, release)
				var all sync.WaitGroup
				for range 2 {
					l := s.locker()
					for range 4 {
						all.Go(func() {
							for range 20 {
								c.call(l)
							}
						})
					}
				}
				all.Wait()
				time.Sleep(2 * time.Second) // what was late arrives
				s.heal()
				if c.got.Load() < 50 {
					t.Errorf("only %d calls had the lock", c.got.Load())
				}
			})
		})
	}
}

type contest struct {
	t      *testing.T
	s      *embedded
	inside atomic.Int32
	got    atomic.Int32

	mu     sync.Mutex
	random *rand.Rand
}

func (c *contest) roll(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

// upTo is a time below so many milliseconds.
func (c *contest) upTo(ms int) time.Duration {
	return time.Duration(c.roll(ms*1000)) * time.Microsecond
}

// network is a fault for every acquisition and release.
func (c *contest) network(s *embedded, p *peer, cmd string, args []string) bool {
	n := 40
	if cmd == "EVALSHA" && isScript(args[0], acquire) {
		n = 10 // a claim that is sent again, late, while others release
	}
	switch c.roll(n) {
	case 0, 1:
		return loseRequest(s, p, cmd, args)
	case 2, 3, 4:
		return lateRequest(c.upTo(300))(s, p, cmd, args)
	case 5:
		return loseReply(s, p, cmd, args)
	case 6:
		return lateReply(c.upTo(250))(s, p, cmd, args)
	case 7: // it runs, although its connection broke long before
		late, args := c.upTo(400), slices.Clone(args)
		go func() {
			time.Sleep(late)
			s.pass(nowhere(), cmd, args)
		}()
		p.Close()
		return true
	}
	return false
}

// call wants the lock, in one of many ways.
func (c *contest) call(l *core.Locker) {
	time.Sleep(c.upTo(30))
	options := [][]core.Option{
		{core.KeepFor(time.Millisecond)}, {core.FixedLease(20 * time.Second)}, {core.Lease(5 * time.Second)},
		{core.Owner("own-" + strconv.Itoa(c.roll(1e9)))}, nil, nil, nil,
	}
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	if c.roll(4) == 0 {
		time.AfterFunc(c.upTo(120), cancel)
	}
	k, err := l.Lock(ctx, "k", options[c.roll(len(options))]...)
	if err != nil {
		wantNot(c.t, err, core.ErrLost)
		return
	}
	c.got.Add(1)
	if n := c.inside.Add(1); n > 1 {
		c.t.Errorf("%d inside", n)
	}
	if c.roll(3) == 0 {
		for range 4 {
			nested, err := l.Lock(k.Context(), "k")
			if err == nil {
				time.Sleep(c.upTo(5))
				err = nested.Unlock(background)
			}
			wantNot(c.t, err, core.ErrLost)
		}
	}
	time.Sleep(c.upTo(60))
	if cause := context.Cause(k.Context()); errors.Is(cause, core.ErrLost) {
		c.t.Errorf("lost while held: %v", cause)
	}
	if held := c.s.held("k"); !strings.HasPrefix(held, k.Owner()+"=") {
		c.t.Errorf("Redis shows %q, and %s believes in it", held, k.Owner())
	}
	c.inside.Add(-1)
	wantNot(c.t, k.Unlock(background), core.ErrLost)
}
