package core

import (
	"runtime"
	"sync"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
)

// books are what a Locker has under way, for which Close waits: calls that want a lock, leases,
// and releases that Redis has not confirmed.
type books struct {
	underWay    schedule.Count // calls that want a lock, and leases
	unconfirmed schedule.Count // compensations

	mu      sync.Mutex
	leases  map[*lease]struct{} // held
	closing chan struct{}       // closed when Close begins: no call, nor lease, is admitted any more
}

// enter admits a call that wants a lock, until underWay.End, unless the Locker closes.
func (b *books) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isClosing() {
		return false
	}
	b.underWay.Begin()
	return true
}

// register enters a new lease, also in the scheduler, unless the Locker is closing.
func (b *books) register(s *lease) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isClosing() {
		return false
	}
	s.schedule() // nobody else knows it yet
	b.leases[s] = struct{}{}
	b.underWay.Begin()
	return true
}

func (b *books) unregister(s *lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, held := b.leases[s]; held {
		delete(b.leases, s)
		b.underWay.End()
	}
}

// admitNoMore refuses new calls and leases from now on. It is false when they were refused
// before.
func (b *books) admitNoMore() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isClosing() {
		return false
	}
	close(b.closing)
	return true
}

func (b *books) isClosing() bool {
	select {
	case <-b.closing:
		return true
	default:
		return false
	}
}

// pieceOf is how many leases are looked at before others have their turn.
const pieceOf = 256

// leasesThat returns the leases that fit. Others may change the books meanwhile: it gives
// mu back again and again.
func (b *books) leasesThat(fit func(*lease) bool) []*lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []*lease
	seen := 0
	for s := range b.leases {
		if fit(s) {
			found = append(found, s)
		}
		if seen++; seen%pieceOf == 0 {
			b.mu.Unlock()
			runtime.Gosched()
			b.mu.Lock()
		}
	}
	return found
}
