// Package waitqueue keeps the calls of one process that wait for locks: first come,
// first served. It knows nothing of Redis and starts no goroutine.
//
// A call enters with [Queues.Join]. Only the head of a queue asks Redis; the others wait.
// [Waiter.Wait] tells why a wait has ended: the call is head and there is reason to ask
// Redis, or the call was given the lock. Whoever unlocks a lock in this process can pass it
// on to the head in memory: [Queues.Choose] chooses the head, [Waiter.Pass] hands it the lock.
// A call leaves with [Waiter.Took] or [Waiter.Leave], and the next one is head.
//
// A queue also keeps what its heads have learnt of the lock, for the calls behind them: until
// when it is taken, since when Redis has been silent, and the position by which the queue
// waits in Redis.
//
// All methods are safe for concurrent use. Only Wait blocks.
package waitqueue
