// Package core is a reentrant distributed lock on Redis.
//
//	err := locker.Do(ctx, "orderID=42", func(ctx context.Context) error {
//		return pay(ctx, order)
//	})
//
// While a lock is held a watchdog renews its lease, so that a handler may run for long, and the
// lock of a process that died is free soon. When a lock is lost in spite of that, the context of
// its holder is cancelled with [ErrLost].
//
// # Every day
//
// [Open] or [New] makes a [Locker]. [Locker.Do] and [Wrap] run a function under a lock;
// [Locker.Lock] and [Locker.TryLock] return a [Lock] to unlock; [Locker.Close] ends it all. [Wait],
// [Lease], [KeepFor] and the other options are for one call, or for all of a Locker. A refusal is
// [ErrNotAcquired], mostly as a [*BusyError]; [ErrUnavailable] says that Redis does not answer.
//
// Ownership travels in the context: [FromContext] finds the lock, and a call with that context
// enters the lock once more, in every goroutine. Contexts that do not descend from each other's
// lock exclude one another, in one goroutine as well. [Detach] takes the ownership out. A nil context panics, but for
// Unlock, Abort and Close.
//
// A call has a lock alone, unless it says otherwise: [Shared] is for readers, [Permits] for so many
// at once. [Locker.LockAll], [Locker.DoAll] and [WrapAll] take the locks of several keys, or none.
// [Lock.Handover] parks a lock for a job in another process, which takes it by [Locker.Resume].
// [Locker.Lead] elects one process of all.
//
// # For operators and adapters
//
// [Observe] and [Logger] report what happens. [Locker.Snapshot] lists what this process holds and
// waits for, [Locker.Inspect] says who holds a lock in Redis, and [ProcessOf] where that runs;
// [Locker.ForceUnlock] frees it, and [Locker.Ping] tries out whether locks can be taken. [Replicas]
// and [NewQuorum] have locks survive a server. [SetDefault] gives middleware its Locker; its authors
// find the rest in package core/adapter.
//
// # In Redis
//
// A lock is a hash, named by prefix and key, that counts the holds of its owner, and expires with
// the lease: the layout of Redisson's RLock, so that both exclude and wake each other. A lock with
// several holders has a field for each of them. Our own fields are "mode" and those that begin with
// "latchkey:". Beside the lock there are a wait queue, which is short-lived, and a fencing clock for
// each hash slot, which stays: 16,384 small keys at most.
package core
