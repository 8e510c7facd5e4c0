// Package notify hears when locks become free, by one subscription connection for each Redis that publishes.
// It only accelerates: whoever waits for a lock polls as well.
//
// A lock has a channel for all who wait, on which Redis publishes that it is free, and one for this process,
// the same name with what tells the process appended, on which Redis publishes that the lock was granted to a call
// of it. [Listener.Watch] subscribes to both and [Listener.Unwatch] takes one Watch back; a channel stays
// subscribed for some seconds after the last, because contention tends to come back. A connection that
// breaks, or answers no pings, is replaced, and a channel whose server has changed follows it.
package notify

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// Config is what a [Listener] needs. The functions must not block; they are called without a lock held, by
// any goroutine, also at the same time.
type Config struct {
	Servers []*conn.Server // more than one: a quorum, each of which publishes for itself
	Sharded bool           // by sharded pub/sub, as those who publish must do too
	Process string         // tells this process: its channels end with it
	Workers conn.Workers   // run the connections

	// Disconnected is called when a connection has failed. It is replaced.
	Disconnected func(error)
	// Reconnected is called when one that has replaced another hears messages: Redis may have forgotten meanwhile what it knew.
	Reconnected func()
	// MayBeFree is told that a lock may be free: Redis has published it, or may have while nobody heard it.
	MayBeFree func(lock string)
	// Message is told what was published for this process alone.
	Message func(lock, text string)
}

// Listener subscribes to the channels of locks. Its methods are safe for concurrent use and do not block.
type Listener struct {
	config Config
	ctx    context.Context // ends with Stop
	cancel context.CancelFunc

	mu          sync.Mutex
	connections map[redis.UniversalClient]*connection
}

// New returns a Listener. It does no network I/O and starts no goroutine.
func New(c Config) *Listener {
	l := &Listener{config: c, connections: map[redis.UniversalClient]*connection{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Watch subscribes to a lock's channel, until as many calls of Unwatch. MayBeFree is called once it is subscribed
// to, and whenever it is again. After Stop it does nothing.
func (l *Listener) Watch(lock, channel string) {
	for _, server := range l.config.Servers {
		l.subscribe(server, nil, &subscription{lock: lock, channel: channel, watchers: 1})
	}
}

// Unwatch takes one Watch back.
func (l *Listener) Unwatch(channel string) {
	l.eachSubscription(channel, func(s *subscription) {
		if s.watchers > 0 {
			s.watchers--
			s.unwatched = time.Now()
		}
	})
}

// Subscribed reports whether messages on the channel arrive, as far as is known, from a majority of the servers.
func (l *Listener) Subscribed(channel string) bool {
	heard := 0
	l.eachSubscription(channel, func(s *subscription) {
		if s.confirmed.Load() {
			heard++
		}
	})
	return 2*heard > len(l.config.Servers)
}

// Stop ends all connections. It does not wait for their workers.
func (l *Listener) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel()
}

// eachSubscription visits the subscriptions to a channel, wherever they have moved to, with l.mu held.
func (l *Listener) eachSubscription(channel string, visit func(*subscription)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.connections {
		if s := c.subscriptions[channel]; s != nil {
			visit(s)
		}
	}
}

// subscribe subscribes by the client of a server that has the channel, or adds to its subscription the watchers of
// s, which is taken out of another connection, unless nil.
func (l *Listener) subscribe(server *conn.Server, movedFrom *connection, s *subscription) {
	client := server.ClientFor(s.channel) // which may be that of movedFrom
	if _, isCluster := server.Client().(*redis.ClusterClient); isCluster && !l.config.Sharded {
		client = server.Client() // it passes messages on to all its nodes, which a ring does not
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if movedFrom != nil {
		delete(movedFrom.subscriptions, s.channel)
	}
	if l.ctx.Err() != nil {
		return
	}
	c := l.connections[client]
	if c == nil {
		c = &connection{
			Listener: l, server: server, client: client,
			subscriptions: map[string]*subscription{}, changed: make(chan struct{}, 1),
		}
		l.connections[client] = c
		l.config.Workers.Start(c.run)
	}
	if present := c.subscriptions[s.channel]; present != nil {
		present.watchers += s.watchers
		return
	}
	c.subscriptions[s.channel] = s
	select {
	case c.changed <- struct{}{}:
	default:
	}
}
