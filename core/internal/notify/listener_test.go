//go:build go1.25

package notify_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// bubble runs a test with a listener to one server.
func bubble(t *testing.T, sharded bool, test func(t *testing.T, s *server, l *listener)) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		test(t, s, listen(t, sharded, s.client()))
	})
}

func TestMessages(t *testing.T) {
	bubble(t, false, func(t *testing.T, s *server, l *listener) {
		l.wantSubscribed(t, "c", false)
		l.Watch("k", "c")
		l.want(t, "free k")
		l.wantSubscribed(t, "c", true)
		s.Publish("c", "0")
		l.want(t, "free k")
		s.Publish("c", "00")
		s.Publish("c:me", "00")
		s.Publish("c:other", "0")
		l.want(t)
		s.Publish("c:me", "0")
		s.Publish("c:me", "17")
		l.want(t, "message k 0", "message k 17")
		l.Watch("k2", "c2")
		l.want(t, "free k2")
		s.wantCommands(t, []string{"SUBSCRIBE", "c", "c:me"}, []string{"SUBSCRIBE", "c2", "c2:me"})
	})
}

func TestAChannelLingersAfterItsLastWatcher(t *testing.T) {
	bubble(t, false, func(t *testing.T, s *server, l *listener) {
		l.Watch("k", "c")
		l.Watch("k", "c")
		l.want(t, "free k")
		l.Watch("k2", "c2")
		l.want(t, "free k2")
		l.Unwatch("c")
		time.Sleep(time.Minute)
		s.Publish("c", "0")
		l.want(t, "free k")
		l.Unwatch("c")
		l.Unwatch("c") // once too often
		time.Sleep(4 * time.Second)
		s.Publish("c", "0")
		l.want(t, "free k")
		s.mu.Lock()
		s.commands = nil
		s.mu.Unlock()
		time.Sleep(5 * time.Second)
		s.wantCommands(t, []string{"UNSUBSCRIBE", "c", "c:me"})
		l.wantSubscribed(t, "c", false)
		l.wantSubscribed(t, "c2", true)
		l.Watch("k", "c")
		l.want(t, "free k")
	})
}

func TestTheConnectionEndsWithTheLastChannel(t *testing.T) {
	bubble(t, false, func(t *testing.T, s *server, l *listener) {
		for range 2 {
			start := time.Now()
			l.Watch("k", "c")
			l.want(t, "free k")
			l.Unwatch("c")
			l.workers.Wait()
			if took := time.Since(start); took < 5*time.Second || took > 9*time.Second {
				t.Errorf("the connection has ended after %v; want some seconds", took)
			}
			synctest.Wait()
			if n := s.PubSubChannels("*"); len(n) > 0 {
				t.Errorf("still subscribed to %q", n)
			}
		}
		l.want(t)
	})
}

func TestABrokenConnectionIsReplaced(t *testing.T) {
	bubble(t, false, func(t *testing.T, s *server, l *listener) {
		l.Watch("k", "c")
		l.want(t, "free k")
		l.Watch("k2", "c2")
		l.Unwatch("c2") // nobody waits for that one
		l.want(t, "free k2")
		s.set(true, "")
		s.breakConnections()
		l.want(t, "free k", "warn")
		l.wantSubscribed(t, "c", false)
		time.Sleep(40 * ms)
		l.want(t)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(l.lines); n < 8 || n > 20 {
			t.Errorf("%d attempts in 10 s; want the pauses to grow to a second", n)
		}
		l.lines = nil
		s.set(false, "")
		time.Sleep(2 * time.Second)
		l.want(t, "again", "free k")
		s.breakConnections()
		time.Sleep(60 * ms)
		l.want(t, "free k", "warn", "again", "free k") // the pause is short again
		l.wantSubscribed(t, "c", true)
	})
}

func TestASilentConnectionIsReplaced(t *testing.T) {
	bubble(t, false, func(t *testing.T, s *server, l *listener) {
		l.Watch("k", "c")
		time.Sleep(time.Minute)
		l.want(t, "free k")
		s.set(false, "PING")
		time.Sleep(6 * time.Second)
		s.set(false, "")
		time.Sleep(time.Second)
		l.want(t, "free k", "warn", "again", "free k")
		l.wantSubscribed(t, "c", true)
	})
}

func TestASubscriptionMayBeConfirmedLate(t *testing.T) {
	bubble(t, false, func(t *testing.T, s *server, l *listener) {
		s.set(false, "SUBSCRIBE")
		l.Watch("k", "c")
		time.Sleep(5 * time.Second)
		l.want(t)
		time.Sleep(2 * time.Second)
		l.want(t, "warn")
	})
}

func TestAQuorumIsHeardWhenAMajorityIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := newServer(t), newServer(t), newServer(t)
		a.set(true, "")
		b.set(true, "")
		l := listen(t, false, a.client(), b.client(), c.client())
		l.Watch("k", "c")
		l.wantSubscribed(t, "c", false)
		b.set(false, "")
		time.Sleep(2 * time.Second)
		l.wantSubscribed(t, "c", true)
	})
}

func TestStopEndsAllConnections(t *testing.T) {
	for _, hangs := range []string{"", "SUBSCRIBE"} {
		bubble(t, false, func(t *testing.T, s *server, l *listener) {
			s.set(false, hangs)
			l.Watch("k", "c")
			synctest.Wait()
			l.lines = nil
			start := time.Now()
			l.Stop()
			l.Watch("k2", "c2")
			l.workers.Wait()
			if took := time.Since(start); took > 0 {
				t.Errorf("with %q hanging, the connections end after %v", hangs, took)
			}
			l.wantSubscribed(t, "c", false)
			time.Sleep(time.Minute)
			for _, line := range l.lines {
				if line != "free k" {
					t.Errorf("after Stop: %q", line)
				}
			}
		})
	}
}

func TestStopWhileNothingConnects(t *testing.T) {
	bubble(t, false, func(t *testing.T, s *server, l *listener) {
		s.set(true, "")
		l.Watch("k", "c")
		time.Sleep(10*time.Second + 10*ms)
		start := time.Now()
		l.Stop()
		l.workers.Wait()
		if took := time.Since(start); took > 0 {
			t.Errorf("the pause before an attempt held Stop up for %v", took)
		}
	})
}

func TestShardedChannelsShareNoCommand(t *testing.T) {
	bubble(t, true, func(t *testing.T, s *server, l *listener) {
		l.Watch("k", "c")
		l.want(t, "free k")
		l.Watch("k2", "c2")
		l.want(t, "free k2")
		s.wantCommands(t, []string{"SSUBSCRIBE", "c", "c:me"}, []string{"SSUBSCRIBE", "c2", "c2:me"})
		s.breakConnections()
		time.Sleep(time.Second)
		l.wantSubscribed(t, "c", true)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, command := range s.commands[1:] { // the first is go-redis's own attempt
			if len(command) != 3 {
				t.Errorf("%q after a reconnection; want a command for each lock", command)
			}
		}
	})
}

func TestAServerThatLosesTheSlotIsLeft(t *testing.T) {
	bubble(t, true, func(t *testing.T, s *server, l *listener) {
		l.Watch("k", "c")
		l.want(t, "free k")
		reply(s.peer, "sunsubscribe", "unknown")
		l.want(t)
		reply(s.peer, "sunsubscribe", "c")
		l.want(t, "free k", "warn")
		time.Sleep(time.Second)
		l.want(t, "again", "free k")
	})
}

// That the server confirms the end of a subscription does not mean that it has lost the slot,
// whoever wants to hear the channel by then.
func TestAShardedChannelThatIsWatchedAgain(t *testing.T) {
	bubble(t, true, func(t *testing.T, s *server, l *listener) {
		l.Watch("k2", "c2")
		l.want(t, "free k2")
		l.Watch("k", "c")
		l.want(t, "free k")
		l.Unwatch("c")
		time.Sleep(6*time.Second + 50*ms)
		s.wantCommands(t, []string{"SSUBSCRIBE", "c2", "c2:me"}, []string{"SSUBSCRIBE", "c", "c:me"}, []string{"SUNSUBSCRIBE", "c", "c:me"})
		l.Watch("k", "c")
		time.Sleep(time.Second)
		l.want(t, "free k")
		l.wantSubscribed(t, "c", true)
	})
}

// A ring moves keys away from shards that are down, and has no place for them when all
// are.
func TestAChannelFollowsItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := map[string]*server{"127.0.0.1:1": newServer(t), "127.0.0.1:2": newServer(t)}
		ring := redis.NewRing(&redis.RingOptions{
			Addrs:              map[string]string{"one": "127.0.0.1:1", "two": "127.0.0.1:2"},
			HeartbeatFrequency: 100 * ms,
			HeartbeatFn: func(_ context.Context, c *redis.Client) bool {
				s := servers[c.Options().Addr]
				s.mu.Lock()
				defer s.mu.Unlock()
				return !s.down
			},
			NewClient: func(o *redis.Options) *redis.Client { return redis.NewClient(servers[o.Addr].options(o.Addr)) },
		})
		l := listen(t, false, ring)
		l.Watch("k", "c")
		l.want(t, "free k")
		var home, other *server
		for _, s := range servers {
			if len(s.PubSubChannels("c")) > 0 {
				home = s
			} else {
				other = s
			}
		}
		if home == nil || other == nil {
			t.Fatal("no server has the channel, or both have")
		}
		fail := func(s *server) {
			s.set(true, "")
			s.breakConnections()
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
		fail(home)
		l.wantSubscribed(t, "c", true)
		if other.Publish("c", "0") != 1 {
			t.Error("the channel has not moved")
		}
		fail(other)
		l.wantSubscribed(t, "c", false)
		home.set(false, "")
		time.Sleep(5 * time.Second)
		l.wantSubscribed(t, "c", true)
		l.Unwatch("c")
		l.workers.Wait()
	})
}
