package waitqueue

import (
	"context"
	"time"
)

// News is why Wait has returned.
type News int

const (
	none      News = iota // the wait goes on
	AskRedis              // the call is head, and the lock may be free: it asks Redis, and stays in the queue
	LockGiven             // the call has Result.Lock
	TooMany               // the call was taken out of the queue, for more wait than it wants
	Dismissed             // another call has taken it out, with Result.Err
	ContextEnded
	WaitOver
	Closing
)

// Result is what Wait has come to.
type Result[L any] struct {
	News  News
	Lock  L     // of LockGiven
	Err   error // of Dismissed
	Known Known // what is known of the lock
}

// stage is how far a call has come:
//
//	Join ──▶ behind ──── it is head now ────▶ ready ◀──── Redis said: busy ──── asking
//	 │                                         │ │                               ▲ ▲
//	 │                                  Choose │ └─────────── AskRedis ──────────┘ │
//	 │                                         ▼                                   │
//	 │                                      chosen ───── Give ─────▶ given         │
//	 └──────────────────────── the first call of a queue ──────────────────────────┘
//
// A call that declines what it was given becomes asking. One that is behind or ready becomes leaving when it gives up. One that is behind
// becomes refused when another call takes it out. Otherwise a call ends by Took, Leave or, an asking one, Dismiss.
type stage int

const (
	behind  stage = iota // others come first
	ready                // it is head and waits: it can be given the lock
	asking               // it is head and asks Redis: it cannot be given the lock meanwhile
	chosen               // it is about to be given the lock
	given                // it was given the lock
	refused              // it is in the queue no more
	leaving              // it does not want the lock any more
)

// Wait waits until the call is head, and then until there is reason to ask Redis: the lock may be free, or pollDelay
// is over, which is asked for when the call begins to wait as head. The call that has opened the queue asks at once.
// While it waits as head, the call can be given the lock; a lock that arrives at the very end of the wait is given.
// After ContextEnded, WaitOver and Closing the call cannot get the lock any more, and must leave. WaitOver comes at a time,
// unless that is zero.
func (w *Waiter[R, L, E]) Wait(
	ctx context.Context, pollDelay func(Known) time.Duration, until time.Time, closing <-chan struct{},
) Result[L] {
	if w.first {
		w.first = false
		return Result[L]{News: AskRedis}
	}
	var over, poll <-chan time.Time // nil: the wait has no end; the call is not head, or has not noticed
	if !until.IsZero() {
		over = time.After(time.Until(until))
	}
	for happened := none; ; {
		if (happened == none || happened == AskRedis) && over != nil && time.Until(until) <= 0 {
			happened = WaitOver // it comes first: asking takes long in an outage
		}
		seen, at, barging := w.look(happened)
		switch {
		case seen.News != none:
			return seen
		case at == chosen:
			<-w.news // and nothing else: whatever ends the wait now, the lock is given
			happened = none
			continue
		case barging > 0:
			poll = time.After(barging)
		case at == ready && poll == nil:
			poll = time.After(pollDelay(seen.Known))
		}
		select {
		case <-w.news:
			happened = none
		case <-poll:
			happened = AskRedis
		case <-ctx.Done():
			happened = ContextEnded
		case <-over:
			happened = WaitOver
		case <-closing:
			happened = Closing
		}
	}
}

// look takes what has happened to a call that waits, none for news of its queue. The News that it returns are none while
// the wait goes on; barging is the rest of the barging window, which a head that was signalled waits for.
func (w *Waiter[R, L, E]) look(happened News) (seen Result[L], at stage, barging time.Duration) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	isHead := w.isHead()
	if isHead && q.signalled {
		barging = time.Until(q.bargingUntil)
	}
	ends := none
	switch {
	case w.stage == refused && w.err == nil:
		ends = TooMany
	case w.stage == refused:
		ends = Dismissed
	case w.stage == given:
		ends = LockGiven
	case w.stage == chosen:
	case happened == ContextEnded || happened == WaitOver || happened == Closing:
		ends, w.stage = happened, leaving
	case isHead && (happened == AskRedis || q.signalled && barging <= 0):
		ends, w.stage, q.signalled = AskRedis, asking, false
	case isHead:
		w.stage = ready
	}
	if w.news == nil {
		w.news = make(chan struct{}, 1)
	}
	return Result[L]{ends, w.lock, w.err, q.known}, w.stage, barging
}

// wake has the call look. mu is held.
func (w *Waiter[R, L, E]) wake() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}
