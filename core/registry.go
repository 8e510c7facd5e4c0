package core

import (
	"runtime"
	"sync"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
)

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
