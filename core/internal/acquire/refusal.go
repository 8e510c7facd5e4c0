package acquire

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
)

// Refusal is how a call is refused that finds a lock busy.
type Refusal struct {
	Key         string
	Why         Reason
	Taken       waitqueue.Taken // what is known of who has the lock
	Wait        time.Duration   // that the call has said; 0: it has not
	WantsPermit bool
	HeldKeys    []string // of the locks that the context of the call holds, innermost first
	Circle      []string // that the calls of a wait-for cycle wait for, this one first
}

// IsInWindow says that nobody holds the lock any more: its dedup window lasts.
func (r Refusal) IsInWindow() bool { return r.Taken.By == waitqueue.DedupWindow }

// IsExact says that nothing postpones the end that is known.
func (r Refusal) IsExact() bool { return r.IsInWindow() || r.Taken.By == waitqueue.FixedHolder }

// Reason is why a call does not go on waiting, in the word of Observers.
type Reason string

const (
	WaitOver       Reason = "wait_over"
	notWaiting     Reason = "no_wait"
	TooManyWaiting Reason = "max_waiters"
	Circular       Reason = "deadlock"
	OutOfOrder     Reason = "order"
)

// Errors makes the errors that callers see of what has become of a call.
type Errors interface {
	lease.Errors
	Busy(Refusal) error
	GaveUp(ctx context.Context, key string, wantsPermit bool) error // its context has ended first
	Upgrade(key string) error
	NoTicket(key string) error
	InvalidKey(why string) error
	TooManyKeys(n, most int) error
	Attempted(key string, outcome error) error // by an earlier attempt at its request
	IsLost(error) bool
}
