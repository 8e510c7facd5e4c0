package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const piecesInTest = 20

// newTestShow is quicker than what people watch: all buyers come within the time
// given, an order takes 4 ms.
func newTestShow(t *testing.T, within time.Duration) *show {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { client.Close() })
	s, err := newShow(client, piecesInTest, within, 4*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(2 * time.Minute); !condition(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal("still waiting for ", what)
		}
	}
}

func begin(t *testing.T, s *show, buyers int) {
	t.Helper()
	if err := s.start(t.Context(), buyers); err != nil {
		t.Fatal(err)
	}
}

func awaitState(t *testing.T, s *show, state string) snapshot {
	t.Helper()
	await(t, "the state "+state, func() bool { return s.snapshot().State == state })
	return s.snapshot()
}

func TestOnlyTheSideWithoutLockOversells(t *testing.T) {
	s := newTestShow(t, 200*time.Millisecond)
	begin(t, s, 150)
	end := awaitState(t, s, "over")
	without, with := end.Sides[0], end.Sides[1]
	if without.Sold <= piecesInTest || without.MostInHand < 2 {
		t.Errorf("without the lock %d were sold, at most %d at once", without.Sold, without.MostInHand)
	}
	if with.Sold != piecesInTest || with.Left != 0 || with.MostInHand != 1 {
		t.Errorf("with the lock %d were sold, %d are left, at most %d at once", with.Sold, with.Left, with.MostInHand)
	}
	for i, side := range end.Sides {
		// On a busy machine Redis answers some too late, who buy nothing.
		if side.Sold+side.TurnedAway+side.Failed != 150 || side.InLine != 0 || side.PerSecond < 1 {
			t.Errorf("side %d: %+v", i, side)
		}
		servers := map[int]bool{}
		for _, o := range side.Orders {
			servers[o.Instance] = true
		}
		if len(side.Orders) != side.Sold || len(servers) < 2 {
			t.Errorf("side %d: %d orders on the timeline, by servers %v", i, len(side.Orders), servers)
		}
	}
	for i, o := range with.Orders {
		if i > 0 && o.From < with.Orders[i-1].To {
			t.Errorf("with the lock order %v began before the end of %v", o, with.Orders[i-1])
		}
	}
}

func TestStoppedInTheMiddle(t *testing.T) {
	s := newTestShow(t, 2*time.Minute)
	defer http.DefaultClient.CloseIdleConnections()
	for range 2 { // the second sale begins afresh
		begin(t, s, 100_000) // most of them never come
		if err := s.start(t.Context(), 1); !errors.Is(err, errRunning) {
			t.Fatalf("a second sale beside the first: %v", err)
		}
		await(t, "a line", func() bool { return s.snapshot().Sides[1].InLine > 0 && s.snapshot().Sides[1].Sold > 2 })
		s.stop()
		end := awaitState(t, s, "stopped")
		side := end.Sides[1]
		if side.InLine != 0 || side.Sold+side.Left != piecesInTest {
			t.Errorf("with the lock: %+v", side)
		}
		late := s.current.Load().sides[1]
		status, _ := post(t, s.instances[0].url+late.path+late.sku+"/buy", nil)
		if now := s.snapshot().Sides[1]; status != http.StatusGone || now.Sold != side.Sold || now.TurnedAway != side.TurnedAway {
			t.Errorf("a late request: %d, %d sold, then %d", status, side.Sold, now.Sold)
		}
	}
}

func TestSaleLeavesNoConnections(t *testing.T) {
	s := newTestShow(t, 20*time.Millisecond)
	begin(t, s, 50)
	awaitState(t, s, "over")
	stacks := make([]byte, 1<<20)
	await(t, "the buyers' connections to close", func() bool {
		all := stacks[:runtime.Stack(stacks, true)]
		return !bytes.Contains(all, []byte("net/http.(*persistConn).readLoop"))
	})
}

func TestShopHoldsOnlySoMany(t *testing.T) {
	s := newTestShow(t, time.Millisecond)
	begin(t, s, 500)
	await(t, "the stock to go", func() bool {
		now := s.snapshot().Sides[1]
		if now.InLine > shopHolds {
			t.Fatalf("%d in line", now.InLine)
		}
		return now.Sold == piecesInTest
	})
}

func TestCloseStopsTheSaleAndClosesTheLockers(t *testing.T) {
	s := newTestShow(t, time.Minute)
	begin(t, s, 100_000)
	await(t, "an order", func() bool { return s.snapshot().Sides[1].Sold > 0 })
	s.close()
	if state := s.snapshot().State; state != "stopped" {
		t.Errorf("the sale is %s", state)
	}
	for i, instance := range s.instances {
		if _, err := instance.locker.TryLock(t.Context(), "k"); !errors.Is(err, core.ErrClosed) {
			t.Errorf("the Locker of instance %d is open: %v", i, err)
		}
	}
	if err := s.start(t.Context(), 1); err == nil {
		t.Error("a sale begins on closed instances")
	}
}

func TestSideClosesWhenEmpty(t *testing.T) {
	s := newSide("/", "sku", 1, time.Now())
	if !s.enter() || s.close() {
		t.Fatal("it closes while somebody is in")
	}
	s.visits--
	if !s.close() || s.enter() || s.visits != 0 {
		t.Error("it does not close, or lets somebody in afterwards")
	}
}

func TestInLineIsWhoIsNotInHand(t *testing.T) {
	if n := (&side{visits: 5, inHand: 1}).snapshot().InLine; n != 4 {
		t.Errorf("%d in line", n)
	}
}

// Both timelines show the same time, so that they can be compared.
func TestTimelinesBeginTogether(t *testing.T) {
	s := newTestShow(t, 100*time.Millisecond)
	begin(t, s, 3)
	if r := s.current.Load(); r.sides[0].started != r.sides[1].started {
		t.Error("one sale begins before the other")
	}
	awaitState(t, s, "over")

	until := func(ends ...int64) (side sideSnapshot) {
		for _, end := range ends {
			side.Orders = append(side.Orders, order{From: end - 30, To: end})
		}
		return side
	}
	var lost sideSnapshot // all that it had before
	for i := range int64(lastOrders) {
		lost.Orders = append(lost.Orders, order{From: 5000 + i, To: 5001 + i})
	}
	for _, c := range []struct {
		what          string
		without, with sideSnapshot
		from, to      int64
	}{
		{"before the first order", until(), until(), 0, 1000},
		{"at the beginning", until(200), until(), 0, 1000},
		{"while both sell", until(1400, 2400), until(1300, 2300), 1300, 2300},
		{"when one is sold out", until(1500, 2400, 5100), until(2300, 3300), 2300, 3300},
		{"of a busy second", lost, until(5200), 5001, 5200},
		{"when that time is lost", lost, until(3300), 5001, 5256},
	} {
		if from, to := timeline(c.without, c.with); from != c.from || to != c.to {
			t.Errorf("%s: from %d to %d, want %d to %d", c.what, from, to, c.from, c.to)
		}
	}
}

func TestTimelineKeepsTheLastOrders(t *testing.T) {
	s := newSide("/", "sku", 1, time.Now())
	for i := range int64(3*lastOrders + 7) {
		s.keep(order{From: i, To: i})
	}
	got := s.snapshot().Orders
	if len(got) != lastOrders || cap(s.orders) > 2*lastOrders {
		t.Fatalf("%d orders, room for %d", len(got), cap(s.orders))
	}
	for i, o := range got {
		if want := int64(2*lastOrders + 7 + i); o.From != want {
			t.Fatalf("order %d is %d, want %d", i, o.From, want)
		}
	}
	text, err := json.Marshal(order{2, 10, 20})
	if err != nil || !bytes.Equal(text, []byte("[2,10,20]")) {
		t.Error(string(text), err)
	}
}
