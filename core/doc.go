// Package core is a reentrant distributed lock on Redis.
//
// A [Locker] takes locks; a [Lock] is one that is held. While it is held a
// watchdog renews its lease, so that a handler may run for long, and the lock of a
// process that died is free soon. When a lock is lost in spite of that, the
// context of its holder is cancelled with [ErrLost].
//
//	err := locker.Do(ctx, "orderID=42", func(ctx context.Context) error {
//		return pay(ctx, order)
//	})
//
// # Ownership
//
// Ownership travels in the context. A lock taken with a context that holds it
// already is entered once more and freed by the last Unlock; every goroutine that
// works with that context shares the ownership. Two calls with contexts that do
// not descend from each other's lock exclude one another, also in one goroutine.
// [Detach] takes the ownership out of a context.
//
// # Forms
//
// A call has a lock alone, unless it says otherwise: with [Shared] together with others
// that share it, with [Permits] as one of so many. [Locker.LockAll] takes the locks of
// several keys, or none. [Lock.Handover] parks a lock for a job in another process, which takes it by
// [Locker.Resume]. [Locker.Lead] has one process of all do what belongs to one.
//
// # In Redis
//
// A lock is a hash, named by prefix and key, that counts the holds of its owner,
// and expires with the lease: the layout of Redisson's RLock, which excludes and
// wakes us as we do it. A lock that several hold has a field for each of them instead, which
// excludes an RLock as well. Our own fields are "mode" and those that begin with "latchkey:": the
// fencing token, the lease, and holds, so that a command that is sent twice counts once. Beside it there
// are the wait queue of processes, which is short-lived, and one fencing clock for each
// hash slot, which stays: 16,384 small keys at most.
package core
