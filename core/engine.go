package core

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/notify"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
)

// engine is what all locks of a Locker have in common: the way to Redis, what is due when, who waits
// here, who is notified, and what is under way.
type engine struct {
	store     *store.Store
	timeout   time.Duration // of one request
	report    report
	observers []Observer

	requests    schedule.Workers // what Redis is asked, and the votes of a quorum
	subscribers schedule.Workers // of the listener
	background  schedule.Workers // the scheduler
	scheduler   *schedule.Scheduler
	started     schedule.Time

	queues     waitqueue.Queues[*want, grant, *entry]
	listener   *notify.Listener
	pollsUntil atomic.Int64 // a schedule.Time: the process has missed a message, and polls
	asking     atomic.Int32 // calls of LockAll that ask again in a moment

	registry
	unconfirmed schedule.Count // compensations
	givingUp    givingUp       // compensations, by lock
}

// registry has what Close waits for: calls that want a lock, and leases.
type registry struct {
	underWay schedule.Count

	mu      sync.Mutex
	leases  map[*lease]struct{}
	closing chan struct{} // closed when Close begins: no call, nor lease, is admitted any more
}

// register admits a new lease, until unregister, or with nil a call that wants a lock, until
// underWay.End, unless the Locker closes.
func (r *registry) register(s *lease) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isClosing() {
		return false
	}
	if s != nil {
		r.leases[s] = struct{}{}
	}
	r.underWay.Begin()
	return true
}

func (r *registry) unregister(s *lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, held := r.leases[s]; held {
		delete(r.leases, s)
		r.underWay.End()
	}
}

// stopAdmitting admits nothing from now on. It is false when the registry was closed before.
func (r *registry) stopAdmitting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isClosing() {
		return false
	}
	close(r.closing)
	return true
}

func (r *registry) isClosing() bool {
	select {
	case <-r.closing:
		return true
	default:
		return false
	}
}

// pieceOf is how many leases are looked at before others have their turn.
const pieceOf = 256

// leasesThat returns the leases that match. Others may change the registry meanwhile: it unlocks mu
// again and again.
func (r *registry) leasesThat(match func(*lease) bool) []*lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*lease
	seen := 0
	for s := range r.leases {
		if match(s) {
			found = append(found, s)
		}
		if seen++; seen%pieceOf == 0 {
			r.mu.Unlock()
			runtime.Gosched()
			r.mu.Lock()
		}
	}
	return found
}
