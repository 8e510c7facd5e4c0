package overload

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// library is one contestant.
type library struct {
	name string
	fits func(r row) bool
	// open returns what a process has that uses the library on such servers.
	open func(r row, servers []*server, c *counts) (locker, error)
}

// locker takes locks as a program that uses the library would.
type locker interface {
	// lock tells by its error that there is no lock, for whatever reason.
	lock(ctx context.Context, key string) (unlock func(), err error)
	// hold takes a lock and keeps it until the context ends. A lock that is lost is counted.
	hold(ctx context.Context, key string) error
}

// go-redis reports every outage at length.
func init() { redis.SetLogger(silent{}) }

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

var libraries = []library{latchkeyLibrary, redislockLibrary, redsyncLibrary}

// newClients returns one for each server, with 20 connections.
func newClients(servers []*server, set func(*redis.Options)) (clients []*redis.Client) {
	for i, s := range servers {
		o := &redis.Options{
			Addr: fmt.Sprintf("127.0.0.%d:1", i+1), PoolSize: 20, Dialer: s.dial,
			// Its handshake holds a mutex, and whoever waits for one stops the fake time.
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		}
		set(o)
		clients = append(clients, redis.NewClient(o))
	}
	return clients
}

// carefully is what somebody sets who uses a peer and wants a command to end in time.
func (r row) carefully(o *redis.Options) {
	o.ReadTimeout, o.WriteTimeout, o.ContextTimeoutEnabled = r.timeout, r.timeout, true
}

// deadline is how long a caller of a peer waits.
func (r row) deadline() time.Duration {
	if r.wait > 0 {
		return r.wait
	}
	return r.timeout
}

// pollEvery is how often a peer tries again, for a caller that waits.
const pollEvery = 10 * time.Millisecond

// keep renews a lock of a peer every third of its lease, for the peers have no watchdog, and counts it when it is lost.
func (r row) keep(ctx context.Context, c *counts, renew func(context.Context) (isHeld bool, err error)) {
	ends := time.Now().Add(r.lease)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(r.lease / 3):
		}
		began := time.Now()
		try, cancel := context.WithTimeout(ctx, r.timeout)
		isHeld, err := renew(try)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && isHeld:
			ends = began.Add(r.lease)
		case err == nil, !time.Now().Before(ends):
			c.lost.Add(1)
			return
		}
	}
}
