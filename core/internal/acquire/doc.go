// Package acquire takes locks, and releases them: calls that want one, their wait in the queue of the process and in that of
// Redis, how each learns that it has the lock, the locks of several keys, and releases, which pick who is next.
//
// door.go, several.go and the [lease.Registry] are what core calls. [Acquirer.Lock] is one call, a request; [Acquirer.LockAll] is one for
// several keys (lock_all.go). A request enters a lock that its context holds (reenter.go), or asks Redis (ask.go), as the head of a queue
// mostly (wait.go). What it gets is a [lease.Grant], by an answer, a message or a hand-off in memory (granted.go). What ends it otherwise
// is in outcome.go. A lock is released by [Acquirer.Release] (release.go), and what may be left in Redis by a request whose outcome is
// unknown is compensated.
//
// The room above makes the errors that callers see, [Errors], and notifies Observers, [Observers].
package acquire
