// Package lease is what becomes of a lock that was taken: a lease, which the watchdog renews and which ends, the handles that
// share it, the contexts that end with it, and the registry that Close waits for.
//
// How a lock is got it does not know, but for one that is entered. [New] makes the lease of an [AcquiredLock], with its first
// [Handle]; [Handle.Enter] adds another. A handle leaves by [Handle.Leave]. After its [Departure] its lock is handed off in memory, or its
// hold is released in Redis, by the room above, the [Releaser]; [Departure.Retire] of the last handle ends the lease. What happens to it
// between is an event of its life, and entails what package life says: see applyAndUnlock.
//
// The room above makes the errors that callers see, [Errors], and notifies those who look on, [Observer].
package lease
