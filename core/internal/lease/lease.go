package lease

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// lease is one acquisition as this process believes it: how long it lasts, and which handles
// share it. A fresh lock has one; re-entries through the context join it. The watchdog renews it.
type lease struct {
	Acquisition
	registry *Registry
	first    *Handle       // whose call has taken it: the log is told of the lease in the context of that
	since    schedule.Time // when it was taken

	mu             sync.Mutex
	life           life.Life
	due            schedule.Time // when the scheduler calls Due, as it was told; 0: not at all
	renewals       uint32        // confirmed
	refreshed      bool          // not by the watchdog: Redis may have it for longer than is known here
	entered        bool          // once more
	work           store.Work    // what its holder has said of it
	downgrade      downgrade
	ownerKnown     bool          // others may have holds of the owner. It does not change once the last handle has left
	oneOfSeveral   bool          // other locks have the owner
	mayLast        bool          // it may be held for long
	longLines      uint8         // of the log, which say that it is
	schedule.Entry               // here, for its size
	answer         *store.Answer // to the request; nil: it is not known yet
	handles        *Handle       // not unlocked yet: a list, for nearly all leases have one
	observed       Observer      // nil: nobody hears of it, or it has ended
}

// downgrade is what is known of the requests to downgrade a lock.
type downgrade uint8

const (
	exclusive  downgrade = iota // there was none, or it has surely done nothing
	asked                       // by one request, which is not answered
	unsettled                   // others share the lock, or may yet: renewals say so
	downgraded                  // others share it
)

// Handle is a lock as a call has it: one of those that share a lease. Callers get it as a core.Lock.
type Handle struct {
	lease   *lease
	outer   *Handle // what the context held before
	group   *Group
	ctx     context.Context // its ownership, as Observers have it
	public  any             // what callers have of it; nil: nobody has asked for it. Guarded by under.mu
	next    *Handle         // of the lease. Guarded by lease.mu
	id      string          // marks it in Redis
	resends *conn.Resends   // of its acquisition
	under   leaseContext    // what its context descends from
	state   life.Handle     // guarded by lease.mu
	reentry bool            // of a lease that had a handle
}

// Memory is what a lock takes that is not entered, in one piece.
type Memory struct {
	lease lease
	first Handle
}

// takeOut takes a handle out. s.mu is held.
func (s *lease) takeOut(h *Handle) {
	at := &s.handles
	for *at != h {
		at = &(*at).next
	}
	*at, h.next = h.next, nil
}

// releaseOf is the release of a hold. s.mu is held.
func (s *lease) releaseOf(h *Handle, work store.Work) store.Release {
	r := store.Release{
		Holding: s.holding(h), Terms: s.Terms, Token: s.RedisToken, Last: s.Token, Entered: s.entered,
		Work: work, MayArrive: h.resends.MayArriveTwice(), Context: s.first.under.call,
	}
	if s.life.Granted {
		r.Lease = 0
	}
	if r.Work == store.Done {
		r.Answer = s.answer
	}
	return r
}

// holding is a hold as Redis knows it.
func (s *lease) holding(h *Handle) store.Holding {
	return store.Holding{Name: s.Name, Owner: s.Owner, Hold: h.id}
}

// held is false for a lease that is lost, or being released.
func (s *lease) held(now schedule.Time) (h Held, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Held{
		Terms: s.Terms, Key: s.Name.Key(), Owner: s.Owner, Token: s.Token, Since: s.since,
		TTL: max(time.Duration(s.life.StopAt()-now), 0), Holds: s.life.Holds(), Renewals: int(s.renewals), IsOverdue: s.life.IsOverdue(),
	}, s.life.State().HasHandles()
}

// Releaser ends holds: it knows which calls wait for a lock, and picks the next one.
type Releaser interface {
	// Release ends the hold of a handle. In the background the error is what is known before Redis is asked.
	Release(ctx context.Context, h *Handle, work store.Work, mode option.ReleaseMode) error
	// ReleaseLost releases what Redis has of a hold of which the lease is lost. No outcome follows.
	ReleaseLost(ctx context.Context, h *Handle)
	// MayBeFree is called when a lock may be free.
	MayBeFree(lock string)
}

// Registry has the leases of a Locker, and what they need of it. Close waits for them, and for the calls that want a lock.
type Registry struct {
	Backend
	errors   Errors
	releaser Releaser
	started  schedule.Time
	UnderWay schedule.Count // leases, and calls that want a lock

	doubtedUntil atomic.Int64 // a schedule.Time: until then all locks are not renewed once more at once

	mu      sync.Mutex
	leases  map[*lease]struct{}
	closing chan struct{} // closed when Close begins: no call, nor lease, is admitted any more
}

// Start makes a registry ready, in place.
func (r *Registry) Start(errors Errors, releaser Releaser) {
	r.errors, r.releaser, r.started = errors, releaser, schedule.Now()
	r.leases, r.closing = map[*lease]struct{}{}, make(chan struct{})
}

// Admit admits a call that wants a lock, until UnderWay.End, unless the Locker closes.
func (r *Registry) Admit() bool { return r.admit(nil) }

// admit admits a new lease, until unregister, or with nil a call.
func (r *Registry) admit(s *lease) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.IsClosing() {
		return false
	}
	if s != nil {
		r.leases[s] = struct{}{}
	}
	r.UnderWay.Begin()
	return true
}

func (r *Registry) unregister(s *lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, held := r.leases[s]; held {
		delete(r.leases, s)
		r.UnderWay.End()
	}
}

// StopAdmitting admits nothing from now on. It is false when the registry was closed before.
func (r *Registry) StopAdmitting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.IsClosing() {
		return false
	}
	close(r.closing)
	return true
}

// Closing is closed when nothing is admitted any more.
func (r *Registry) Closing() <-chan struct{} { return r.closing }

func (r *Registry) IsClosing() bool {
	select {
	case <-r.closing:
		return true
	default:
		return false
	}
}

// batchSize is how many leases are looked at before others have their turn.
const batchSize = 256

// leasesThat returns the leases that match. Others may change the registry meanwhile: it unlocks mu
// again and again.
func (r *Registry) leasesThat(match func(*lease) bool) []*lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*lease
	seen := 0
	for s := range r.leases {
		if match(s) {
			found = append(found, s)
		}
		if seen++; seen%batchSize == 0 {
			r.mu.Unlock()
			runtime.Gosched()
			r.mu.Lock()
		}
	}
	return found
}

// Held is what is known here of a lock that is held.
type Held struct {
	store.Terms
	Key, Owner string
	Token      int64
	Since      schedule.Time // when it was taken
	TTL        time.Duration // until its holder must stop, if nothing renews it
	Holds      int           // handles that have not left
	Renewals   int           // confirmed
	IsOverdue  bool          // held for too long
}

// Held returns the locks that are held, of the keys that match.
func (r *Registry) Held(match func(key string) bool) []Held {
	leases := r.leasesThat(func(s *lease) bool { return match(s.Name.Key()) })
	held, now := make([]Held, 0, len(leases)), schedule.Now()
	for _, s := range leases {
		if h, ok := s.held(now); ok {
			held = append(held, h)
		}
	}
	return held
}
