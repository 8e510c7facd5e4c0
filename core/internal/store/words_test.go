package store

import (
	"reflect"
	"strconv"
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
	name := NewName("lock:", "k")
	for _, tc := range []struct {
		claim *Claim
		want  []any
	}{
		{&Claim{Holding: Holding{Owner: "p:1"}, Terms: Terms{Lease: usualLease}, Wait: Listening}, []any{"p:1"}},
		{&Claim{Holding: Holding{Owner: "p:1"}, Terms: Terms{Lease: time.Second}, Wait: Listening}, []any{"p:1", int64(1000), int64(1)}},
		{&Claim{Holding: Holding{Owner: "p:1"}, Terms: Terms{Lease: usualLease}, Wait: Polling}, []any{"p:1", int64(30_000), int64(2)}},
		{&Claim{Holding: Holding{Owner: "p:1"}, Terms: Terms{Lease: time.Second}}, []any{"p:1", int64(1000), int64(0)}},
		{&Claim{Holding: Holding{Owner: "o"}, Terms: Terms{Lease: usualLease}}, []any{"o", int64(30_000), int64(0), "p:1", int64(0), "take", ""}},
		{&Claim{Holding: Holding{Owner: "p:1"}, Terms: Terms{Lease: usualLease, Fixed: true}, Wait: Listening}, []any{"p:1", int64(-30_000), int64(1), "p:1", int64(0), "take", ""}},
		{&Claim{Holding: Holding{Owner: "p:1"}, Terms: Terms{Lease: usualLease, Window: time.Minute}}, []any{"p:1", int64(30_000), int64(0), "p:1", int64(60_000), "take", ""}},
		{&Claim{Holding: Holding{Owner: "p:1"}, Terms: Terms{Lease: usualLease, Form: Permits(3)}, Wait: Listening}, []any{"p:1", int64(30_000), int64(1), "p:1", int64(0), "take", "p3"}},
		{&Claim{Holding: Holding{Owner: "p:1"}, Terms: Terms{Lease: usualLease, Form: Permits(12).Weighing(5)}, Wait: Listening}, []any{"p:1", int64(30_000), int64(1), "p:1", int64(0), "take", "p12w5"}},
		{&Claim{Holding: Holding{Owner: "p:1"}, Terms: Terms{Lease: time.Second, Window: time.Minute}, Way: Way{Ticket: "t"}}, []any{"p:1", int64(1000), int64(0), "p:1", int64(60_000), "resume", "", digest("t")}},
		{&Claim{Holding: Holding{Owner: "p:1"}, Terms: Terms{Lease: usualLease}, Way: Way{Attempt: &Attempt{Request: "ab", Known: time.Minute, Refuse: true}}},
			[]any{"p:1", int64(30_000), int64(0), "p:1", int64(0), "attempt", "", "ab", int64(60_000), true}},
		{&Claim{Holding: Holding{Owner: "p:1"}, Terms: Terms{Lease: time.Second}, Way: Way{Enter: 7}, Wait: Polling}, []any{"p:1", int64(1000), int64(2), "p:1", int64(0), "enter", "", int64(7)}},
	} {
		c := tc.claim
		c.Name, c.Hold = name, "p:1"
		c.prepare(New(serverAt("a:1"), Config{Process: "p"}))
		want := append([]any{"lock:k", "lock:{lock:k}:queue", name.clock()}, tc.want...)
		if !reflect.DeepEqual(c.command.Words, want) || c.command.Keys != 3 {
			t.Errorf("%v\nwant %v", c.command.Words, want)
		}
	}
}

func TestWordsOfARelease(t *testing.T) {
	sole := Release{Holding: Holding{Name: NewName("lock:", "k"), Owner: "p:1", Hold: "p:1"}, Terms: Terms{Lease: usualLease}, Token: 7, LastToken: 7}
	with := func(change func(*Release)) Release {
		r := sole
		change(&r)
		return r
	}
	one, three := New(serverAt("a:1"), Config{}), NewQuorum([]*conn.Server{serverAt("a:1"), serverAt("b:1"), serverAt("c:1")}, Config{})
	for _, tc := range []struct {
		store   *Store
		release Release
		late    bool
		want    []any
	}{
		{one, sole, false, []any{"p:1", []byte("x7")}},
		{one, with(func(r *Release) { r.Work = Failed }), false, []any{"p:1", []byte("x7")}}, // it leaves nothing, so or so
		{one, with(func(r *Release) { r.Lease = time.Second }), false, []any{"p:1", []byte("x7 1000")}},
		{one, with(func(r *Release) { r.Lease = 0 }), false, []any{"p:1", []byte("x7 0")}}, // granted, not renewed

		{three, sole, false, []any{"p:1", int64(7), "p:1", int64(0), false, int64(0), "", int64(7)}},
		{one, sole, true, []any{"p:1", int64(7), "p:1", int64(0), true, int64(0), "", int64(7)}},
		{one, with(func(r *Release) { r.Entered = true }), false, []any{"p:1", int64(7), "p:1", int64(0), false, int64(0), "", int64(7)}},
		{one, with(func(r *Release) { r.MayArrive = true }), false, []any{"p:1", int64(7), "p:1", int64(0), false, int64(60_000), "", int64(7)}},
		{one, with(func(r *Release) { r.Window, r.Work = time.Minute, Failed }), false, []any{"p:1", int64(7), "p:1", int64(1), false, int64(0), "", int64(7)}},
		{one, with(func(r *Release) { r.Form, r.Work = Resumed, FailedForGood }), false, []any{"p:1", int64(7), "p:1", int64(2), false, int64(0), "", int64(7)}},
		{one, with(func(r *Release) { r.Enqueues = Entry{Hold: "p:2", Owner: "p:2"} }), false, []any{"p:1", int64(7), "p:1", int64(0), false, int64(0), "p:2", int64(7)}},
		{one, with(func(r *Release) { r.Enqueues = Entry{Hold: "p:2", Owner: "o"} }), false, []any{"p:1", int64(7), "p:1", int64(0), false, int64(0), "p:2 o", int64(7)}},
		{one, with(func(r *Release) { r.Enqueues = Entry{Hold: "p:2", Owner: "o", Form: Permits(3)} }), false, []any{"p:1", int64(7), "p:1", int64(0), false, int64(0), "p:2|p3 o", int64(7)}},
		{one, with(func(r *Release) { r.Form = Shared }), false, []any{"p:1", int64(7), "p:1", int64(0), false, int64(0), "", int64(7), "s"}},
		// Calls of this process have had later tokens than Redis knows.
		{one, with(func(r *Release) { r.LastToken = 9 }), false, []any{"p:1", int64(7), "p:1", int64(0), false, int64(0), "", int64(9)}},
	} {
		c := tc.release.command(tc.store, new(releaseCommand), tc.late)
		want := append([]any{"lock:k", "lock:{lock:k}:queue", sole.Name.clock()}, tc.want...)
		if !reflect.DeepEqual(c.Words, want) || c.Keys != 3 {
			t.Errorf("%d keys in %v\nwant %v", c.Keys, c.Words, want)
		}
	}
}

func TestWordsOfARenewal(t *testing.T) {
	s, w := New(serverAt("a:1"), Config{}), Renew{Name: NewName("lock:", "k"), Owner: "p:1", Token: 7, Lease: time.Second}
	if got, want := s.newRenewal(w).command.Words, []any{"lock:k", "p:1", []byte("x7 1000"), int64(1000)}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	w.First = true
	if got, want := s.newRenewal(w).command.Words, []any{"lock:k", "p:1", []byte("x7 1000"), int64(1000), "first"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// The nodes of a cluster pass plain messages on to one another: those who hear them cannot
// be counted at one node.
func TestWhatScriptsPublishBy(t *testing.T) {
	for _, tc := range []struct {
		server  *conn.Server
		sharded bool
		publish string
		counts  bool
	}{
		{serverAt("a:1"), false, "PUBLISH", true},
		{serverAt("a:1"), true, "SPUBLISH", true},
		{cluster(), false, "PUBLISH", false},
		{cluster(), true, "SPUBLISH", true},
	} {
		got, want := New(tc.server, Config{Sharded: tc.sharded}).scripts.release, newScripts(map[string]string{"PUBLISH": "'" + tc.publish + "'", "COUNTS": strconv.FormatBool(tc.counts)}).release
		if !reflect.DeepEqual(got, want) {
			t.Errorf("not by %s, counts %v", tc.publish, tc.counts)
		}
	}
}

// A server that hangs holds up the next attempt for half a second, whatever a request may take.
func TestCompensationsDoNotWaitLong(t *testing.T) {
	for _, timeout := range []time.Duration{2 * time.Second, 100 * time.Millisecond} {
		var c *Compensation
		s := New(serverAt("a:1"), Config{Timeout: timeout, Compensate: func(got *Compensation) { c = got }})
		s.Compensate(Release{Holding: Holding{Name: NewName("lock:", "k"), Hold: s.NewHold()}})
		if c.release.queued.Timeout != 500*time.Millisecond {
			t.Errorf("%v of %v", c.release.queued.Timeout, timeout)
		}
	}
}
