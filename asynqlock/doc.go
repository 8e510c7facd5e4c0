// Package asynqlock runs asynq tasks one at a time per key, across all workers.
//
//	mux := asynq.NewServeMux()
//	mux.Use(asynqlock.ByPayload("order_id"))
//
//	server := asynq.NewServer(redis, asynq.Config{
//		IsFailure:      asynqlock.IsFailure(nil),
//		RetryDelayFunc: asynqlock.RetryDelay(nil),
//	})
//
// A task whose key is busy does not occupy a worker: it goes back to its queue and
// is tried again soon. [IsFailure] keeps that out of the failure count and
// [RetryDelay] makes it soon. asynq looks for tasks to retry every five seconds
// unless Config.DelayedTaskCheckInterval says otherwise.
//
// A task needs at least one retry (asynq.MaxRetry(1) or more): on its last attempt
// asynq archives it whatever the reason. There the middleware waits a while first,
// see [Config.LastWait].
//
// To leave some task types alone use [Config.Skip], or wrap only the handlers that
// need the lock:
//
//	mux.Handle("order:pay", asynqlock.ByPayload("order_id")(payHandler))
//
// A task that outlives its deadline, or its server's shutdown, is given to another
// worker while the old handler may still run. The old one keeps its lock until it
// really returns, so the new one is refused until then.
package asynqlock
