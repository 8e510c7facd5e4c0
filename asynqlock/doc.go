// Package asynqlock runs asynq tasks one at a time per key, across all workers, or with
// [core.Permits] so many at a time. [ByAll] takes the locks of several keys.
//
//	mux := asynq.NewServeMux()
//	mux.Use(asynqlock.ByPayload("orderID"))
//
//	config := asynq.Config{Concurrency: 10}
//	asynqlock.Configure(&config)
//	server := asynq.NewServer(redis, config)
//
// The lock is taken before the handler runs and released when it returns or panics.
// The handler's context is cancelled when the lock is lost, and locks taken with it
// re-enter.
//
// [With] makes middleware that has one Locker and the same options, without globals.
//
// # Busy keys
//
// A task whose key is busy waits a second in its worker, and four tasks of a key in
// a process at most. Another one, or one whose wait is over, goes back to its queue and
// is tried again. [Configure] makes asynq not count that as a failure, by [IsFailure], and try
// again soon, by [RetryDelay]: the later, the more tasks of the key there are. Without it each
// refusal is a failure, uses up a retry, and is retried after asynq's own, much longer
// delay; the first one logs a warning.
//
// # Hot keys
//
// With a [Config.Inspector] a task whose key is busy is parked: it leaves its worker, and its
// process notes it and has asynq run it when there is room among the tasks that wait. So a key
// with many tasks is used nearly all the time, and tasks of other keys find workers.
//
//	mux.Use(asynqlock.New(asynqlock.Config{
//		Key:               keyfunc.Payload("orderID"),
//		Inspector:         asynq.NewInspectorFromRedisClient(client), // its MaxRetries is -1
//		Workers:           10,                     // as in asynq.Config
//		TaskCheckInterval: 100 * time.Millisecond, // likewise
//	}))
//
// At most four tasks of a key wait in a process, and more only while two of its workers, or a
// fifth of them, are free. A process runs only the tasks that it has parked itself, in order for
// each key; new tasks may overtake them. If the process ends, they come back by themselves after
// one to two minutes, or after a quarter to a half of the time to their deadline, if that is
// less. A task with less than 20 s to its deadline is not parked.
//
// # Windows and attempts
//
// With [core.KeepFor] a task that comes within the window is put off until its end,
// and runs then; it waits in its worker before, unless [core.NoWait] is given. To
// discard it use [Drop], and [KeepOne] to run once more after all of them; see [Config.OnBusy].
//
// A task needs at least one retry (asynq.MaxRetry(1) or more; asynq's default is
// 25): on its last attempt asynq archives it whatever the reason. There the
// middleware waits a while first, see [Config.LastWait].
//
// # Several at a time
//
// With [core.Permits] up to n tasks of a key run at once, in all workers together:
//
//	asynqlock.ByPayload("tenantID", core.Permits(3))
//
// [Config.Permits] says for each task how many. A task that finds no permit is treated as
// one whose key is busy. A permit does not keep two runs of one task apart, see below, and with
// [Drop] such a task is gone although nobody does its work.
//
// # Other tasks
//
// The middleware of a mux runs for all tasks, also for those of types that it does
// not know. A task without the field is archived. So give the types that need the lock a mux of
// their own, within the other one:
//
//	orders := asynq.NewServeMux()
//	orders.Use(asynqlock.ByPayload("orderID"))
//	orders.Handle("order:pay", payHandler)
//	mux.Handle("order:", orders) // all types that begin with it
//
// [Config.Skip] leaves task types alone, too. Do not use [keyfunc.Optional] for that: a task
// whose field was forgotten would run without a lock.
//
// # Deadlines and shutdown
//
// A task that outlives its deadline, or its server's shutdown, is given to another
// worker while the old handler may still run. The old one keeps its lock until it
// really returns, so the new one is refused until then. A task that still waits for
// its key when its deadline comes near is put off, which uses up no retry.
//
// Shut the server down first, then close the Locker: tasks that start in between
// would be refused, and on their last attempt archived.
package asynqlock
