//go:build go1.25

package waitqueue_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

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
	w, _ := q.Join("lock", "", request, nil)
	if w == nil {
		t.Fatalf("%s was refused", request)
	}
	return w
}

// open is join by the first call, which asks at once.
func open(t *testing.T, q *queues, request string) *waiter {
	t.Helper()
	w := join(t, q, request)
	want(t, request, wait(w, time.Hour), end{reason: waitqueue.AskRedis})
	return w
}

// end is how a wait has ended, and when.
type end struct {
	reason waitqueue.News
	lock   string
	err    error
	took   time.Duration
}

// known returns what the queue knows of the lock.
func known(w *waiter) waitqueue.Known { return w.Silent(time.Time{}, nil) }

// wait waits in a goroutine. It returns when that waits.
func wait(w *waiter, delay time.Duration) <-chan end {
	return waitOver(background, w, delay, time.Time{}, nil)
}

func waitOver(ctx context.Context, w *waiter, delay time.Duration, until time.Time, closing <-chan struct{}) <-chan end {
	ends, began := make(chan end, 1), time.Now()
	go func() {
		r := w.Wait(ctx, func(waitqueue.Known) time.Duration { return delay }, until, closing)
		ends <- end{r.News, r.Lock, r.Err, time.Since(began)}
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

func anybody(string, string) bool { return true }

func of(position string) func(string, string) bool {
	return func(_, p string) bool { return p == position }
}

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
		a, b, c := open(t, &q, "a"), join(t, &q, "b"), join(t, &q, "c")
		forB, forC := wait(b, 5*ms), wait(c, 5*ms)
		time.Sleep(time.Second)
		wantWaiting(t, "b", forB)
		a.Took(waitqueue.Taken{})
		want(t, "b, which need not ask at once", forB, end{reason: waitqueue.AskRedis, took: time.Second + 5*ms})
		wantWaiting(t, "c", forC)
		b.Leave()
		want(t, "c, after b left in vain", forC, end{reason: waitqueue.AskRedis, took: time.Second + 5*ms})
		d := join(t, &q, "d")
		c.Took(waitqueue.Taken{})
		if s := known(d); !s.Answered || !s.Local {
			t.Errorf("the state is %+v", s)
		}
		if end := d.Leave(); len(q.Locks()) > 0 || end.Watched {
			t.Errorf("the queue is left: %+v", end)
		}
	})
}

// How long to wait as head follows from what is known then.
func TestDelayIsOfWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a, b := open(t, &q, "a"), join(t, &q, "b")
		var heard waitqueue.Known
		ends := make(chan waitqueue.Result[string], 1)
		go func() {
			ends <- b.Wait(background, func(known waitqueue.Known) time.Duration {
				heard = known
				return 5 * ms
			}, time.Now().Add(6*ms), nil)
		}()
		synctest.Wait()
		until := time.Now().Add(time.Hour)
		a.Took(waitqueue.Taken{Until: until, By: waitqueue.FixedHolder})
		if r := <-ends; r.News != waitqueue.AskRedis || !heard.Local || !heard.Answered || !heard.Until.Equal(until) || heard.By != waitqueue.FixedHolder {
			t.Errorf("%+v, knowing %+v", r, heard)
		}
		b.Busy(waitqueue.Taken{Until: until}, nil)
		known := b.Wait(background, func(waitqueue.Known) time.Duration { return time.Hour }, time.Now(), nil).Known
		if want := (waitqueue.Known{Answered: true, Taken: waitqueue.Taken{Until: until}}); known != want {
			t.Errorf("the wait is over, knowing %+v", known)
		}
	})
}

// A head asks once for how long it waits, also where it is woken for what it knows already.
func TestDelayIsAskedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a, asked := open(t, &q, "a"), 0
		<-wait(a, ms)
		q.Signal("lock", 0)
		<-wait(a, ms) // which has not taken the news
		a.Wait(background, func(waitqueue.Known) time.Duration {
			asked++
			return ms
		}, time.Time{}, nil)
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
	})
}

// One in the middle that leaves changes nothing for the others.
func TestLeavingTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a, b, c := open(t, &q, "a"), join(t, &q, "b"), join(t, &q, "c")
		forA, forC := wait(a, ms), wait(c, time.Hour)
		b.Leave()
		want(t, "a", forA, end{reason: waitqueue.AskRedis, took: ms})
		wantWaiting(t, "c", forC)
		a.Took(waitqueue.Taken{})
		want(t, "c", forC, end{reason: waitqueue.AskRedis, took: time.Hour + ms})
		c.Leave()
		if q.Choose("lock", anybody) != nil {
			t.Error("somebody is left")
		}
	})
}

// Who has left is forgotten, also while others come and go without an end: those who leave do
// not hold on to those who came after them.
func TestWhoHasLeftIsForgotten(t *testing.T) {
	var q queues
	last := join(t, &q, "the first")
	gone := make([]weak.Pointer[waiter], 10)
	for i := range gone {
		next := join(t, &q, "the next")
		last.Took(waitqueue.Taken{})
		last, gone[i] = next, weak.Make(next)
	}
	runtime.GC()
	for i, w := range gone[:len(gone)-1] {
		if w.Value() != nil {
			t.Errorf("call %d is still there", i+1)
		}
	}
	runtime.KeepAlive(last)
}

// What one lone call has learnt of its lock says nothing about the next one's, although they
// have one piece of memory.
func TestLoneCalls(t *testing.T) {
	var q queues
	a := join(t, &q, "a")
	a.Busy(waitqueue.Taken{By: waitqueue.FixedHolder}, nil)
	a.Entry(byRequest)
	q.Signal("lock", time.Minute)
	a.Leave()
	b := join(t, &q, "b")
	if s := known(b); s != (waitqueue.Known{}) {
		t.Errorf("the state is %+v", s)
	}
	if end := b.Leave(); end.Watched || end.Entry != "" {
		t.Errorf("%+v", end)
	}
	if n := testing.AllocsPerRun(100, func() {
		c, _ := q.Join("one", "", "c", nil)
		d, _ := q.Join("another", "", "d", nil)
		c.Took(waitqueue.Taken{})
		d.Took(waitqueue.Taken{})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSignalHasTheHeadAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a, b := open(t, &q, "a"), join(t, &q, "b")
		forB := wait(b, 0)
		q.Signal("lock", 0) // while a asks Redis: it is not lost
		q.Signal("lock", 0)
		want(t, "a", wait(a, time.Hour), end{reason: waitqueue.AskRedis})
		forA := wait(a, time.Hour)
		wantWaiting(t, "a", forA) // the second was of the first
		q.Signal("other", 0)
		wantWaiting(t, "a", forA)
		q.Signal("lock", 0)
		want(t, "a", forA, end{reason: waitqueue.AskRedis})
		wantWaiting(t, "b", forB)
		a.Leave()
		<-forB
	})
}

func TestOnlyAHeadThatWaitsIsPassedTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a, b := open(t, &q, "a"), join(t, &q, "b")
		if q.Choose("lock", anybody) != nil {
			t.Fatal("a is asking Redis, and was chosen")
		}
		forA := wait(a, time.Hour)
		if q.Choose("lock", func(r, _ string) bool { return r != "a" }) != nil || q.Choose("other", anybody) != nil {
			t.Fatal("a was chosen for what it does not want")
		}
		w := q.Choose("lock", anybody)
		if w != a || w.Wants != "a" {
			t.Fatal("not a was chosen")
		}
		if q.Choose("lock", anybody) != nil {
			t.Fatal("chosen twice")
		}
		w.Give("a lock")
		want(t, "a", forA, end{reason: waitqueue.LockGiven, lock: "a lock"})
		a.Took(waitqueue.Taken{})
		if w := q.Choose("lock", anybody); w != b {
			t.Fatal("b is head, though it has not noticed, and was not chosen")
		}
		forB := wait(b, ms)
		if q.Choose("lock", anybody) != nil {
			t.Error("b was chosen twice")
		}
		time.Sleep(time.Second)
		wantWaiting(t, "b, for which the lock is under way,", forB)
		b.Give("a lock")
		want(t, "b", forB, end{reason: waitqueue.LockGiven, lock: "a lock", took: time.Second})
	})
}

// What was found is looked at again when somebody is chosen: the call may ask Redis by then, or have made room for
// another one, whose waiter has the same piece of memory.
func TestWhoWasFoundMayBeGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a := open(t, &q, "a")
		a.Entry(byRequest)
		forA := wait(a, ms)
		found := q.Find("lock")[0]
		if found != (waitqueue.Head[string, string]{Wants: "a", Entry: "p of a"}) {
			t.Errorf("found %+v", found)
		}
		asFound := func(r, p string) bool { return r == found.Wants && p == found.Entry }
		if q.Choose("lock", func(_, p string) bool { return p != "p of a" }) != nil {
			t.Error("a was chosen, and its entry was not to be had")
		}
		want(t, "a, which was not chosen,", forA, end{reason: waitqueue.AskRedis, took: ms})
		if q.Choose("lock", asFound) != nil {
			t.Error("a was chosen, and asks")
		}
		a.Leave()
		if q.Choose("lock", asFound) != nil {
			t.Error("a was chosen, and has left")
		}
		forB := wait(open(t, &q, "b"), ms)
		if q.Choose("lock", asFound) != nil {
			t.Error("b was chosen in place of a")
		}
		if n := testing.AllocsPerRun(100, func() {
			if q.Choose("lock", of("another")) != nil {
				t.Error("b was chosen by another position")
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
		<-forB
	})
}

// The next head can have the lock before it has noticed that it is head.
func TestLockThatComesBeforeTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a, b := open(t, &q, "a"), join(t, &q, "b")
		a.Took(waitqueue.Taken{})
		q.Choose("lock", anybody).Give("a lock")
		want(t, "b", wait(b, time.Hour), end{reason: waitqueue.LockGiven, lock: "a lock"})
	})
}

// A call that asks Redis is not passed the lock meanwhile; one that waits again is.
func TestWhoAsksIsNotPassedTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a := open(t, &q, "a")
		want(t, "a", wait(a, ms), end{reason: waitqueue.AskRedis, took: ms})
		if q.Choose("lock", anybody) != nil {
			t.Fatal("a asks, and was chosen")
		}
		forA := wait(a, time.Hour)
		if q.Choose("lock", anybody) != a {
			t.Fatal("a waits again, and was not chosen")
		}
		a.Give("a lock")
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
		reason  waitqueue.News
	}{
		"the delay is over": {delay: ms, reason: waitqueue.AskRedis},
		"the wait is over":  {delay: time.Hour, over: true, reason: waitqueue.WaitOver},
		"both are":          {delay: ms, over: true, reason: waitqueue.WaitOver},
		"cancelled":         {delay: time.Hour, cancels: true, reason: waitqueue.ContextEnded},
		"closing":           {delay: time.Hour, closing: closed, reason: waitqueue.Closing},
	} {
		for _, chosen := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var q queues
				a, b := open(t, &q, "a"), join(t, &q, "b")
				a.Took(waitqueue.Taken{}) // b is head, and can be chosen before it waits as head
				ctx, cancel := context.WithCancel(background)
				defer cancel()
				if chosen && q.Choose("lock", anybody) != b {
					t.Fatal("b was not chosen")
				}
				var until time.Time
				if tc.over {
					until = time.Now().Add(ms)
				}
				if tc.cancels {
					time.AfterFunc(ms, cancel)
				}
				ends := waitOver(ctx, b, tc.delay, until, tc.closing)
				time.Sleep(2 * ms)
				if !chosen {
					if got := <-ends; got.reason != tc.reason {
						t.Errorf("%s: %+v", why, got)
					}
					if q.Choose("lock", anybody) != nil {
						t.Errorf("%s: b was chosen after its wait had ended", why)
					}
					c := join(t, &q, "c")
					b.Leave()
					if q.Choose("lock", anybody) != c {
						t.Errorf("%s: c is head, and was not chosen", why)
					}
					return
				}
				wantWaiting(t, why, ends)
				b.Give("a lock")
				if got := <-ends; got.reason != waitqueue.LockGiven || got.lock != "a lock" {
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
			a := open(t, &q, "a")
			q.Signal("lock", 0)
			want(t, "a", waitOver(background, a, time.Hour, time.Now(), nil), end{reason: waitqueue.WaitOver})
		}
	})
}

// A call whose wait has ended while it was behind others is not chosen when it becomes head
// before it leaves.
func TestWhoLeavesIsNotChosenAsHead(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var q queues
			a, b, c := open(t, &q, "a"), join(t, &q, "b"), join(t, &q, "c")
			ctx, cancel := context.WithCancel(background)
			var until time.Time
			reason := waitqueue.ContextEnded
			if !cancelled {
				until, reason = time.Now().Add(ms), waitqueue.WaitOver
			} else {
				time.AfterFunc(ms, cancel)
			}
			defer cancel()
			want(t, "b", waitOver(ctx, b, 0, until, nil), end{reason: reason, took: ms})
			a.Took(waitqueue.Taken{})
			if q.Choose("lock", anybody) != nil {
				t.Error("b was chosen, which leaves")
			}
			b.Leave()
			if q.Choose("lock", anybody) != c {
				t.Error("c was not chosen")
			}
		})
	}
}

func TestMaxWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		none, most, two := 0, 1, 2
		a, _ := q.Join("lock", "", "a", &none) // has not been answered: does not wait yet
		if a == nil {
			t.Fatal("a was refused, which only tries")
		}
		b, _ := q.Join("lock", "", "b", &most)
		if b == nil {
			t.Fatal("b was refused, and nobody waits")
		}
		if c, by := q.Join("lock", "", "c", &most); c != nil || by != (waitqueue.Taken{}) {
			t.Fatal("c was let in beside b")
		}
		forB := wait(b, 0)
		until := time.Now().Add(time.Hour)
		if watch, leaves := a.Busy(waitqueue.Taken{Until: until, By: waitqueue.FixedHolder}, &most); !watch || leaves {
			t.Error("no notifications are wanted")
		}
		want(t, "b, for a waits now,", forB, end{reason: waitqueue.TooMany})
		b.Leave() // is of no consequence
		if s := known(a); !s.Answered || !s.Until.Equal(until) || s.By != waitqueue.FixedHolder || s.Local {
			t.Errorf("the state is %+v", s)
		}
		if o, by := q.Join("lock", "owner", "o", &most); o != nil || !by.Until.Equal(until) {
			t.Errorf("another owner was let in beside a, or heard %+v", by)
		}
		if watch, _ := a.Busy(waitqueue.Taken{Until: until, By: waitqueue.FixedHolder}, &none); watch {
			t.Error("notifications are wanted again")
		}
		if end := a.Leave(); !end.Watched {
			t.Errorf("nobody is left: %+v", end)
		}
		a, b = join(t, &q, "a"), join(t, &q, "b")
		a.Busy(waitqueue.Taken{}, &two)
		forB = wait(b, 0)
		wantWaiting(t, "b, for two may wait,", forB)
		a.Leave()
		<-forB
	})
}

func TestDismissedCallsHearWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a, b, c := open(t, &q, "a"), join(t, &q, "b"), join(t, &q, "c")
		forB, forC := wait(b, 0), wait(c, 0)
		a.Entry(byRequest)
		asked := time.Now()
		a.Silent(asked, errors.New("refused"))
		time.Sleep(time.Second)
		if since := a.Silent(time.Now(), nil).Silence; !since.Equal(asked) {
			t.Errorf("silent since %v", since)
		}
		silent := errors.New("silent")
		if end := a.Dismiss(silent, func(string, time.Time) bool { return true }); end.Entry != "p of a" {
			t.Errorf("%+v", end)
		}
		want(t, "b", forB, end{reason: waitqueue.Dismissed, err: silent, took: time.Second})
		want(t, "c", forC, end{reason: waitqueue.Dismissed, err: silent, took: time.Second})
		for _, w := range []*waiter{b, c} {
			if end := w.Leave(); end != (waitqueue.Leftover[string]{}) {
				t.Errorf("gave up again: %+v", end)
			}
		}
		if len(q.Locks()) > 0 {
			t.Error("the queue is left")
		}
	})
}

// The others go on waiting, and the next head asks at once.
func TestSomeAreDismissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a, b, c := open(t, &q, "a"), join(t, &q, "b"), join(t, &q, "c")
		time.Sleep(time.Second)
		asked := time.Now()
		d := join(t, &q, "b")
		forB, forC, forD := wait(b, 0), wait(c, 0), wait(d, 0)
		answered := errors.New("answered")
		end1 := a.Dismiss(answered, func(request string, since time.Time) bool { return request == "b" && since.Before(asked) })
		if end1 != (waitqueue.Leftover[string]{}) {
			t.Errorf("%+v, although others wait", end1)
		}
		want(t, "b", forB, end{reason: waitqueue.Dismissed, err: answered, took: 0})
		want(t, "c", forC, end{reason: waitqueue.AskRedis})
		wantWaiting(t, "d, which came later,", forD)
		c.Leave()
		want(t, "d", forD, end{reason: waitqueue.AskRedis})
		d.Leave()
		if len(q.Locks()) > 0 {
			t.Error("the queue is left")
		}
	})
}

func TestOwnersOfTheirOwnHaveAQueueApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a := open(t, &q, "a")
		o, _ := q.Join("lock", "owner", "o", nil)
		o2, _ := q.Join("lock", "owner", "o2", nil)
		want(t, "o, which is not behind a,", wait(o, time.Hour), end{reason: waitqueue.AskRedis})
		forO, forO2 := wait(o, time.Hour), wait(o2, time.Hour)
		if p := a.Entry(byRequest) + ", " + o.Entry(byRequest); p != "p of a, p of o" {
			t.Errorf("they wait by %s", p)
		}
		if q.Choose("lock", of("p of a")) != nil {
			t.Fatal("a was chosen, which asks")
		}
		if q.Choose("lock", of("p of o")) != o {
			t.Fatal("o was not chosen by its position")
		}
		o.Give("a lock")
		want(t, "o", forO, end{reason: waitqueue.LockGiven, lock: "a lock"})
		if end := a.Leave(); end.Entry != "p of a" {
			t.Errorf("%+v", end)
		}
		if o.Leave(); len(q.Locks()) == 0 {
			t.Error("the queue of o2 is gone")
		}
		want(t, "o2, which is head after o,", forO2, end{reason: waitqueue.AskRedis})
		if end := o2.Leave(); end.Entry != "p of o" || len(q.Locks()) > 0 {
			t.Errorf("%+v", end)
		}
	})
}

func TestSnapshotTellsWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a := open(t, &q, "a")
		if _, ok := q.Oldest("lock"); ok {
			t.Error("a waits, and was not answered yet")
		}
		time.Sleep(ms)
		b := join(t, &q, "b")
		if w, ok := q.Oldest("lock"); !ok || w.Wants != "b" || w.Calls != 1 || w.Since != time.Now() {
			t.Errorf("%+v", w)
		}
		a.Busy(waitqueue.Taken{}, nil)
		if w, ok := q.Oldest("lock"); !ok || w.Wants != "a" || w.Calls != 2 || w.Since != time.Now().Add(-ms) {
			t.Errorf("%+v", w)
		}
		_, _ = q.Join("lock", "owner", "o", nil)
		if w, _ := q.Oldest("lock"); w.Wants != "a" || w.Calls != 3 {
			t.Errorf("%+v", w)
		}
		if locks := q.Locks(); len(locks) != 1 || locks[0] != "lock" {
			t.Errorf("%q", locks)
		}
		time.Sleep(ms)
		join(t, &q, "c")
		a.Leave()
		b.Leave()
		if w, _ := q.Oldest("lock"); w.Wants != "o" || w.Calls != 2 {
			t.Errorf("%+v", w)
		}
	})
}

// Who was behind a call that tried with success waits.
func TestSnapshotAfterTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a := open(t, &q, "a")
		join(t, &q, "b")
		a.Took(waitqueue.Taken{})
		if w, ok := q.Oldest("lock"); !ok || w.Wants != "b" || w.Calls != 1 {
			t.Errorf("%+v", w)
		}
	})
}

// An open lock is for those outside the queues first: the head asks later, whatever else
// happens, and can be passed the lock meanwhile.
func TestOpenHasTheHeadAskLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queues
		q.Signal("lock", 3*ms) // nobody waits
		a := open(t, &q, "a")
		forA := wait(a, time.Hour)
		time.Sleep(time.Second)
		q.Signal("lock", 3*ms)
		want(t, "a, which waits", forA, end{reason: waitqueue.AskRedis, took: time.Second + 3*ms})

		q.Signal("lock", 3*ms)
		want(t, "a, which waits later", wait(a, time.Hour), end{reason: waitqueue.AskRedis, took: 3 * ms})

		q.Signal("lock", 3*ms)
		q.Signal("lock", 0) // does not make it sooner
		want(t, "a, which is signalled as well", wait(a, time.Hour), end{reason: waitqueue.AskRedis, took: 3 * ms})

		q.Signal("lock", 3*ms)
		want(t, "a, which would ask sooner", wait(a, ms), end{reason: waitqueue.AskRedis, took: 3 * ms})

		forA = wait(a, time.Hour)
		q.Signal("lock", 3*ms)
		if q.Choose("lock", anybody) != a {
			t.Fatal("a was not chosen")
		}
		a.Give("a lock")
		want(t, "a, which is passed the lock", forA, end{reason: waitqueue.LockGiven, lock: "a lock"})
		b := join(t, &q, "b")
		a.Took(waitqueue.Taken{})
		want(t, "b, which is head after that", wait(b, ms), end{reason: waitqueue.AskRedis, took: 3 * ms})
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
	if watch, _ := a.Busy(waitqueue.Taken{}, nil); watch {
		t.Error("notifications are wanted by Busy as well")
	}
	if end := a.Leave(); !end.Watched {
		t.Errorf("nobody is left: %+v", end)
	}
}

// A position outlasts the calls that wait by it, until one of them has another one.
func TestPosition(t *testing.T) {
	any := func(string) bool { return true }
	synctest.Test(t, func(t *testing.T) {
		var q queues
		a, b := open(t, &q, "a"), join(t, &q, "b")
		if p := a.Entry(byRequest); p != "p of a" {
			t.Errorf("a waits by %q", p)
		}
		if p := q.EntryOf("lock", any, byRequest); p != "" {
			t.Errorf("%q, and nobody is notified", p)
		}
		a.Busy(waitqueue.Taken{}, nil)
		if p := q.EntryOf("lock", any, byRequest); p != "p of a" {
			t.Errorf("the process goes on waiting by %q", p)
		}
		a.Took(waitqueue.Taken{})
		if p := b.Entry(byRequest); p != "p of a" {
			t.Errorf("b waits by %q", p)
		}
		b.Entry(func(string, string) string { return "" })
		if p := q.EntryOf("lock", any, byRequest); p != "p of b" {
			t.Errorf("the process goes on waiting by %q", p)
		}
		if p := q.EntryOf("lock", func(string) bool { return false }, byRequest); p != "" {
			t.Errorf("%q, and b may have no entry there", p)
		}
		if end := b.Leave(); end.Entry != "p of b" {
			t.Errorf("nobody is left: %+v", end)
		}
	})
}
