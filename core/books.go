package core

import (
	"runtime"
	"sync"
)

// books are what a Locker has under way, for which Close waits: calls that want a lock, leases,
// and releases that Redis has not confirmed.
type books struct {
	mu          sync.Mutex
	asking      int                 // calls that want a lock
	leases      map[*lease]struct{} // held
	unconfirmed int                 // compensations under way
	drained     chan struct{}       // closed when none holds or asks; nil until admitNoMore
	confirmed   chan struct{}       // closed when there are no compensations; nil unless somebody waits for that
}

// enter admits a call that wants a lock, until exit, unless the Locker closes.
func (b *books) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drained != nil {
		return false
	}
	b.asking++
	return true
}

func (b *books) exit() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asking--
	b.checkDrained()
}

// register enters a new lease, also in the scheduler, unless the Locker is closing.
func (b *books) register(s *lease) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drained != nil {
		return false
	}
	s.schedule() // nobody else knows it yet
	b.leases[s] = struct{}{}
	return true
}

func (b *books) unregister(s *lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.leases, s)
	b.checkDrained()
}

// admitNoMore refuses new calls and leases from now on. It is false when they were refused
// before.
func (b *books) admitNoMore() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drained != nil {
		return false
	}
	b.drained = make(chan struct{})
	b.checkDrained()
	return true
}

// checkDrained closes drained when nothing is held or asked for. mu is held.
func (b *books) checkDrained() {
	if b.drained != nil && len(b.leases) == 0 && b.asking == 0 {
		select {
		case <-b.drained:
		default:
			close(b.drained)
		}
	}
}

// awaitConfirmation counts a release that Redis has to confirm, until endConfirmation.
func (b *books) awaitConfirmation() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unconfirmed++
}

func (b *books) endConfirmation() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unconfirmed--
	if b.unconfirmed == 0 && b.confirmed != nil {
		close(b.confirmed)
		b.confirmed = nil
	}
}

// allConfirmed returns a channel that is closed when no release is unconfirmed.
func (b *books) allConfirmed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	confirmed := make(chan struct{})
	if b.unconfirmed == 0 {
		close(confirmed)
	} else {
		b.confirmed = confirmed
	}
	return confirmed
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
