package core

import (
	"errors"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// lockCall is a call that wants a lock.
type lockCall struct {
	want
	engine *engine
	outer  *lease // of another Locker, which the context holds already; nil: it holds none
	group  *group
	memory *lockMemory // of that for several locks, which have one owner; nil: no other lock has it
}

// errNotEntered is why a call has entered no lock: its context holds none of that name by its Locker.
var errNotEntered = errors.New("the context does not hold the lock by this Locker")

// decided lets members of a quorum that grant a claim late know what became of it: a lock, or nothing.
func (c *lockCall) decided(claim *store.Claim, k *Lock) {
	claim.Decided((*decidedLock)(k))
}

type decidedLock Lock

// Held says whether there is a lock, and it is held.
func (k *decidedLock) Held() bool { return k != nil && (*Lock)(k).held() }
