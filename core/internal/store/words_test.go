package store

import (
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

func serverAt(addr string) *conn.Server {
	return conn.New(redis.NewClient(&redis.Options{Addr: addr}), conn.Config{})
}

func cluster() *conn.Server {
	return conn.New(redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"a:1"}}), conn.Config{})
}

func TestWordsOfAClaim(t *testing.T) {
	const hold = holdField + "p:1"
	name := NewName("lock:", "k")
	for _, tc := range []struct {
		claim Claim
		want  []any
	}{
		{Claim{Owner: "p:1", Lease: usualLease, Queue: QueuedToHold}, []any{"p:1"}},
		{Claim{Owner: "p:1", Lease: time.Second, Queue: QueuedToHold}, []any{"p:1", int64(1000)}},
		{Claim{Owner: "p:1", Lease: time.Second, Queue: QueuedAlone}, []any{"p:1", int64(1000), "1"}},
		{Claim{Owner: "p:1", Lease: usualLease}, []any{"p:1", int64(30_000), "0"}},
		{Claim{Owner: "o", Lease: usualLease}, []any{"o", int64(30_000), "0", hold, int64(0), ""}},
		{Claim{Owner: "p:1", Lease: usualLease, Fixed: true, Window: time.Minute}, []any{"p:1", int64(-30_000), "0", hold, int64(60_000), ""}},
		{Claim{Owner: "p:1", Lease: time.Second, Enter: 7, Queue: QueuedAlone}, []any{"p:1", int64(1000), "1", hold, int64(0), int64(7)}},
	} {
		c := tc.claim
		c.Name, c.Hold = name, hold
		c.prepare(New(serverAt("a:1"), Config{Process: "p"}))
		want := append([]any{"lock:k", "lock:{lock:k}:queue", name.clock()}, tc.want...)
		if !reflect.DeepEqual(c.command.Words, want) || c.command.Keys != 3 {
			t.Errorf("%v\nwant %v", c.command.Words, want)
		}
	}
}

func TestWordsOfARelease(t *testing.T) {
	one, sharded := serverAt("a:1"), Config{Process: "p", Sharded: true}
	r := Release{Name: NewName("lock:", "k"), Owner: "o", Hold: holdField + "p:1", Listens: true, Waits: "p", Token: 7, Last: 7, Lease: usualLease}
	failed, doubled, passed, sole := r, r, r, r
	failed.Failed, failed.Waits = true, ""
	doubled.Doubled = true
	passed.Last, passed.Sole, passed.Listens, passed.Waits = 9, true, false, ""
	sole.Sole, sole.Listens, sole.Waits = true, false, ""
	short, soleButDoubled, soleThatListens := sole, sole, sole
	short.Lease, soleButDoubled.Doubled, soleThatListens.Listens = time.Second, true, true
	const hold = "latchkey:hold:p:1"
	for _, tc := range []struct {
		store   *Store
		release Release
		late    bool
		want    []any
	}{
		{New(one, Config{Process: "p"}), r, false, []any{"PUBLISH", "o", hold, "0", int64(0), "p", ""}},
		{New(one, Config{Process: "p"}), failed, true, []any{"PUBLISH", "o", hold, "1", int64(-1), "1", ""}},
		{New(one, sharded), doubled, true, []any{"SPUBLISH", "o", hold, "0", int64(60_000), "p", ""}},
		// Calls of this process have had later tokens than Redis knows.
		{New(one, Config{Process: "p"}), passed, false, []any{"PUBLISH", "o", hold, "0", int64(0), "0", int64(9)}},
		{New(one, Config{Process: "p"}), sole, true, []any{"PUBLISH", "o", hold, "0", int64(-1), "0", ""}},
		{New(one, Config{Process: "p"}), soleButDoubled, false, []any{"PUBLISH", "o", hold, "0", int64(60_000), "0", ""}},
		{New(one, Config{Process: "p"}), soleThatListens, false, []any{"PUBLISH", "o", hold, "0", int64(0), "1", ""}},
		// A message may reach somebody at another node.
		{New(cluster(), Config{Process: "p"}), r, false, []any{"publish", "o", hold, "0", int64(0), "p", ""}},
		{New(cluster(), sharded), r, false, []any{"SPUBLISH", "o", hold, "0", int64(0), "p", ""}},
		{New(one, Config{Process: "p"}), Release{Name: r.Name, Owner: "p"}, false, []any{"PUBLISH", "p", "", "0", int64(0), "0", ""}},
	} {
		c := tc.release.command(tc.store, tc.late)
		want := append([]any{"lock:k", "lock:{lock:k}:queue", r.Name.clock()}, tc.want...)
		if !reflect.DeepEqual(c.Words, want) || c.Keys != 3 {
			t.Errorf("%d keys in %v\nwant %v", c.Keys, c.Words, want)
		}
	}
	for _, tc := range []struct {
		release Release
		held    string
	}{{sole, "7"}, {short, "7 1000"}} {
		c := tc.release.command(New(one, Config{Process: "p"}), false)
		if want := []any{"lock:k", "lock:{lock:k}:queue", r.Name.clock(), "PUBLISH", tc.held}; !reflect.DeepEqual(c.Words, want) || c.Keys != 3 {
			t.Errorf("%d keys in %v\nwant %v", c.Keys, c.Words, want)
		}
	}
}

// A server that hangs holds up the next attempt for half a second at most.
func TestCompensationsDoNotWaitLong(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{2 * time.Second: 500 * time.Millisecond, 100 * time.Millisecond: 100 * time.Millisecond} {
		var c *Compensation
		s := New(serverAt("a:1"), Config{Timeout: timeout, Compensate: func(got *Compensation) { c = got }})
		s.ReleaseLater(Release{Name: NewName("lock:", "k"), Hold: s.NewHold()})
		if c.queued.Timeout != want {
			t.Errorf("%v of %v, want %v", c.queued.Timeout, timeout, want)
		}
	}
}

// Replicas must have what holds a lock.
func TestReplicatedScripts(t *testing.T) {
	for script, want := range map[*conn.Script]bool{
		acquireScript: true, renewScript: true,
		releaseScript: false, inspectScript: false, forceScript: false, writeTokenScript: false,
	} {
		if script.Replicate != want || (script.Did != nil) != want {
			t.Errorf("Replicate is %v; want %v", script.Replicate, want)
		}
	}
	if !renewScript.Did(n(1)) || renewScript.Did(n(0)) {
		t.Error("a renewal that was refused needs no replicas")
	}
}

func TestSharesRedis(t *testing.T) {
	of := func(servers ...*conn.Server) *Store { return newStore(servers, Config{}) }
	a, b, c := serverAt("a:1"), serverAt("b:1"), serverAt("c:1")
	for _, tc := range []struct {
		x, y *Store
		want bool
	}{
		{of(a), of(serverAt("a:1")), true},
		{of(a), of(b), false},
		{of(a, b, c), of(c, a, b), true},
		{of(a, b, c), of(a, b, serverAt("d:1")), false},
		{of(a), of(a, b, c), false},
		{of(a, b, c), of(a), false},
	} {
		if got := tc.x.SharesRedis(tc.y); got != tc.want {
			t.Errorf("%d and %d servers: %v", len(tc.x.servers), len(tc.y.servers), got)
		}
	}
}
