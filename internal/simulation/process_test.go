//go:build go1.25

package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/latchkey-go/latchkey/core"
)

// process is a Locker with connections of its own, and the goroutines that use it.
type process struct {
	world   *world
	id      int
	place   int // of those that it and its successors have had
	network *network
	client  *redis.Client
	locker  *core.Locker
	random  *rand.Rand

	life   context.Context // ends when it is killed or has left
	end    context.CancelFunc
	actors sync.WaitGroup
	leaves atomic.Bool
	closed atomic.Bool

	givesUp atomic.Bool // it has an actor that does

	mu      sync.Mutex
	resumed chan struct{} // open while it is paused
	records map[*record]bool
	dead    bool
}

func (w *world) newProcess(place int) *process {
	w.started++
	random := rand.New(rand.NewPCG(w.seed, uint64(w.started)))
	p := &process{
		world: w, id: w.started, place: place, random: random,
		network: newNetwork(w.server, rand.New(rand.NewPCG(w.seed, uint64(1000+w.started))), w.latency, w.timeout, w.longest),
		records: map[*record]bool{},
		resumed: closedChannel(),
	}
	p.network.hearing = w.hearing[place]
	p.network.noise, p.network.usual = w.usual, w.usual
	p.life, p.end = context.WithCancel(context.Background())
	p.client = redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1", Dialer: p.network.dial, PoolSize: 200, // go-redis shares the timers of those who wait for a connection among bubbles
		ContextTimeoutEnabled: place%2 == 1, // core gives the others a hook
		DialTimeout:           2 * w.timeout,
		ReadTimeout:           2 * w.timeout,
		DisableIdentity:       true,
		// Their handshake holds a mutex, and somebody who waits for one stops the fake time.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	var err error
	options := []core.Option{core.Logger(slog.New(slog.DiscardHandler)), core.Lease(w.lease), core.Timeout(w.timeout)}
	if place%2 == 0 { // core does less where nobody hears of it
		options = append(options, core.Observe(losses{w}))
	}
	p.locker, err = core.New(p.client, options...)
	if err != nil {
		panic(err)
	}
	return p
}

func closedChannel() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// pause stops what the process does: its connections carry nothing, and its
// goroutines stand still as soon as they are outside of the Locker. The Locker's own
// timers go on, as goroutines cannot be stopped: a holder that does not learn of a loss
// because it does not run is played by the careless ones, who never look, and by the
// fault suite with SIGSTOP.
func (p *process) pause() {
	p.mu.Lock()
	select {
	case <-p.resumed:
		p.resumed = make(chan struct{})
	default: // it stands still already
	}
	p.mu.Unlock()
	p.network.set(func() { p.network.mute, p.network.deaf = true, true })
}

// resume ends a pause, if there is one.
func (p *process) resume() {
	p.mu.Lock()
	resumed := p.resumed
	p.resumed = closedChannel()
	p.mu.Unlock()
	select {
	case <-resumed:
	default:
		p.network.set(func() { p.network.mute, p.network.deaf = false, false })
		close(resumed)
	}
}

// gate returns when the process is not paused.
func (p *process) gate() {
	p.mu.Lock()
	resumed := p.resumed
	p.mu.Unlock()
	<-resumed
}

// sleep waits for d, or until one of the contexts is done, and then until the process
// runs.
func (p *process) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-p.life.Done():
	}
	p.gate()
}

// kill ends the process in the middle of whatever it does.
func (p *process) kill() {
	p.mu.Lock()
	p.dead = true
	for r := range p.records {
		r.died()
	}
	p.mu.Unlock()
	p.network.die()
	p.end()
	p.resume()
	p.world.buried.Go(func() { p.bury(0) })
}

// leave closes the process as one that is deployed anew: its holders have some time.
func (p *process) leave(patience time.Duration) {
	p.resume()
	p.bury(patience)
}

// bury closes the Locker, within the time that Close promises, and its client.
func (p *process) bury(patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p.leaves.Store(true)
	began := time.Now()
	_ = p.locker.Close(ctx)
	p.closed.Store(true)
	if took := time.Since(began); took > patience+p.world.timeout {
		p.world.complain("Close took %v, with a context of %v and a Timeout of %v", took, patience, p.world.timeout)
	}
	for _, h := range p.locker.Snapshot().Held {
		p.world.complain("%s is held after Close", h.Key)
	}
	p.end()
	p.actors.Wait()
	_ = p.client.Close()
	p.network.hangUp()
}

func (p *process) String() string { return fmt.Sprint("process ", p.id) }
