package core

import "context"

// Downgrade lets others share the lock, as [Shared] does: this handle, which has it alone, becomes one of its sharers. Nobody
// comes between, so what was written under the lock is what its sharers read. Those that wait at the head of the queue come in at
// once, and those behind a call that wants the lock alone do not. Token, Context and ownership stay, and the lease begins anew
// unless it is fixed. The handle cannot have the lock alone again: under its context that is [ErrUpgrade]. For a lock that is shared
// already there is nothing to do. Observers go on with the form that the call asked for.
//
// It fails with [ErrNotHeld], and the lock is held as before, for an inner handle, one with an inner one open or whose owner has
// other holds, a permit, a lock with a [KeepFor] window, of [Locker.LockAll], [Locker.Resume] or an idempotent request, and one that
// is being handed over; a lock of [NewQuorum] cannot be shared. It fails with [ErrLost] and [ErrMaxHold] as [Lock.Refresh] does.
//
// It asks Redis, at most for [Timeout] or until ctx ends. After [ErrUnavailable], or the context's error, others may share the lock:
// the handle counts as a sharer, and the watchdog asks again until Redis has answered. So does another Downgrade; a fixed lease has no
// watchdog.
func (k *Lock) Downgrade(ctx context.Context) error { return k.handle.Downgrade(ctx) }
