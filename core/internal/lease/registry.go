package lease

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Releaser ends holds: it knows which calls wait for a lock, and picks the next one.
type Releaser interface {
	// Release ends the hold of a handle. In the background the error is what is known before Redis is asked.
	Release(ctx context.Context, h *Handle, work store.Work, mode option.ReleaseMode) error
	// ReleaseLost releases what Redis has of a hold of which the lease is lost. No outcome follows. It is no compensation: Close may have
	// ended by now, and nothing is compensated after that.
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

// HeldLease is what is known here of a lock that is held.
type HeldLease struct {
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
func (r *Registry) Held(match func(key string) bool) []HeldLease {
	leases := r.leasesThat(func(s *lease) bool { return match(s.Name.Key()) })
	held, now := make([]HeldLease, 0, len(leases)), schedule.Now()
	for _, s := range leases {
		if h, ok := s.snapshot(now); ok {
			held = append(held, h)
		}
	}
	return held
}

// TimesOf are those of a lease that lasts for left from a time before Redis was asked on.
func (r *Registry) TimesOf(sent time.Time, left time.Duration) life.Times {
	at := schedule.At(sent)
	renewAt := at.Add(left / RenewalsPerLease)
	if grain := schedule.Time(left / RenewalsPerLease / togetherPer); grain > 0 {
		renewAt -= (renewAt - r.started) % grain
	}
	return life.Times{Ends: at.Add(left - r.Store.Margin(left)), RenewAt: renewAt}
}

const (
	// Where all are renewed at once, because Redis may have forgotten them, there is such a pause between batches of them; and it
	// is not done more often.
	doubtedPause = 50 * time.Millisecond
	doubtedEvery = 5 * time.Second
)

// Doubt has all locks renewed soon: Redis may have started anew, and know none of them. Other processes have noticed that at the
// same time.
func (r *Registry) Doubt() {
	now, until := schedule.Now(), r.doubtedUntil.Load()
	if now < schedule.Time(until) || !r.doubtedUntil.CompareAndSwap(until, int64(now.Add(doubtedEvery))) {
		return
	}
	by := now.Add(rand.N(doubtedPause))
	for i, s := range r.leasesThat(func(*lease) bool { return true }) {
		s.mu.Lock()
		s.life.Doubted(by.Add(time.Duration(i/batchSize) * doubtedPause))
		_ = s.applyAndUnlock(life.Effects{})
	}
}

// TakeAway takes all locks away from their holders.
func (r *Registry) TakeAway() {
	for _, s := range r.leasesThat(func(*lease) bool { return true }) {
		s.mu.Lock()
		_ = s.applyAndUnlock(s.life.Close())
	}
}
