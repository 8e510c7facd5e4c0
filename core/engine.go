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

	queues    waitqueue.Queues[*want, grant, *entry]
	listener  *notify.Listener
	deafUntil atomic.Int64 // a schedule.Time: until then the process polls
	asking    atomic.Int32 // calls of LockAll that ask again in a moment

	registry
	unconfirmed schedule.Count // compensations
}

// renewGrantAfter spares the renewal of a granted lock to those that are done with it by then.
const renewGrantAfter = 5 * time.Millisecond

// timesOf are those of a lease that lasts for left from a time before Redis was asked on.
func (e *engine) timesOf(sent time.Time, left time.Duration) times {
	at := schedule.At(sent)
	return times{deadline: at.Add(left - e.margin(left)), ends: at.Add(left), renewAt: e.together(at.Add(left/3), left)}
}

// margin makes the holder stop a little before the lease ends in Redis, for timers that fire late under
// load; in a quorum also for clocks that run at different speeds, as Redlock has it.
func (e *engine) margin(length time.Duration) time.Duration {
	if e.store.Can.Differ {
		return length/100 + 2*time.Millisecond
	}
	return min(length/100, 10*time.Millisecond)
}

// together has a renewal sent with others, earlier by a twentieth of the time between two at most.
func (e *engine) together(at schedule.Time, length time.Duration) schedule.Time {
	if grain := schedule.Time(length / 60); grain > 0 {
		at -= (at - e.started) % grain
	}
	return at
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
