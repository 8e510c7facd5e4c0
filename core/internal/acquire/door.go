package acquire

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/notify"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Config is what an Acquirer needs.
type Config struct {
	Backend      lease.Backend  // its Timeout and its Log
	Prefix       string         // of the names of locks
	Process      string         // what begins the owners of all locks
	Servers      []*conn.Server // several are a quorum
	Sharded      bool           // wake-ups go by sharded pub/sub
	Workers      *schedule.Workers
	Errors       Errors
	Observers    Observers
	Loaded       func(conn.Load)
	Disconnected func(error) // messages from Redis do not arrive
}

// Start makes the Acquirer ready, in place.
func (a *Acquirer) Start(c Config) {
	a.Backend, a.errors, a.observers, a.prefix, a.workers = c.Backend, c.Errors, c.Observers, c.Prefix, c.Workers
	a.Scheduler = schedule.New(&a.background, func() { a.Store.Flush() })
	config := store.Config{
		Process: c.Process, Timeout: a.Timeout, Sharded: c.Sharded, Workers: c.Workers, Compensate: a.compensate, Loaded: c.Loaded,
	}
	if len(c.Servers) > 1 {
		a.Store = store.NewQuorum(c.Servers, config)
	} else {
		a.Store = store.New(c.Servers[0], config)
	}
	a.listener = notify.New(notify.Config{
		Servers: c.Servers, Sharded: c.Sharded, Process: store.ProcessChannel(c.Process), Workers: &a.subscribers,
		Disconnected: c.Disconnected, Reconnected: func() { a.workers.Start(a.Doubt) }, MayBeFree: a.MayBeFree, Message: a.message,
	})
	a.Registry.Start(c.Errors, a)
}

// Waiters tells of the calls of this process that wait for a lock.
type Waiters struct {
	Key   string
	Calls int
	Since time.Time // when the first of them has come
}

// Waiters is false when no call waits for the lock.
func (a *Acquirer) Waiters(lock string) (Waiters, bool) {
	w, ok := a.queues.Oldest(lock)
	if !ok {
		return Waiters{}, false
	}
	return Waiters{w.Wants.name.Key(), w.Calls, w.Since}, true
}

// WaitedFor lists the locks that calls of this process wait for.
func (a *Acquirer) WaitedFor() []string { return a.queues.Locks() }

// Drain waits until nothing is held, and Redis has confirmed it, once nothing is admitted any more. When ctx ends first, what is left is
// taken away from its holders, and the error is that of ctx. It waits until end at most, which expire has come Timeout later.
func (a *Acquirer) Drain(ctx, end context.Context, expire func()) (err error) {
	a.listener.Stop() // nobody waits any more
	if !schedule.Await(ctx, a.UnderWay.None()) {
		err = conn.Ended(ctx)
		a.TakeAway()
		schedule.Await(end, a.UnderWay.None()) // calls under way get an answer, to be compensated
	}
	if a.Store.IsQuorum() { // a dead member of a quorum must not hold up the end
		time.AfterFunc(a.Timeout, expire)
	} else if !a.awaitConfirmed(ctx) {
		err = conn.Ended(ctx)
	}
	if !a.awaitConfirmed(end) {
		a.Warn(ctx, "closed before Redis confirmed all releases; these locks end with their leases")
	}
	a.Scheduler.Stop()
	a.Store.Stop()
	<-a.background.Stop() // which nothing blocks
	return err
}

// awaitConfirmed waits until nothing is left to compensate. A command that was given up may still
// be written, and a member of a quorum may vote late: whether that has to be compensated is
// known when the goroutine ends that sends it.
func (a *Acquirer) awaitConfirmed(ctx context.Context) bool {
	return schedule.Await(ctx, a.workers.Stop()) && schedule.Await(ctx, a.unconfirmed.None())
}

// WaitUntilIdle waits for the end of all goroutines.
func (a *Acquirer) WaitUntilIdle() {
	for _, work := range []<-chan struct{}{a.UnderWay.None(), a.workers.Stop(), a.subscribers.Stop()} {
		<-work
	}
}

// LockObserved is Lock of which Observers hear.
func (a *Acquirer) LockObserved(ctx context.Context, key string, given *option.Settings) (*lease.Handle, error) {
	ctx, o := a.observers.Wants(ctx, key, 1, given)
	h, err := a.Lock(ctx, key, given)
	return concluded(o, h, err)
}

// Lock enters the lock if the context holds it, and takes it otherwise.
func (a *Acquirer) Lock(ctx context.Context, key string, given *option.Settings) (*lease.Handle, error) {
	name, err := a.Name(key)
	if err == nil {
		err = given.CheckKeys(1)
	}
	if err != nil {
		return nil, err
	}
	c := &call{acquirer: a, spec: specOf(ctx, name, given)}
	if h, err := c.reenterHeld(); h != nil || err != nil {
		return h, err
	}
	if !a.Admit() {
		return nil, a.errors.Closed("taking", key)
	}
	defer a.UnderWay.End()
	if ctx.Err() != nil {
		return nil, c.gaveUp()
	}
	h, err := c.waitCheckingDeadlock()
	if c.isOuterUnlocked(err) {
		return a.Lock(ctx, key, given)
	}
	return h, err
}
