// Package acquire takes locks, and releases them: calls that want one, their wait in the queue of the process and in that of
// Redis, how each learns that it has the lock, the locks of several keys, and releases, which pick who is next.
//
// Core calls what door.go, several.go and lock_all.go offer, and the [lease.Registry] with its [lease.Backend]. [Acquirer.Lock] is one
// call (call.go); [Acquirer.LockAll] is one for several keys. A call enters a lock that its context holds (reenter.go), or asks Redis
// (ask.go), as the head of a queue mostly (wait.go). What it gets is a [lease.AcquiredLock], by an answer, a message or a hand-off in
// memory (acquired.go). What ends it otherwise is in outcome.go. A lock is released by [Acquirer.Release] (release.go), and what may be
// left in Redis by a command whose outcome is unknown is compensated.
//
// The room above makes the errors that callers see, [Errors], and notifies Observers, [Observers].
package acquire
