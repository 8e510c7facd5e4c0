package notify

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// unwatchedFor is how long a channel stays subscribed to without a watcher.
const unwatchedFor = 5 * time.Second

// subscription is to both channels of a lock. Listener.mu guards what is not atomic.
type subscription struct {
	lock    string
	channel string // for all; that for this process is named after it

	watchers  int
	unwatched time.Time   // when the last watcher left
	requested bool        // SUBSCRIBE was sent on the present connection
	confirmed atomic.Bool // and answered: messages arrive
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
