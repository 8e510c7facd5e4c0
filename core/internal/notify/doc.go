// Package notify hears when locks become free, by one subscription connection for each
// Redis that publishes. It only accelerates: whoever waits for a lock polls as well.
//
// A lock has a channel for all who wait, on which Redis publishes that it is free, and
// one for this process, the same name with the process's id appended, on which Redis
// publishes that the lock was granted to a call of it. [Listener.Watch] subscribes to both and
// [Listener.Unwatch] takes one Watch back; a channel stays subscribed for some seconds
// after the last, because contention tends to come back. A connection that breaks, or
// answers no pings, is replaced, and a channel whose server has changed follows it.
package notify
