//go:build go1.25

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

const (
	// shopHolds bounds the buyers of one side who are in the shop at the same
	// time, and with them goroutines and connections. More wait at the door.
	shopHolds = 100
	// lastOrders bounds what is kept for the timeline.
	lastOrders = 256
)

// side is one of the two sales that run beside each other: without the lock or
// with it.
type side struct {
	path    string // to buy at, on every instance
	sku     string // of this sale alone, so that a late request cannot touch the next one
	started time.Time

	mu         sync.Mutex
	left       int // in stock, as last read from Redis
	sold       int
	turnedAway int // who came after the stock was gone
	failed     int // answered otherwise, or not at all
	visits     int // requests that are at an instance
	inHand     int // those of them that are in the handler
	mostInHand int
	orders     []order // the last ones, in a ring
	nextOrder  int     // where in the ring
	closed     bool
	ended      time.Time
}

// order is one that a handler took. The unit is milliseconds since the sale began.
type order struct {
	Instance int
	From, To int64
}

func newSide(path, sku string, stock int, started time.Time) *side {
	return &side{path: path, sku: sku, left: stock, started: started}
}

// sell lets the buyers in, and returns when the last one has left. They come as
// crowds do: together, then none for a while. The same seed means the same crowd.
func (s *side) sell(ctx context.Context, client *http.Client, instances []*instance, buyers int, within time.Duration, seed uint64) {
	gaps := rand.New(rand.NewPCG(seed, seed))
	inShop := make(chan struct{}, shopHolds)
	var crowd sync.WaitGroup
	comes := s.started
	for i := range buyers {
		comes = comes.Add(time.Duration(gaps.ExpFloat64() * float64(within) / float64(buyers)))
		if !sleepUntil(ctx, comes) {
			break
		}
		inShop <- struct{}{}
		crowd.Go(func() {
			defer func() { <-inShop }()
			err := s.buyOne(ctx, client, instances[i%len(instances)].url+s.path+s.sku+"/buy")
			if err != nil && ctx.Err() == nil {
				s.update(func() { s.failed++ })
			}
		})
	}
	crowd.Wait()
	s.update(func() { s.ended = time.Now() })
}

// sleepUntil returns false when ctx is done first.
func sleepUntil(ctx context.Context, t time.Time) bool {
	if d := time.Until(t); d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// buyOne does not count: seeOrder does, which knows even what no buyer waits for
// any more.
func (s *side) buyOne(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusGone {
		return errors.New(response.Status)
	}
	return nil
}

func (s *side) update(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// seeVisit counts who is at an instance: in line or in the handler. A request that
// comes late, of a buyer who left when the sale was stopped, is turned away.
func (s *show) seeVisit(c *gin.Context) {
	side := s.sideOf(c.Param("sku"))
	if side == nil || !side.enter() {
		c.AbortWithStatus(http.StatusGone)
		return
	}
	defer side.update(func() { side.visits-- })
	c.Next()
}

func (s *side) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.visits++
	}
	return !s.closed
}

// close lets nobody in any more, if nobody is in.
func (s *side) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = s.visits == 0
	return s.closed
}

// seeOrder stands right before the handler, within the lock where there is one.
func (s *show) seeOrder(instance int) gin.HandlerFunc {
	return func(c *gin.Context) {
		side := s.sideOf(c.Param("sku"))
		var from time.Time
		side.update(func() {
			from = time.Now()
			side.inHand++
			side.mostInHand = max(side.mostInHand, side.inHand)
		})
		c.Next()
		side.update(func() {
			side.inHand--
			switch c.Writer.Status() {
			case http.StatusOK:
				side.sold++
				side.keep(order{instance, from.Sub(side.started).Milliseconds(), time.Since(side.started).Milliseconds()})
			case http.StatusGone:
				side.turnedAway++
			}
		})
	}
}

func (s *side) keep(o order) {
	if len(s.orders) < lastOrders {
		s.orders = append(s.orders, o)
		return
	}
	s.orders[s.nextOrder] = o
	s.nextOrder = (s.nextOrder + 1) % lastOrders
}

func (o order) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "[%d,%d,%d]", o.Instance, o.From, o.To), nil
}
