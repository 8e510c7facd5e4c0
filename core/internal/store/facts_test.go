package store

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// What core asks of one Redis, of one with replicas, and of a quorum.
func TestWhatStoresCanDo(t *testing.T) {
	type facts struct {
		isQuorum, handOffNeedsRedis bool
		short, long                 time.Duration // margins of a lease of 100 ms, and of 10 s
		keepsResends                bool
	}
	const ms = time.Millisecond
	withReplicas := conn.New(redis.NewClient(&redis.Options{Addr: "a:1"}), conn.Config{Replicas: conn.Replicas{N: 1}})
	for what, tc := range map[string]struct {
		of   *Store
		want facts
	}{
		"one Redis": {New(serverAt("a:1"), Config{}), facts{short: ms, long: 10 * ms}},
		"replicas":  {New(withReplicas, Config{}), facts{handOffNeedsRedis: true, short: ms, long: 10 * ms}},
		"a quorum": {NewQuorum([]*conn.Server{serverAt("a:1"), serverAt("b:1"), serverAt("c:1")}, Config{}),
			facts{isQuorum: true, handOffNeedsRedis: true, short: 3 * ms, long: 102 * ms, keepsResends: true}},
	} {
		s := tc.of
		got := facts{s.IsQuorum(), s.HandOffNeedsRedis(), s.Margin(100 * ms), s.Margin(10 * time.Second), s.LateCopies(new(Claim)) != nil}
		if got != tc.want {
			t.Errorf("%s: %+v, want %+v", what, got, tc.want)
		}
		copied := new(Claim)
		copied.Resends.Copied()
		if s.LateCopies(copied) != &copied.Resends {
			t.Errorf("%s: a claim of which a copy may arrive is forgotten", what)
		}
	}
}
