package core

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// linger is how long a channel stays subscribed after the last waiting call
	// has gone, because contention tends to come back.
	linger = 5 * time.Second
	// A subscription connection that is silent through two pings is dead.
	pingEvery = 3 * time.Second

	// A process that is not heard has its share of the locks by polling meanwhile.
	resubscribeDelay    = 50 * time.Millisecond
	resubscribeDelayMax = time.Second
)

// topic is a lock that somebody wants to hear about: on the channel for all, where
// it becomes free, and on that of this process, where its turn comes. Guarded by
// wakeups.mu.
type topic struct {
	names     names
	watchers  int
	idleSince time.Time // when the last watcher left
	asked     bool      // SUBSCRIBE was sent on the present connection
	confirmed bool      // and Redis has confirmed it
}

// subscriber keeps one subscription connection while there are topics.
type subscriber struct {
	wakeups *wakeups
	node    *node                 // the Redis it belongs to
	client  redis.UniversalClient // of it, or of a part of it
	kick    chan struct{}         // the topics have changed

	topics map[string]*topic // by channel for all; guarded by wakeups.mu
}

func (s *subscriber) changed() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// run subscribes, again after failures, until there is nothing to hear.
func (s *subscriber) run() {
	ctx := s.wakeups.ctx
	delay := resubscribeDelay
	for {
		started := time.Now()
		err := s.listen(ctx)
		if err == nil {
			return
		}
		if time.Since(started) > resubscribeDelayMax {
			delay = resubscribeDelay
		}
		s.wakeups.report.warn("wake-ups are not heard; waiting calls poll", "error", err)
		s.node.lookAgain()
		if pause(ctx, delay) != nil {
			return
		}
		s.relocate()
		delay = min(2*delay, resubscribeDelayMax)
	}
}

// relocate hands over the topics that come from elsewhere by now.
func (s *subscriber) relocate() {
	w := s.wakeups
	w.mu.Lock()
	channels := slices.Collect(maps.Keys(s.topics))
	w.mu.Unlock()
	for _, channel := range channels {
		client := w.publisher(s.node, channel)
		if client == s.client {
			continue
		}
		w.mu.Lock()
		t := s.topics[channel]
		delete(s.topics, channel)
		w.add(s.node, client, t.names, t.watchers)
		w.mu.Unlock()
	}
}

// listen serves one connection until it fails. It returns nil when there is
// nothing to hear any more, or at the end.
func (s *subscriber) listen(ctx context.Context) error {
	if _, end := s.idleTopics(); end {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	open, more, less := s.client.Subscribe, (*redis.PubSub).Subscribe, (*redis.PubSub).Unsubscribe
	if s.wakeups.sharded {
		open, more, less = s.client.SSubscribe, (*redis.PubSub).SSubscribe, (*redis.PubSub).SUnsubscribe
	}
	conn := open(ctx)
	var heard atomic.Int64 // what arrived so far
	failed := make(chan error, 1)
	s.wakeups.tasks.start(func() { failed <- s.read(ctx, conn, &heard) })
	defer func() {
		cancel()
		_ = conn.Close() // makes read return
		s.forget()
	}()

	for _, channels := range s.commands(s.topicsToAsk(true)) {
		if err := more(conn, ctx, channels...); err != nil {
			return err
		}
	}
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	seen := int64(-1)
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case <-s.kick:
			for _, channels := range s.commands(s.topicsToAsk(false)) {
				if err := more(conn, ctx, channels...); err != nil {
					return err
				}
			}
		case <-tick.C:
			if heard.Load() == seen {
				return errSilent
			}
			seen = heard.Load()
			idle, end := s.idleTopics()
			if end {
				return nil
			}
			for _, channels := range s.commands(idle) {
				if err := less(conn, ctx, channels...); err != nil {
					return err
				}
			}
			if err := conn.Ping(ctx); err != nil {
				return err
			}
		}
	}
}

var (
	errSilent    = errors.New("the subscription connection does not answer")
	errMovedAway = errors.New("the channel's hash slot has moved to another node")
)

// read passes on what arrives. Every confirmation of a subscription is a wake-up
// too: what was published before it is lost.
func (s *subscriber) read(ctx context.Context, conn *redis.PubSub, heard *atomic.Int64) error {
	for {
		message, err := conn.Receive(ctx)
		if err != nil {
			return err
		}
		heard.Add(1)
		switch m := message.(type) {
		case *redis.Subscription:
			switch m.Kind {
			case "subscribe", "ssubscribe":
				s.confirm(m.Channel)
			case "sunsubscribe":
				if n, _ := s.about(m.Channel); n.lock != "" {
					return errMovedAway
				}
			}
		case *redis.Message:
			n, ours := s.about(m.Channel)
			switch {
			case n.lock == "" || m.Payload == forOthers:
			case ours:
				s.confirmed(n)
				pause, _ := strconv.Atoi(m.Payload)
				s.wakeups.turn(n, time.Duration(pause)*time.Millisecond)
			default:
				s.wakeups.signal(n.lock)
			}
		}
	}
}

// forOthers is a wake-up for those that do not stand in line, and read it as 0.
const forOthers = "00"

// about returns the lock that a channel speaks of, no name when nobody wants to hear
// it. ours: the channel is for this process only.
func (s *subscriber) about(channel string) (n names, ours bool) {
	s.wakeups.mu.Lock()
	defer s.wakeups.mu.Unlock()
	channel, ours = strings.CutSuffix(channel, ":"+s.wakeups.process)
	if t := s.topics[channel]; t != nil {
		n = t.names
	}
	return n, ours
}

// confirm notes that a subscription stands. Both channels of a lock are subscribed
// to at once.
func (s *subscriber) confirm(channel string) {
	n, ours := s.about(channel)
	if n.lock == "" || !ours {
		return
	}
	s.confirmed(n)
	s.wakeups.signal(n.lock)
}

// confirmed notes that wake-ups for a lock arrive.
func (s *subscriber) confirmed(n names) {
	s.wakeups.mu.Lock()
	defer s.wakeups.mu.Unlock()
	if t := s.topics[n.channel()]; t != nil {
		t.confirmed = true
	}
}

// commands are the channels of topics, by the commands that name them: one, but a
// sharded one must keep to a slot.
func (s *subscriber) commands(topics []string) (commands [][]string) {
	var all []string
	for _, channel := range topics {
		both := []string{channel, channel + ":" + s.wakeups.process}
		if s.wakeups.sharded {
			commands = append(commands, both)
		} else {
			all = append(all, both...)
		}
	}
	if len(all) > 0 {
		commands = append(commands, all)
	}
	return commands
}

// topicsToAsk returns the topics to subscribe to: all, or those not asked for.
func (s *subscriber) topicsToAsk(all bool) []string {
	s.wakeups.mu.Lock()
	defer s.wakeups.mu.Unlock()
	var channels []string
	for channel, t := range s.topics {
		if all || !t.asked {
			t.asked = true
			channels = append(channels, channel)
		}
	}
	return channels
}

// idleTopics drops the topics nobody has wanted for a while. end says that none
// is left: the subscriber is over.
func (s *subscriber) idleTopics() (idle []string, end bool) {
	s.wakeups.mu.Lock()
	defer s.wakeups.mu.Unlock()
	for channel, t := range s.topics {
		if t.watchers == 0 && time.Since(t.idleSince) > linger {
			delete(s.topics, channel)
			idle = append(idle, channel)
		}
	}
	if len(s.topics) == 0 {
		delete(s.wakeups.byClient, s.client)
		return nil, true
	}
	return idle, false
}

// forget notes that the connection is gone.
func (s *subscriber) forget() {
	s.wakeups.mu.Lock()
	defer s.wakeups.mu.Unlock()
	for _, t := range s.topics {
		t.asked, t.confirmed = false, false
	}
}
