package core

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/notify"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
)

// lockStore is what a Locker needs of where its locks are: one Redis, or a quorum.
type lockStore interface {
	NewHold() string
	Acquire(context.Context, *store.Claim) (store.Grant, error)
	LateCopies(*store.Claim) *conn.Resends
	Renew(w store.Renew, timeout time.Duration, to store.Renewal)
	Refresh(context.Context, store.Renew) (held bool, sent time.Time, err error)
	Release(ctx context.Context, r store.Release, timeout time.Duration) (store.Released, error)
	Unawaited(r store.Release, to store.Recipient) *store.Unawaited
	ReleaseLater(store.Release)
	AcquireAll(ctx context.Context, cs []store.Claim, allOrNone bool) []store.Result[store.Grant]
	ReleaseAll(ctx context.Context, rs []*store.Release, timeout time.Duration) []store.Result[store.Released]
	Inspect(context.Context, store.Name) (store.State, error)
	Force(ctx context.Context, n store.Name, owner *string) (bool, error)
	FindDivided(ctx context.Context, prefix string) error
	IsSilent(time.Duration) bool
	Servers() []*conn.Server
	SharesRedis(other interface{ Servers() []*conn.Server }) bool
	Flush()

	// How the two differ, beyond how they do it.
	HasQueue() bool
	HandOffNeedsRedis() bool
	MinorityMayKeep() bool
	Margin(lease time.Duration) time.Duration
}

// parking is what a Handover needs of it, which a quorum has not.
type parking interface {
	HandOver(context.Context, store.HandOver) error
	TakeBack(ctx context.Context, h store.HandOver, left time.Duration) (sent time.Time, err error)
	TakeBackLater(context.Context, store.HandOver)
}

// engine is what all locks of a Locker have in common: the way to Redis, what is due when, who waits
// here, who is notified, and what is under way.
type engine struct {
	store   lockStore
	timeout time.Duration // of one request
	report  report
	observers

	requests    schedule.Workers // what Redis is asked, and the votes of a quorum
	subscribers schedule.Workers // of the listener
	background  schedule.Workers // the scheduler
	scheduler   *schedule.Scheduler
	started     schedule.Time

	queues     waitqueue.Queues[*want, grant, *entry]
	listener   *notify.Listener
	pollsUntil atomic.Int64 // a schedule.Time: the process has missed a message, and polls
	asking     atomic.Int32 // calls of LockAll that ask again in a moment
	lookedUp   atomic.Int64 // a schedule.Time: when a lock was looked up for the log

	registry
	unconfirmed schedule.Count // compensations
	givingUp    givingUp       // by lock
}

// lateLine is what was left out of the log, until it is due.
type lateLine struct {
	schedule.Entry
	write func()
}

func (l *lateLine) Due(schedule.Time) { l.write() }

func (e *engine) writeLater(d time.Duration, write func()) {
	e.scheduler.Set(&lateLine{write: write}, schedule.Now().Add(d))
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
