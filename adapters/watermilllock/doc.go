// Package watermilllock runs handlers of Watermill for one message at a time per key, across all processes, or with
// [core.Permits] for so many at a time.
//
//	locks := watermilllock.With(locker)
//	router.AddMiddleware(locks.ByPayload("orderID")) // or a handler's AddMiddleware
//
// The lock is taken before the handler runs, and released when it returns or panics. The message's context
// is cancelled when the lock is lost, and locks that are taken with it re-enter. If the lock was lost, the handler has failed with
// [core.ErrLost], also if it has returned nil.
//
// The Router publishes what a handler returns after the lock has been released. What has to be published
// under the lock, the handler publishes itself.
//
// # Busy keys
//
// A message whose key is busy waits up to 5 s, or what [core.Wait] says. Then the middleware returns an error that is
// [ErrNotRun], and the Router nacks the message. What a nack does is the broker's decision:
//
//   - Kafka: the message comes again after NackResendSleep, 100 ms, and its partition waits for it, in order.
//   - AMQP: the message is requeued and comes again at once; with NoRequeueOnNack it is dropped or dead-lettered.
//   - NATS: it comes again at once, or after NakDelay.
//   - Redis streams: at once, or after NackResendSleep.
//   - SQL: after ResendInterval, one second.
//   - GoChannel: at once.
//
// A broker that counts deliveries, as for a dead-letter queue, counts these. While a message waits, most subscribers
// deliver no other one: use a key that spreads as the partitions do, or more subscribers. The wait and the work
// should fit into the subscriber's ack deadline. If they do not, the message is delivered again while its handler
// runs, and waits for its own lock.
//
// In the dedup window of [core.KeepFor] a message is nacked, too. To ack it instead, put middleware before this one, as in
// the example of [ErrNotRun].
//
// A message is nacked a second after it has come at the earliest, also with [core.NoWait], too many [core.MaxWaiters] or a key that cannot
// be used, and when Redis does not answer or the Locker is closed: so it does not come back in a tight loop.
//
// # Other middleware
//
// Middleware that is added before the lock sees its errors, and middleware after it runs under the lock:
//
//   - Retry before the lock takes it anew for each try. After it, the lock is held while Retry sleeps.
//   - PoisonQueue and CircuitBreaker before the lock take a busy key for a failure. Use PoisonQueueWithFilter, and let [ErrNotRun] through.
//     A message without a key is none: it belongs into the poison queue, because no delivery would find a key.
//   - InstantAck before the lock loses messages whose key is busy.
//   - Timeout before the lock bounds the wait, too.
//
// Close the Router first, then the Locker. A Subscriber of watermill-redisstream closes its client: give the Locker another one, or the
// locks of its last messages end with their leases.
package watermilllock
