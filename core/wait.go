package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"
)

const (
	// A lost wake-up costs at most pollMax.
	pollMax = time.Second
	// Without wake-ups waiting calls ask again after these, doubling: more than once
	// while the lock is reserved for those who have none, see release.lua.
	pollUnheard    = 20 * time.Millisecond
	pollUnheardMax = 150 * time.Millisecond
	// In a quorum contenders may each get a part of it; they come back after a
	// random time below these, or twice what the attempt took, doubling until the call
	// has the lock.
	splitDelay    = 4 * time.Millisecond
	splitDelayMax = 256 * time.Millisecond
	// maxSilence is how long a waiting call endures that Redis fails.
	maxSilence = 5 * time.Second
)

// take gets the lock for a caller that does not hold it.
func (r *request) take(ctx context.Context) (*Lock, error) {
	wait := r.settings.wait
	if noWait := wait != nil && *wait == 0; noWait || r.owner != "" {
		// A chosen owner may hold the lock already and need not queue.
		k, b, err := r.try(ctx)
		if b == nil {
			return k, err
		}
		if noWait {
			return nil, r.refuse(heldByAnother, b.until, b.exact)
		}
	}
	r.queues = r.locker.queues
	w, ok := r.locker.lines.join(ctx, r)
	if !ok {
		_, _, until, exact := w.line.state()
		return nil, r.tooMany(until, exact)
	}
	var over <-chan time.Time
	if wait != nil {
		timer := time.NewTimer(*wait)
		defer timer.Stop()
		over = timer.C
	}
	return r.queue(ctx, w, over)
}

// queue waits for its turn in the line, then for the lock.
func (r *request) queue(ctx context.Context, w *waiter, over <-chan time.Time) (*Lock, error) {
	if w.first {
		return r.head(ctx, w, over)
	}
	select {
	case <-w.turn:
	case <-ctx.Done():
		return nil, r.leave(w, gaveUp(ctx, r.key))
	case <-over:
		return nil, r.leave(w, r.waitOver(w.line))
	case <-r.locker.closing:
		return nil, r.leave(w, closed("waiting for", r.key))
	}
	if w.err != nil {
		return nil, w.err
	}
	return r.head(ctx, w, over)
}

// head asks Redis whenever the lock may have become free.
func (r *request) head(ctx context.Context, w *waiter, over <-chan time.Time) (*Lock, error) {
	l, ln := r.locker, w.line
	var silence time.Time // since when Redis has failed, for all calls of the line
	pace := pollUnheard
	backOff, split := time.Duration(0), false
	var timer *time.Timer // most get the lock at once
	defer func() {
		if timer != nil {
			timer.Stop()
		}
	}()
	for try := w.first; ; try = ln.resting() == 0 {
		if try {
			asked := time.Now()
			k, b, err := r.try(ctx)
			switch {
			case err == nil && b == nil:
				r.left(ln.leave(w, k))
				return k, nil
			case b != nil:
				silence = time.Time{}
				split = b.split
				if split {
					backOff = min(max(2*backOff, splitDelay, 2*time.Since(asked)), splitDelayMax)
				}
				if ln.isBusy(b, r.settings.maxWaiters, r.tooMany(b.until, b.exact)) {
					pace = pollUnheard
					l.wakeups.watch(r.names)
				}
				if b.aside {
					l.wakeups.unheard(r.names)
				}
			default:
				silence = ln.isSilent(asked)
				if final := r.giveUp(ctx, ln, err, silence); final != nil {
					if isNoAnswer(final) && time.Since(silence) >= maxSilence {
						r.left(ln.dismiss(final))
						return nil, final
					}
					// It may have failed for a reason of its own: the others try for themselves.
					return nil, r.leave(w, final)
				}
			}
		}
		if timer == nil {
			timer = time.NewTimer(pollMax)
		}
		signal := ln.signal
		if rest := ln.resting(); rest > 0 {
			timer.Reset(rest)
			signal = nil
		} else if split {
			// Contenders that block each other must not come back together.
			timer.Reset(rand.N(backOff))
			signal = nil
		} else {
			timer.Reset(r.poll(ln, silence, &pace))
		}
		if k, err, done := r.pause(ctx, w, signal, timer.C, over); done {
			return k, err
		}
	}
}

// pause waits until there is reason to ask Redis again. done says that the wait is
// over, by a lock that was handed over or in vain.
func (r *request) pause(ctx context.Context, w *waiter, signal <-chan struct{}, timer, over <-chan time.Time) (k *Lock, err error, done bool) {
	ln := w.line
	ln.park(w)
	for offered := true; offered; {
		select {
		case k = <-w.gift:
		case <-signal:
		case <-timer:
		case <-ctx.Done():
			return nil, r.leave(w, gaveUp(ctx, r.key)), true
		case <-over:
			return nil, r.leave(w, r.waitOver(ln)), true
		case <-r.locker.closing:
			return nil, r.leave(w, closed("waiting for", r.key)), true
		}
		signal, timer = nil, nil // for when the lock is on its way
		if k == nil {
			k, offered = ln.unpark(w)
		}
		if k != nil {
			w.given = true
			r.left(ln.leave(w, k))
			return k, nil, true
		}
	}
	select { // there may be several reasons, and asking takes Timeout in an outage
	case <-over:
		return nil, r.leave(w, r.waitOver(ln)), true
	default:
		return nil, nil, false
	}
}

// giveUp says whether a failed attempt ends the wait of the call that made it: not when
// Redis has answered before and has been silent for a short time only.
func (r *request) giveUp(ctx context.Context, ln *line, err error, silence time.Time) error {
	answered, _, _, _ := ln.state()
	switch {
	case answered && ctx.Err() != nil:
		return gaveUp(ctx, r.key)
	case !answered, !errors.Is(err, ErrUnavailable), errors.Is(err, errLateGrant), isClosed(err), time.Since(silence) >= maxSilence:
		return err
	default:
		return nil
	}
}

// isNoAnswer says that an attempt failed because nothing came back from Redis, as it
// would for the calls that wait behind.
func isNoAnswer(err error) bool {
	var network net.Error
	return errors.Is(err, errNoAnswer) || errors.As(err, &network) || errors.Is(err, io.EOF)
}

// poll is how long to wait for a wake-up before asking again.
func (r *request) poll(ln *line, silence time.Time, pace *time.Duration) time.Duration {
	_, local, until, _ := ln.state()
	delay := pollMax/2 + rand.N(pollMax/2)
	if !silence.IsZero() || !local && !r.locker.wakeups.listening(r.names) {
		delay = *pace/2 + rand.N(*pace/2)
		*pace = min(2**pace, pollUnheardMax)
	}
	if !until.IsZero() && silence.IsZero() {
		// Its end is known: nobody announces that a key has expired.
		delay = min(delay, max(time.Until(until), 0)+2*time.Millisecond)
	}
	return delay
}

// leave gives the place in the line up and returns err.
func (r *request) leave(w *waiter, err error) error {
	if k := w.refuse(); k != nil {
		k.drop()
	}
	r.left(w.line.leave(w, nil))
	return err
}

func (r *request) left(end lineEnd) {
	if end.unwatch {
		r.locker.wakeups.unwatch(r.names)
	}
	if end.leave && r.locker.queues {
		r.locker.leaveLine(r.names)
	}
}

func (r *request) tooMany(until time.Time, exact bool) error {
	return r.refuse(tooManyWaiting, until, exact)
}

func (r *request) waitOver(ln *line) error {
	_, _, until, exact := ln.state()
	return r.refuse(fmt.Sprintf("the wait of %v is over", *r.settings.wait), until, exact)
}

// refuse makes the error for a lock that is busy until then, as far as is known.
func (r *request) refuse(reason string, until time.Time, exact bool) error {
	after := time.Until(until)
	if !exact && after > time.Second || until.IsZero() {
		after = time.Second
	}
	return &BusyError{Key: r.key, RetryAfter: max(after, time.Millisecond), reason: reason}
}
