package acquire

import (
	"fmt"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/notify"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
)

// Acquirer takes and releases the locks of a Locker. It has who waits here, who is notified, and what is under way.
type Acquirer struct {
	lease.Registry
	errors    Errors
	observers Observers
	prefix    string // of the names of locks

	workers     *schedule.Workers // what Redis is asked, and the votes of a quorum
	subscribers schedule.Workers  // of the listener
	background  schedule.Workers  // the scheduler

	queues     waitqueue.Queues[*spec, lease.AcquiredLock, *entry]
	listener   *notify.Listener
	pollsUntil atomic.Int64 // a schedule.Time: the process has missed a message, and polls
	asking     atomic.Int32 // calls of LockAll that ask again in a moment

	unconfirmed schedule.Count  // compensations
	pending     pendingReleases // by lock
}

type waiter = waitqueue.Waiter[*spec, lease.AcquiredLock, *entry]

// isNotified says that messages reach this process when a lock is granted to it.
func (a *Acquirer) isNotified(name store.Name) bool {
	return !a.mustPoll() && a.listener.Subscribed(name.Channel())
}

// mustPoll says that this process has missed a message not long ago.
func (a *Acquirer) mustPoll() bool { return schedule.Now() < schedule.Time(a.pollsUntil.Load()) }

func (a *Acquirer) grantMissed() {
	a.pollsUntil.Store(int64(schedule.Now().Add(pollAfterMiss)))
	a.observers.GrantMissed()
}

// Name returns what Redis calls the lock of a key.
func (a *Acquirer) Name(key string) (store.Name, error) {
	switch {
	case key == "":
		return store.Name{}, a.errors.InvalidKey("empty")
	case len(key) > store.MaxKeyBytes:
		why := fmt.Sprintf("%d bytes, at most %d are allowed (keyfunc.Hash shortens it)", len(key), store.MaxKeyBytes)
		return store.Name{}, a.errors.InvalidKey(why)
	}
	return store.NewName(a.prefix, key), nil
}
