// Package riverlock runs jobs of River one at a time per key, across all clients, or with
// [core.Permits] so many at a time.
//
//	locks := riverlock.With(locker)
//	client, err := river.NewClient(driver, &river.Config{
//		Middleware: []rivertype.Middleware{locks.ByPayload("orderID")},
//		// …
//	})
//
// The lock is taken before the worker runs, and released when it returns or panics. The worker's
// context is cancelled when the lock is lost, and locks that are taken with it re-enter. A job whose
// lock was lost has failed, with [core.ErrLost], also if its worker has returned nil.
//
// # Busy keys
//
// A job whose key is busy waits a second in its worker, and four jobs of a key in a process at
// most; [core.Wait] and [core.MaxWaiters] say otherwise. Then it is snoozed, which uses up no
// attempt: for about a second the first time, and a second longer each time, up to half a minute. River 0.23 tells subscribers of a snooze of up to
// five seconds as of EventKindJobFailed. In the dedup window
// of [core.KeepFor] it is snoozed until the window ends, and runs then; to insert it only once, use
// River's UniqueOpts.
//
// Many jobs of one key occupy workers while they wait: give them a queue of their own, or [core.NoWait].
//
// # Which jobs
//
// Middleware of the client is for all kinds, and one without the field fails. For some kinds, return it from
// the Middleware method of their workers. Do not use [keyfunc.Optional] for that: a job whose field was forgotten would
// run without a lock.
//
// Args that a hook encrypts are encrypted still when the lock is taken, and have no field: such a worker takes the lock itself, by
// [core.Locker.Do], or key decrypts them.
//
// # Time-outs and rescue
//
// The job's time-out begins when it has the lock. A job that ignores its time-out keeps its lock until it really
// returns; so when River has rescued it, after RescueStuckJobsAfter, the second run is snoozed while the
// first one goes on. A job that waits when its client is stopped the hard way is snoozed, too.
//
// Stop the client first, then close the Locker. With river.JobCompleteTx, commit under the worker's context:
// what was committed before the lock was lost stays completed.
package riverlock
