package waitqueue_test

import (
	"errors"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
)

// A call wants a word, and is passed a word.
type (
	queues = waitqueue.Queues[string, string, string]
	waiter = waitqueue.Waiter[string, string, string]
)

func join(t *testing.T, q *queues, request string) *waiter {
	t.Helper()
	w, ok := q.Join("lock", "", request, nil)
	if !ok {
		t.Fatalf("%s was refused", request)
	}
	return w
}

func isHead(w *waiter) bool {
	select {
	case <-w.IsHead():
		return true
	default:
		return false
	}
}

func signalled(w *waiter) bool {
	select {
	case <-w.Signal():
		return true
	default:
		return false
	}
}

func anybody(string) bool { return true }

func byP(string, string) string { return "p" }

func TestFirstComeFirstServed(t *testing.T) {
	var q queues
	a, b, c := join(t, &q, "a"), join(t, &q, "b"), join(t, &q, "c")
	if !a.First() || b.First() || isHead(b) {
		t.Fatal("b is head beside a")
	}
	a.Took(time.Time{}, false)
	if !isHead(b) || isHead(c) {
		t.Fatal("after a not b is head")
	}
	if signalled(b) {
		t.Error("b asks at once, although a has the lock")
	}
	b.Leave()
	if !isHead(c) || !signalled(c) {
		t.Error("after b, which left in vain, c does not ask at once")
	}
}

func TestOnlyAHeadThatWaitsIsPassedTheLock(t *testing.T) {
	var q queues
	a := join(t, &q, "a")
	b := join(t, &q, "b")
	if q.Next("lock", anybody) != nil {
		t.Fatal("a is asking Redis, and was chosen")
	}
	a.Park()
	if q.Next("lock", func(r string) bool { return r != "a" }) != nil {
		t.Fatal("a was chosen for what it does not want")
	}
	w := q.Next("lock", anybody)
	if w != a {
		t.Fatal("not a was chosen")
	}
	if q.Next("lock", anybody) != nil {
		t.Fatal("chosen twice")
	}
	if a.Unpark() || a.Refuse() {
		t.Fatal("a does not know that the lock is about to arrive")
	}
	w.Pass("a lock")
	if got := <-a.Passed(); got != "a lock" {
		t.Fatalf("got %q", got)
	}
	a.Took(time.Time{}, false)
	if q.Next("lock", anybody) != b {
		t.Error("b is head, though it has not noticed, and was not chosen")
	}
}

func TestWhoLeavesIsNotPassedTheLock(t *testing.T) {
	var q queues
	a := join(t, &q, "a")
	a.Park()
	if !a.Refuse() || q.Next("lock", anybody) != nil {
		t.Error("a was chosen after it had refused")
	}
}

func TestMaxWaiters(t *testing.T) {
	var q queues
	most := 1
	a := join(t, &q, "a") // has not been answered: does not wait yet
	b, ok := q.Join("lock", "", "b", &most)
	if !ok {
		t.Fatal("b was refused, and nobody waits")
	}
	if _, ok := q.Join("lock", "", "c", &most); ok {
		t.Fatal("c was let in beside b")
	}
	refusal := errors.New("too many")
	until := time.Now().Add(time.Hour)
	a.WaitBy(byP)
	if !a.Busy(waitqueue.Taken{Until: until, Exact: true}, &most, refusal) {
		t.Error("no notifications are wanted")
	}
	if !isHead(b) || b.Err() != refusal {
		t.Error("b was not refused, although a waits now")
	}
	b.Leave() // is of no consequence
	if s := a.State(); !s.Answered || !s.Until.Equal(until) || !s.Exact || s.Local {
		t.Errorf("the state is %+v", s)
	}
	if a.Busy(waitqueue.Taken{Until: until, Exact: true}, nil, nil) {
		t.Error("notifications are wanted again")
	}
	if end := a.Leave(); !end.Notifications || end.Position != "p" {
		t.Errorf("nobody is left: %+v", end)
	}
}

func TestDismissedCallsHearWhy(t *testing.T) {
	var q queues
	a, b := join(t, &q, "a"), join(t, &q, "b")
	silent := errors.New("silent")
	a.Dismiss(silent)
	if !isHead(b) || b.Err() != silent {
		t.Error("b does not know")
	}
	if len(q.Locks()) > 0 {
		t.Error("the queue is left")
	}
}

func TestOwnersOfTheirOwnHaveAQueueApart(t *testing.T) {
	var q queues
	a := join(t, &q, "a")
	o, _ := q.Join("lock", "owner", "o", nil)
	if !o.First() {
		t.Fatal("o waits behind a")
	}
	o.Park()
	if q.Next("lock", anybody) != nil {
		t.Error("o was passed a lock of another owner")
	}
	a.WaitBy(byP)
	a.Busy(waitqueue.Taken{}, nil, nil)
	o.WaitBy(byP)
	if end := a.Leave(); end.Position != "" {
		t.Error("the position was given up, and o waits by it")
	}
	if end := o.Leave(); end.Position != "p" {
		t.Error("the position is kept for nobody")
	}
}

func TestSnapshotTellsWhoWaits(t *testing.T) {
	var q queues
	a := join(t, &q, "a")
	if _, ok := q.WaitFor("lock"); ok {
		t.Error("a waits, and was not answered yet")
	}
	join(t, &q, "b")
	if w, ok := q.WaitFor("lock"); !ok || w.Request != "b" || w.Calls != 1 {
		t.Errorf("%+v", w)
	}
	a.Busy(waitqueue.Taken{}, nil, nil)
	if w, ok := q.WaitFor("lock"); !ok || w.Request != "a" || w.Calls != 2 {
		t.Errorf("%+v", w)
	}
	if locks := q.Locks(); len(locks) != 1 || locks[0] != "lock" {
		t.Errorf("%q", locks)
	}
}

func TestOthersGoFirstNowAndThen(t *testing.T) {
	var q queues
	a := join(t, &q, "a")
	if a.Yields() != 0 {
		t.Error("it yields for no reason")
	}
	q.Yield("lock")
	if a.Yields() <= 0 {
		t.Error("it does not yield")
	}
	if !q.Reserved("lock", time.Hour) || !signalled(a) || a.Yields() < time.Minute {
		t.Error("granted after an hour: it does not know")
	}
	if q.Reserved("other", 0) {
		t.Error("somebody waits for another lock")
	}
}

func TestWhoIsBeingPassedTheLockIsNotChosenAgain(t *testing.T) {
	var q queues
	a, b := join(t, &q, "a"), join(t, &q, "b")
	a.Took(time.Time{}, false)
	if q.Next("lock", anybody) != b {
		t.Fatal("b was not chosen")
	}
	b.Park() // it notices only now that it is head
	if q.Next("lock", anybody) != nil {
		t.Error("b was chosen twice")
	}
}

func TestThePositionOutlastsALockThatIsPassedOn(t *testing.T) {
	var q queues
	a := join(t, &q, "a")
	a.WaitBy(byP)
	a.Busy(waitqueue.Taken{}, nil, nil)
	a.Park()
	q.Next("lock", anybody).Pass("a lock")
	<-a.Passed()
	if end := a.Took(time.Time{}, false); end.Position != "p" {
		t.Error("nobody waits, and the position is kept")
	}
}
