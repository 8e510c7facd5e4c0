//go:build go1.25

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

const instancesShown = 3

var errRunning = errors.New("a sale is running")

// show runs the two sales that the page shows, one beside the other, as often as
// it is told to. Only one round runs at a time.
type show struct {
	stock  int
	within time.Duration // the time in which all buyers come
	work   time.Duration // what one order takes

	client    *redis.Client
	instances []*instance

	mu      sync.Mutex // held while a round is started
	closed  bool
	current atomic.Pointer[round] // nil before the first
}

// round is one sale on both sides.
type round struct {
	buyers  int
	sides   [2]*side // without the lock, with it
	stop    context.CancelFunc
	stopped atomic.Bool   // before all buyers were answered
	over    chan struct{} // closed when it has ended
}

func newShow(client *redis.Client, stock int, within, work time.Duration) (*show, error) {
	s := &show{stock: stock, within: within, work: work, client: client}
	for number := range instancesShown {
		i, err := startInstance(s, client.Options().Addr, number)
		if err != nil {
			s.close()
			return nil, err
		}
		s.instances = append(s.instances, i)
	}
	return s, nil
}

// close stops the sale and ends the instances.
func (s *show) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.stop()
	for _, i := range s.instances {
		i.close()
	}
}

// start fills the stock and lets the buyers come. It fails with errRunning while
// an earlier sale goes on.
func (s *show) start(ctx context.Context, buyers int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.running() {
		return errRunning
	}
	sku, now := uuid.NewString(), time.Now()
	r := &round{buyers: buyers, over: make(chan struct{})}
	for i, path := range []string{"/unsafe/items/", "/items/"} {
		r.sides[i] = newSide(path, fmt.Sprintf("%s-%d", sku, i), s.stock, now)
		if err := s.client.Set(ctx, stockKey(r.sides[i].sku), s.stock, time.Hour).Err(); err != nil {
			return err
		}
	}
	// The sale outlives the request that starts it.
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.current.Store(r)
	go s.run(ctx, r)
	return nil
}

// stop ends the sale, if one runs, and returns when it has ended. Who is in line
// leaves; an order that is being taken is finished or refused.
func (s *show) stop() {
	if r := s.current.Load(); r != nil {
		r.stop()
		<-r.over
	}
}

func (s *show) running() bool {
	r := s.current.Load()
	return r != nil && !r.isOver()
}

func (r *round) isOver() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

// sideOf finds the side that a request is for; nil: of an earlier sale.
func (s *show) sideOf(sku string) *side {
	if r := s.current.Load(); r != nil {
		for _, side := range r.sides {
			if side.sku == sku {
				return side
			}
		}
	}
	return nil
}

func (s *show) run(ctx context.Context, r *round) {
	defer close(r.over)
	defer r.stop()
	transport := &http.Transport{MaxIdleConnsPerHost: shopHolds}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 2 * time.Minute}

	var crowds sync.WaitGroup
	seed := uint64(time.Now().UnixNano())
	for _, side := range r.sides {
		crowds.Go(func() { side.sell(ctx, client, s.instances, r.buyers, s.within, seed) })
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		crowds.Wait()
	}()

	tick := time.NewTicker(interval)
	defer tick.Stop()
	for wait := gone; ; {
		closed := wait == nil && r.close() // before the stock is read
		s.readStock(ctx, r)
		if closed {
			return
		}
		select {
		case <-wait:
			wait = nil
			r.stopped.Store(ctx.Err() != nil)
		case <-tick.C:
		}
	}
}

// close says that no instance works for the round any more, nor will. A buyer who
// left leaves an order behind that is still being taken.
func (r *round) close() bool {
	without, with := r.sides[0].close(), r.sides[1].close()
	return without && with
}

// readStock asks Redis for the truth, and keeps the stock of a long sale alive.
func (s *show) readStock(ctx context.Context, r *round) {
	for _, side := range r.sides {
		left, err := s.client.GetEx(context.WithoutCancel(ctx), stockKey(side.sku), time.Hour).Int()
		if err == nil { // else the orders fail too, and that is shown
			side.update(func() { side.left = left })
		}
	}
}
