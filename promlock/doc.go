// Package promlock shows Prometheus what becomes of locks.
//
//	metrics := promlock.New()
//	prometheus.MustRegister(metrics)
//	locker, err := core.New(client, core.Observe(metrics))
//
// Labels take few values: name is what [core.Name] or the middleware says, never a
// key; form is exclusive, shared or permits, as the call wants the lock; reason and outcome are
// fixed words. All are those of [core.Event].
//
//	latchkey_lock_wait_seconds{name,form}                histogram  how long calls waited for a lock that they got
//	latchkey_lock_hold_seconds{name,form}                histogram  how long locks were held, until released or lost
//	latchkey_lock_waiting{name,form}                     gauge      calls that want a lock now
//	latchkey_lock_held{name,form}                        gauge      locks that are held now; of a lock that several hold each holder counts
//	latchkey_lock_oldest_hold_seconds{name,form}         gauge      for how long the oldest of them has been held
//	latchkey_lock_calls_total{name,form,outcome,reason}  counter    calls that wanted a lock: acquired, reentered, busy, failed
//	latchkey_lock_losses_total{name,form,reason}         counter    locks that ended before they were unlocked
//	latchkey_lock_overdue_total{name,form}               counter    locks held longer than core.MaxHold permits
//	latchkey_lock_renewal_failures_total{name,form}      counter    renewals that failed and were tried again
//	latchkey_lock_unconfirmed_releases_total{name,form}  counter    releases that Redis has not confirmed in time
//	latchkey_refusals_total{name,form,reason,status}     counter    requests and tasks that middleware refused
//	latchkey_missed_grants_total                         counter    grants that a waiting call noticed late or never
//	latchkey_unheard_total                               counter    attempts to subscribe to messages of Redis that failed; waiting calls poll
//	latchkey_pending_compensations                       gauge      commands of unknown outcome that are not confirmed to be undone yet
//	latchkey_redis_answer_seconds{server}                gauge      how long an answer of Redis takes lately
//	latchkey_redis_window{server}                        gauge      commands that may be in flight to Redis
//	latchkey_redis_overloaded{server}                    gauge      1: Redis is asked for more than it can do, and calls are refused
//	latchkey_redis_shed_total{server}                    counter    calls that were refused for that
//	latchkey_build_info{version}                         gauge      1: the version of latchkey in the program
//
// What alerts and the dashboard read is there, as 0, from the first call or refusal of
// a name and form on: to Prometheus a counter that appears with 1 has not increased. Left out is
// what is rare: calls that failed for another reason than unavailable, overloaded and
// invalid_key, and refusals but 400 invalid_key, 409 (429 of permits), 499 canceled and 503 unavailable and overloaded. A
// re-entry counts in calls_total only: it is part of the hold that it enters.
// The server is that of [core.Load]: a node of a cluster, or a shard of a ring, has series of its own. They are told while Redis is
// asked, and keep their last values afterwards. Of Lockers with one Collector and one server the last one is shown.
// What the metrics mean is in docs/observability.md; docs/alerts.yml has the alerts
// worth having, and docs/grafana.json is a dashboard.
package promlock
