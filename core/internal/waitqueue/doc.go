// Package waitqueue keeps the calls of one process that wait for locks: first come,
// first served. It knows nothing of Redis and starts no goroutine.
//
// A call enters with [Queues.Join]. Only the head of a queue asks Redis; the others wait
// until [Waiter.IsHead] is closed. A head that waits is parked, and then whoever unlocks
// the lock in this process can pass it on in memory: [Queues.Next] chooses the head,
// [Waiter.Pass] hands it the lock. A call leaves with [Waiter.Took] or [Waiter.Leave],
// and the next one is head.
//
// A queue also keeps what its heads have learnt of the lock, for those behind them: until
// when it is taken, since when Redis has been silent, whether the process has a position
// in the wait queue of processes.
//
// All methods are safe for concurrent use, and none blocks.
package waitqueue
