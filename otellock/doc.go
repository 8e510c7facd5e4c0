// Package otellock gives OpenTelemetry a span for each wait and each hold of a lock,
// and metrics.
//
//	locker, err := core.New(client, core.Observe(otellock.New()))
//
// A lock that is taken makes two spans: "lock.wait" from the call of Lock until its outcome, and
// "lock.hold" until the lock is unlocked or lost. Both are children of the span that the call runs
// in; without such a span the second is a child of the first. The name of the lock, if it has one,
// follows the word: "lock.hold orders". What the handler does under [core.Lock.Context] is inside
// of the hold, and the Redis commands of the acquisition inside of the wait, if the client is
// instrumented. A re-entry has a wait, and no hold of its own.
//
// A wait that failed, and a hold that was lost, have the status Error and error.type.
// A busy lock is no error: the span says latchkey.lock.outcome=busy, and
// latchkey.lock.reason.
//
// The metrics, by the semantic conventions:
//
//	latchkey.lock.wait.duration      histogram      s          calls that wanted a lock, by outcome
//	latchkey.lock.hold.duration      histogram      s          locks that ended, by outcome
//	latchkey.lock.waiting            updowncounter  {call}     calls that want a lock now
//	latchkey.lock.held               updowncounter  {lock}     locks that are held now; of a lock that several hold each holder counts
//	latchkey.lock.overdue            counter        {lock}     locks held longer than core.MaxHold permits
//	latchkey.lock.renewal.failures   counter        {failure}  renewals that failed and were tried again
//	latchkey.refusals                counter        {refusal}  requests and tasks that middleware refused
//	latchkey.grants.missed           counter        {grant}    grants that a waiting call noticed late or never
//	latchkey.unheard                 counter        {attempt}  attempts to subscribe to messages of Redis that failed; waiting calls poll
//	latchkey.compensations.pending   updowncounter  {command}  commands of unknown outcome that are not confirmed to be undone yet
//	latchkey.redis.answer.time       gauge          s          how long an answer of Redis takes lately
//	latchkey.redis.window            gauge          {command}  commands that may be in flight to Redis: more would wait there for too long
//	latchkey.redis.overloaded        gauge          1          1: Redis is asked for more than it can do, and calls are refused
//	latchkey.redis.shed              counter        {call}     calls that were refused for that
//
// and the attributes, which take few values, all but the key:
//
//	latchkey.lock.name          what core.Name or the middleware says; absent without
//	latchkey.lock.form          exclusive, shared or permits, as the call wants the lock
//	latchkey.lock.outcome       wait: acquired, reentered, busy, failed; hold: released, unconfirmed, lost
//	latchkey.lock.reason        of busy and of refusals, as in core.Event
//	latchkey.lock.state         of the spans of busy ones: dedup_window, where Redis has said so
//	error.type                  of failed and lost, as the Reason in core.Event
//	http.response.status_code   of refusals, absent for tasks
//	latchkey.redis.server       of latchkey.redis, as in core.Load: absent for a quorum, and behind Sentinel
//	latchkey.lock.key           of spans, with the option Keys
package otellock
