package notify

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

const (
	// A connection that is silent from one ping to the next is dead.
	pingEvery = 3 * time.Second

	// unwatchedFor is how long a channel stays subscribed to without a watcher.
	unwatchedFor = 5 * time.Second

	// A process that is not heard has its share of the locks by polling meanwhile.
	reconnectDelay    = 50 * time.Millisecond
	reconnectDelayMax = time.Second
)

// notQueued is a message for those that are outside the wait queue, who read it as 0.
const notQueued = "00"

var (
	errSilent  = errors.New("the subscription connection does not answer")
	errMoved   = errors.New("the channel's hash slot has moved to another node")
	errNoShard = errors.New("no shard of the ring is up")
)

// connection is a subscription connection, and those that replace it, while there are subscriptions.
type connection struct {
	*Listener
	server        *conn.Server
	client        redis.UniversalClient    // of it, or of a part of it
	subscriptions map[string]*subscription // by channel; guarded by mu
	changed       chan struct{}            // there are more
	alive         atomic.Bool              // something has arrived since the last ping
	failed        atomic.Bool              // the last one has, and this one has not heard anything yet
}

// subscription is to both channels of a lock. Listener.mu guards what is not atomic.
type subscription struct {
	lock    string
	channel string // for all; that for this process is named after it

	watchers  int
	unwatched time.Time   // when the last watcher left
	requested bool        // SUBSCRIBE was sent on the present connection
	confirmed atomic.Bool // and answered: messages arrive
}

// run connects, again after failures, until no subscription is left.
func (c *connection) run() {
	delay := reconnectDelay
	for {
		started := time.Now()
		err := c.serve()
		if err == nil || c.ctx.Err() != nil {
			return
		}
		if time.Since(started) > reconnectDelayMax {
			delay = reconnectDelay
		}
		c.failed.Store(true)
		c.config.Disconnected(err)
		c.server.LookAgain()
		if conn.Pause(c.ctx, delay) != nil {
			return
		}
		c.relocate()
		delay = min(2*delay, reconnectDelayMax)
	}
}

// serve connects once and keeps that until it fails. It returns nil when no subscription is left.
func (c *connection) serve() error {
	if _, none := c.dropUnwatched(); none {
		return nil
	}
	if _, isRing := c.client.(*redis.Ring); isRing {
		return errNoShard // it would panic
	}
	ctx, cancel := context.WithCancel(c.ctx)
	pubsub := c.client.Subscribe(ctx) // to nothing yet, nor connected
	subscribe, unsubscribe := pubsub.Subscribe, pubsub.Unsubscribe
	if c.config.Sharded {
		subscribe, unsubscribe = pubsub.SSubscribe, pubsub.SUnsubscribe
	}
	c.alive.Store(true)
	failed := make(chan error, 1)
	c.config.Workers.Start(func() { failed <- c.receive(ctx, pubsub) })
	defer func() {
		cancel()
		_ = pubsub.Close() // makes receive return
		c.disconnected()
	}()

	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		if err := c.send(ctx, subscribe, c.takeUnrequested()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			return err
		case <-c.changed:
		case <-ping.C:
			if !c.alive.Swap(false) {
				return errSilent
			}
			unwatched, none := c.dropUnwatched()
			if none {
				return nil
			}
			if err := cmp.Or(c.send(ctx, unsubscribe, unwatched), pubsub.Ping(ctx)); err != nil {
				return err
			}
		}
	}
}

// send names both channels of each lock in one command, or in one for each lock when they are sharded, for it
// must keep to a slot.
func (c *connection) send(ctx context.Context, command func(context.Context, ...string) error, channels []string) error {
	var all []string
	for i, channel := range channels {
		all = append(all, channel, channel+":"+c.config.Process)
		if c.config.Sharded || i == len(channels)-1 {
			if err := command(ctx, all...); err != nil {
				return err
			}
			all = nil
		}
	}
	return nil
}

// receive passes on what arrives, until the connection fails.
func (c *connection) receive(ctx context.Context, pubsub *redis.PubSub) error {
	for {
		message, err := pubsub.Receive(ctx)
		if err != nil {
			return err
		}
		c.alive.Store(true)
		switch m := message.(type) {
		case *redis.Subscription:
			if err := c.confirm(m); err != nil {
				return err
			}
		case *redis.Message:
			c.dispatch(m)
		}
	}
}

// confirm takes the reply to a command. What was published before a subscription is confirmed is lost.
func (c *connection) confirm(r *redis.Subscription) error {
	s, forProcess := c.find(r.Channel)
	switch {
	case s == nil || r.Kind == "unsubscribe":
	case r.Kind == "sunsubscribe" && s.confirmed.Load(): // else it ends an earlier one
		return errMoved
	case r.Kind != "sunsubscribe" && forProcess: // both channels are subscribed to at once
		s.confirmed.Store(true)
		if c.failed.Swap(false) {
			c.config.Reconnected()
		}
		c.config.MayBeFree(s.lock)
	}
	return nil
}

func (c *connection) dispatch(m *redis.Message) {
	s, forProcess := c.find(m.Channel)
	switch {
	case s == nil || m.Payload == notQueued:
	case forProcess:
		c.config.Message(s.lock, m.Payload)
	default:
		c.config.MayBeFree(s.lock)
	}
}

// find returns the subscription to a channel, nil when nobody wants to hear it. forProcess: the channel is for this
// process only.
func (c *connection) find(channel string) (s *subscription, forProcess bool) {
	channel, forProcess = strings.CutSuffix(channel, ":"+c.config.Process)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.subscriptions[channel], forProcess
}

// takeUnrequested returns the channels that SUBSCRIBE was not sent for, and notes that it is.
func (c *connection) takeUnrequested() (channels []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for channel, s := range c.subscriptions {
		if !s.requested {
			s.requested = true
			channels = append(channels, channel)
		}
	}
	return channels
}

// dropUnwatched drops the subscriptions that nobody has wanted for a while. none says that none is left: the
// connection is dropped as well.
func (c *connection) dropUnwatched() (channels []string, none bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for channel, s := range c.subscriptions {
		if s.watchers == 0 && time.Since(s.unwatched) > unwatchedFor {
			delete(c.subscriptions, channel)
			channels = append(channels, channel)
		}
	}
	if len(c.subscriptions) == 0 {
		delete(c.connections, c.client)
		return nil, true
	}
	return channels, false
}

// disconnected notes that the connection is gone. Who waits looks at once, for a message may have been lost
// with it, and polls often from then on.
func (c *connection) disconnected() {
	c.mu.Lock()
	var watched []string
	for _, s := range c.subscriptions {
		if s.confirmed.Swap(false) && s.watchers > 0 {
			watched = append(watched, s.lock)
		}
		s.requested = false
	}
	c.mu.Unlock()
	for _, lock := range watched {
		c.config.MayBeFree(lock)
	}
}

// relocate hands over the subscriptions whose messages come from elsewhere by now.
func (c *connection) relocate() {
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.subscriptions))
	c.mu.Unlock()
	for _, s := range all {
		c.subscribe(c.server, c, s)
	}
}
