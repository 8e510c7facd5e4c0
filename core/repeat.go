package core

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// A connection may have been closed behind the pool's back: by Redis after a time of
// idleness, by a balancer, in a restart. The first command on it finds out, and cannot
// tell whether Redis has seen it. All connections of a pool may be such, so the pauses
// between the copies of a call begin short, and grow by so much.
const repeatDelay = 250 * time.Microsecond

// repetition permits a call to be sent again: it counts once, and has the same answer.
type repetition struct {
	doubled atomic.Bool  // a copy may have arrived, or may yet, beside the one that was answered
	last    atomic.Int64 // the moment at which the latest copy left
}

// exchange runs a script and returns its reply. It returns as soon as ctx ends
// or the timeout is over, although go-redis does not interrupt a command on its
// way. Until then a call that may be repeated is sent again when its connection breaks,
// and once more when it did not leave at all. undo is called, perhaps later, when the
// script may have run or may still run without anybody hearing of it; nil if that does
// no harm.
func (n *node) exchange(ctx context.Context, c *call, timeout time.Duration, undo func(*node)) ([]any, error) {
	end := time.Now().Add(timeout)
	f, a := n.attempt(ctx, c, timeout, undo, nil)
	if a.err == nil || c.again == nil {
		return f.conclude(a)
	}
	delay, unsent := repeatDelay, false
	for {
		left, wait := time.Until(end), time.Duration(0)
		switch {
		case a.over:
			return f.conclude(a)
		case isMigrating(a.err):
			wait = settleDelay
		case isBroken(a.err):
			wait, delay = delay, delay+repeatDelay
		case !f.departed() && !isRefusal(a.err) && !unsent:
			unsent = true
		default:
			return f.conclude(a)
		}
		if left <= wait {
			return f.conclude(a)
		}
		if wait > 0 && pause(ctx, wait) != nil {
			return f.conclude(answer{err: ended(ctx), over: true})
		}
		if f.again(isRefusal(a.err)) {
			c.again.doubled.Store(true)
		}
		began := time.Now()
		c.again.last.Store(int64(momentOf(began)))
		f, a = n.attempt(ctx, c, end.Sub(began), undo, f)
		if a.err == nil {
			return f.conclude(a)
		}
	}
}

// isBroken says that a connection has ended, and that the next one may hold.
func isBroken(err error) bool {
	var failed *net.OpError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe), errors.Is(err, net.ErrClosed):
		return true
	case errors.As(err, &failed):
		return (failed.Op == "read" || failed.Op == "write") && !failed.Timeout()
	default:
		return false
	}
}
