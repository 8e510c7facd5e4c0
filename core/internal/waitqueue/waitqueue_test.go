package waitqueue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
)

// A call wants a word, and is passed a word; so is a position.
type (
	queues = waitqueue.Queues[string, string, string]
	waiter = waitqueue.Waiter[string, string, string]
)

var background = context.Background()

const ms = time.Millisecond

func join(t *testing.T, q *queues, request string) *waiter {
	t.Helper()
	w, ok := q.Join("lock", "", request, nil)
	if !ok {
		t.Fatalf("%s was refused", request)
	}
	return w
}

// end is how a wait has ended, and when.
type end struct {
	ended waitqueue.Ended
	lock  string
	took  time.Duration
}

// wait waits in a goroutine. It returns when that waits.
func wait(w *waiter, delay time.Duration) <-chan end { return waitOver(background, w, delay, nil, nil) }

func waitOver(ctx context.Context, w *waiter, delay time.Duration, over <-chan time.Time, closing <-chan struct{}) <-chan end {
	ends, began := make(chan end, 1), time.Now()
	go func() {
		ended, lock := w.Wait(ctx, delay, over, closing)
		ends <- end{ended, lock, time.Since(began)}
	}()
	synctest.Wait()
	return ends
}

func want(t *testing.T, who string, ends <-chan end, want end) {
	t.Helper()
	if got := <-ends; got != want {
		t.Errorf("%s: %+v, want %+v", who, got, want)
	}
}

func wantWaiting(t *testing.T, who string, ends <-chan end) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-ends:
		t.Errorf("%s does not wait: %+v", who, got)
	default:
	}
}

func anybody(string) bool                  { return true }
func anyPosition(string, string) bool      { return true }
func is(position string) func(string) bool { return func(p string) bool { return p == position } }

// byRequest is a position that is named after the call which needed it first.
func byRequest(request, position string) string {
	if position == "" {
		position = "p of " + request
	}
	return position
}

func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a, b, c := join(t, &q, "a"), join(t, &q, "b"), join(t, &q, "c")
		if !a.First() || b.First() || c.First() {
			t.Fatal("not a alone is first")
		}
		forB, forC := wait(b, ms), wait(c, ms)
		time.Sleep(time.Second)
		a.Took(time.Time{}, false)
		want(t, "b", forB, end{ended: waitqueue.Head, took: time.Second})
		wantWaiting(t, "c", forC)
		want(t, "b, which need not ask at once", wait(b, 5*ms), end{ended: waitqueue.Ask, took: 5 * ms})
		b.Leave()
		want(t, "c", forC, end{ended: waitqueue.Head, took: time.Second + 5*ms})
		want(t, "c, after b left in vain", wait(c, 5*ms), end{ended: waitqueue.Ask})
		d := join(t, &q, "d")
		c.Took(time.Time{}, false)
		if s := d.State(); !s.Answered || !s.Local {
			t.Errorf("the state is %+v", s)
		}
		if end := d.Leave(); len(q.Locks()) > 0 || end.Notifications {
			t.Errorf("the queue is left: %+v", end)
		}
	})
}

// One in the middle that leaves changes nothing for the others.
func TestLeavingTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a, b, c := join(t, &q, "a"), join(t, &q, "b"), join(t, &q, "c")
		forA, forC := wait(a, ms), wait(c, time.Hour)
		b.Leave()
		want(t, "a", forA, end{ended: waitqueue.Ask, took: ms})
		wantWaiting(t, "c", forC)
		a.Took(time.Time{}, false)
		want(t, "c", forC, end{ended: waitqueue.Head, took: ms})
	})
}

func TestSignalHasTheHeadAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a, b := join(t, &q, "a"), join(t, &q, "b")
		forB := wait(b, 0)
		q.Signal("lock") // while a asks Redis: it is not lost
		q.Signal("lock")
		want(t, "a", wait(a, time.Hour), end{ended: waitqueue.Ask})
		forA := wait(a, time.Hour)
		wantWaiting(t, "a", forA) // the second was of the first
		q.Signal("other")
		wantWaiting(t, "a", forA)
		q.Signal("lock")
		want(t, "a", forA, end{ended: waitqueue.Ask})
		wantWaiting(t, "b", forB)
		a.Leave()
		<-forB
	})
}

func TestOnlyAHeadThatWaitsIsPassedTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a, b := join(t, &q, "a"), join(t, &q, "b")
		if q.Next("lock", anybody) != nil {
			t.Fatal("a is asking Redis, and was chosen")
		}
		forA := wait(a, time.Hour)
		if q.Next("lock", func(r string) bool { return r != "a" }) != nil || q.Next("other", anybody) != nil {
			t.Fatal("a was chosen for what it does not want")
		}
		w := q.Next("lock", anybody)
		if w != a || w.Request() != "a" {
			t.Fatal("not a was chosen")
		}
		if q.Next("lock", anybody) != nil {
			t.Fatal("chosen twice")
		}
		w.Pass("a lock")
		want(t, "a", forA, end{ended: waitqueue.Given, lock: "a lock"})
		a.Took(time.Time{}, false)
		if w := q.Next("lock", anybody); w != b {
			t.Fatal("b is head, though it has not noticed, and was not chosen")
		}
		forB := wait(b, 0)
		want(t, "b", forB, end{ended: waitqueue.Head})
		forB = wait(b, ms)
		if q.Next("lock", anybody) != nil {
			t.Error("b was chosen twice")
		}
		time.Sleep(time.Second)
		wantWaiting(t, "b, for which the lock is under way,", forB)
		b.Pass("a lock")
		want(t, "b", forB, end{ended: waitqueue.Given, lock: "a lock", took: time.Second})
	})
}

// A call that asks Redis is not passed the lock meanwhile; one that waits again is.
func TestWhoAsksIsNotPassedTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a := join(t, &q, "a")
		want(t, "a", wait(a, ms), end{ended: waitqueue.Ask, took: ms})
		if q.Next("lock", anybody) != nil {
			t.Fatal("a asks, and was chosen")
		}
		forA := wait(a, time.Hour)
		if q.Next("lock", anybody) != a {
			t.Fatal("a waits again, and was not chosen")
		}
		a.Pass("a lock")
		<-forA
	})
}

// A lock that arrives at the very end of a wait is given, whatever ends it.
func TestLockAtTheVeryEnd(t *testing.T) {
	closed := make(chan struct{})
	close(closed)
	for why, tc := range map[string]struct {
		delay   time.Duration
		over    bool
		cancels bool
		closing <-chan struct{}
		ended   waitqueue.Ended
	}{
		"the delay is over": {delay: ms, ended: waitqueue.Ask},
		"the wait is over":  {delay: time.Hour, over: true, ended: waitqueue.Over},
		"both are":          {delay: ms, over: true, ended: waitqueue.Over},
		"cancelled":         {delay: time.Hour, cancels: true, ended: waitqueue.Done},
		"closing":           {delay: time.Hour, closing: closed, ended: waitqueue.Closing},
	} {
		for _, chosen := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var q queues
				a, b := join(t, &q, "a"), join(t, &q, "b")
				a.Took(time.Time{}, false) // b is head, and can be chosen before it waits as head
				ctx, cancel := context.WithCancel(background)
				defer cancel()
				if chosen && q.Next("lock", anybody) != b {
					t.Fatal("b was not chosen")
				}
				want(t, "b", wait(b, 0), end{ended: waitqueue.Head})
				var over <-chan time.Time
				if tc.over {
					over = time.After(ms)
				}
				if tc.cancels {
					time.AfterFunc(ms, cancel)
				}
				ends := waitOver(ctx, b, tc.delay, over, tc.closing)
				time.Sleep(2 * ms)
				if !chosen {
					if got := <-ends; got.ended != tc.ended {
						t.Errorf("%s: %+v", why, got)
					}
					if q.Next("lock", anybody) != nil {
						t.Errorf("%s: b was chosen after its wait had ended", why)
					}
					c := join(t, &q, "c")
					b.Leave()
					if q.Next("lock", anybody) != c {
						t.Errorf("%s: c is head, and was not chosen", why)
					}
					return
				}
				wantWaiting(t, why, ends)
				b.Pass("a lock")
				if got := <-ends; got.ended != waitqueue.Given || got.lock != "a lock" {
					t.Errorf("%s: %+v; want the lock", why, got)
				}
			})
		}
	}
}

// Asking takes long in an outage: a wait that is over ends without it.
func TestOverComesBeforeAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 20 {
			var q queues
			a, over := join(t, &q, "a"), make(chan time.Time, 1)
			over <- time.Now()
			q.Signal("lock")
			want(t, "a", waitOver(background, a, time.Hour, over, nil), end{ended: waitqueue.Over})
		}
	})
}

// A call whose wait has ended while it was behind others is not chosen when it becomes head
// before it leaves.
func TestWhoLeavesIsNotChosenAsHead(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var q queues
			a, b, c := join(t, &q, "a"), join(t, &q, "b"), join(t, &q, "c")
			ctx, cancel := context.WithCancel(background)
			var over <-chan time.Time
			ended := waitqueue.Done
			if !cancelled {
				over, ended = time.After(ms), waitqueue.Over
			} else {
				time.AfterFunc(ms, cancel)
			}
			defer cancel()
			want(t, "b", waitOver(ctx, b, 0, over, nil), end{ended: ended, took: ms})
			a.Took(time.Time{}, false)
			b.Position(byRequest)
			if q.Next("lock", anybody) != nil {
				t.Error("b was chosen, which leaves")
			}
			if q.Granted("lock", anybody, anyPosition) != nil {
				t.Error("b was granted the lock, and leaves")
			}
			b.Leave()
			if q.Next("lock", anybody) != c {
				t.Error("c was not chosen")
			}
		})
	}
}

func TestMaxWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		none, most, two := 0, 1, 2
		a, ok := q.Join("lock", "", "a", &none) // has not been answered: does not wait yet
		if !ok {
			t.Fatal("a was refused, which only tries")
		}
		b, ok := q.Join("lock", "", "b", &most)
		if !ok {
			t.Fatal("b was refused, and nobody waits")
		}
		if c, ok := q.Join("lock", "", "c", &most); ok || c.State().Answered {
			t.Fatal("c was let in beside b")
		}
		forB := wait(b, 0)
		refusal := errors.New("too many")
		until := time.Now().Add(time.Hour)
		if !a.Busy(waitqueue.Taken{Until: until, Exact: true}, &most, refusal) {
			t.Error("no notifications are wanted")
		}
		want(t, "b", forB, end{ended: waitqueue.Refused})
		if b.Err() != refusal || a.Err() != nil {
			t.Error("b was not refused, although a waits now")
		}
		b.Leave() // is of no consequence
		if s := a.State(); !s.Answered || !s.Until.Equal(until) || !s.Exact || s.Local {
			t.Errorf("the state is %+v", s)
		}
		if _, ok := q.Join("lock", "owner", "o", &most); ok {
			t.Error("another owner was let in beside a")
		}
		if a.Busy(waitqueue.Taken{Until: until, Exact: true}, &none, refusal) {
			t.Error("notifications are wanted again")
		}
		if end := a.Leave(); !end.Notifications {
			t.Errorf("nobody is left: %+v", end)
		}
		a, b = join(t, &q, "a"), join(t, &q, "b")
		if a.Busy(waitqueue.Taken{}, &two, refusal); b.Err() != nil {
			t.Error("b was refused, and two may wait")
		}
	})
}

func TestDismissedCallsHearWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a, b, c := join(t, &q, "a"), join(t, &q, "b"), join(t, &q, "c")
		forB, forC := wait(b, 0), wait(c, 0)
		a.Position(byRequest)
		asked := time.Now()
		a.Silent(asked)
		time.Sleep(time.Second)
		if since := a.Silent(time.Now()); !since.Equal(asked) {
			t.Errorf("silent since %v", since)
		}
		silent := errors.New("silent")
		if end := a.Dismiss(silent); end.Position != "p of a" {
			t.Errorf("%+v", end)
		}
		want(t, "b", forB, end{ended: waitqueue.Refused, took: time.Second})
		want(t, "c", forC, end{ended: waitqueue.Refused, took: time.Second})
		for _, w := range []*waiter{a, b, c} {
			if w.Err() != silent {
				t.Error("one does not know why")
			}
			if end := w.Leave(); end != (waitqueue.End[string]{}) {
				t.Errorf("gave up again: %+v", end)
			}
		}
		if len(q.Locks()) > 0 {
			t.Error("the queue is left")
		}
	})
}

func TestOwnersOfTheirOwnHaveAQueueApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a := join(t, &q, "a")
		o, _ := q.Join("lock", "owner", "o", nil)
		o2, _ := q.Join("lock", "owner", "o2", nil)
		if !o.First() || o2.First() {
			t.Fatal("o waits behind a, or o2 not behind o")
		}
		forO := wait(o, time.Hour)
		if q.Next("lock", anybody) != nil {
			t.Error("o was passed a lock of another owner")
		}
		if p := a.Position(byRequest) + ", " + o.Position(byRequest); p != "p of a, p of o" {
			t.Errorf("they wait by %s", p)
		}
		if w := q.Granted("lock", is("p of o"), anyPosition); w != o {
			t.Fatal("o was not granted the lock by its position")
		}
		o.Pass("a lock")
		want(t, "o", forO, end{ended: waitqueue.Given, lock: "a lock"})
		if end := a.Leave(); end.Position != "p of a" {
			t.Errorf("%+v", end)
		}
		if o.Leave(); len(q.Locks()) == 0 {
			t.Error("the queue of o2 is gone")
		}
		if end := o2.Leave(); end.Position != "" || len(q.Locks()) > 0 {
			t.Errorf("a position that was used up is given up: %+v", end)
		}
	})
}

func TestSnapshotTellsWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a := join(t, &q, "a")
		if _, ok := q.WaitFor("lock"); ok {
			t.Error("a waits, and was not answered yet")
		}
		time.Sleep(ms)
		b := join(t, &q, "b")
		if w, ok := q.WaitFor("lock"); !ok || w.Request != "b" || w.Calls != 1 || w.Since != time.Now() {
			t.Errorf("%+v", w)
		}
		a.Busy(waitqueue.Taken{}, nil, nil)
		if w, ok := q.WaitFor("lock"); !ok || w.Request != "a" || w.Calls != 2 || w.Since != time.Now().Add(-ms) {
			t.Errorf("%+v", w)
		}
		_, _ = q.Join("lock", "owner", "o", nil)
		if w, _ := q.WaitFor("lock"); w.Request != "a" || w.Calls != 3 {
			t.Errorf("%+v", w)
		}
		if locks := q.Locks(); len(locks) != 1 || locks[0] != "lock" {
			t.Errorf("%q", locks)
		}
		time.Sleep(ms)
		join(t, &q, "c")
		a.Leave()
		b.Leave()
		if w, _ := q.WaitFor("lock"); w.Request != "o" || w.Calls != 2 {
			t.Errorf("%+v", w)
		}
	})
}

// Who was behind a call that tried with success waits.
func TestSnapshotAfterTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a := join(t, &q, "a")
		join(t, &q, "b")
		a.Took(time.Time{}, false)
		if w, ok := q.WaitFor("lock"); !ok || w.Request != "b" || w.Calls != 1 {
			t.Errorf("%+v", w)
		}
	})
}

// An open lock is for those outside the queues first: the head asks later, whatever else
// happens, and can be passed the lock meanwhile.
func TestOpenHasTheHeadAskLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		q.Open("lock", 3*ms) // nobody waits
		a := join(t, &q, "a")
		forA := wait(a, time.Hour)
		time.Sleep(time.Second)
		q.Open("lock", 3*ms)
		want(t, "a, which waits", forA, end{ended: waitqueue.Ask, took: time.Second + 3*ms})

		q.Open("lock", 3*ms)
		want(t, "a, which waits later", wait(a, time.Hour), end{ended: waitqueue.Ask, took: 3 * ms})

		q.Open("lock", 3*ms)
		want(t, "a, which would ask sooner", wait(a, ms), end{ended: waitqueue.Ask, took: 3 * ms})

		forA = wait(a, time.Hour)
		q.Open("lock", 3*ms)
		if q.Next("lock", anybody) != a {
			t.Fatal("a was not chosen")
		}
		a.Pass("a lock")
		want(t, "a, which is passed the lock", forA, end{ended: waitqueue.Given, lock: "a lock"})
		b := join(t, &q, "b")
		a.Took(time.Time{}, false)
		want(t, "b", wait(b, 0), end{ended: waitqueue.Head})
		want(t, "b, which is head after that", wait(b, ms), end{ended: waitqueue.Ask, took: 3 * ms})
	})
}

func TestNotificationsAreWantedOnce(t *testing.T) {
	var q queues
	if q.Watch("lock") {
		t.Error("nobody waits")
	}
	a := join(t, &q, "a")
	if !q.Watch("lock") || q.Watch("lock") || q.Watch("other") {
		t.Error("notifications are wanted other than once")
	}
	if a.Busy(waitqueue.Taken{}, nil, nil) {
		t.Error("notifications are wanted by Busy as well")
	}
	if end := a.Leave(); !end.Notifications {
		t.Errorf("nobody is left: %+v", end)
	}
}

// A position outlasts a lock that is passed on in memory, and is used up by a grant.
func TestPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a, b, c := join(t, &q, "a"), join(t, &q, "b"), join(t, &q, "c")
		a.Position(byRequest)
		if p := q.Waits("lock", byRequest); p != "" {
			t.Errorf("%q, and nobody is notified", p)
		}
		a.Busy(waitqueue.Taken{}, nil, nil)
		forA := wait(a, time.Hour)
		q.Next("lock", anybody).Pass("a lock")
		want(t, "a", forA, end{ended: waitqueue.Given, lock: "a lock"})
		if p := q.Waits("lock", byRequest); p != "p of a" {
			t.Errorf("the process goes on waiting by %q", p)
		}
		a.Took(time.Time{}, false)
		if p := b.Position(byRequest); p != "p of a" {
			t.Errorf("b waits by %q", p)
		}

		// Redis gives the lock to the position.
		if q.Granted("lock", is("another"), anyPosition) != nil {
			t.Error("granted by another position")
		}
		if q.Granted("lock", is("p of a"), func(request, position string) bool { return request != "b" }) != nil {
			t.Error("granted to who does not fit")
		}
		want(t, "b", wait(b, 0), end{ended: waitqueue.Head})
		want(t, "b, which asks for what it was not given,", wait(b, time.Hour), end{ended: waitqueue.Ask})
		forB := wait(b, time.Hour)
		fits := func(request, position string) bool { return request+position == "bp of a" }
		if q.Granted("lock", is("p of a"), fits) != b {
			t.Fatal("not granted to b")
		}
		if q.Granted("lock", is("p of a"), anyPosition) != nil {
			t.Error("granted twice by one position")
		}
		b.Pass("a grant")
		want(t, "b", forB, end{ended: waitqueue.Given, lock: "a grant"})
		b.Took(time.Time{}, false)

		// Redis gives it to the call that asks.
		if p := c.Position(byRequest); p != "p of c" {
			t.Errorf("c waits by %q", p)
		}
		d := join(t, &q, "d")
		c.Took(time.Time{}, false)
		if p := d.Position(byRequest); p != "p of d" {
			t.Errorf("d waits by %q", p)
		}
		if end := d.Leave(); end.Position != "p of d" {
			t.Errorf("nobody is left: %+v", end)
		}
	})
}

// A queue that has no position yet is not granted the lock, and not disturbed.
func TestGrantWithoutAPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a := join(t, &q, "a")
		forA := wait(a, time.Hour)
		if q.Granted("lock", anybody, anyPosition) != nil {
			t.Error("granted")
		}
		wantWaiting(t, "a", forA)
		q.Signal("lock")
		<-forA
	})
}
