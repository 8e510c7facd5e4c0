// Package ginlock guards gin routes with a distributed lock: of all requests
// with the same key, one at a time runs, across every process.
//
//	router.POST("/orders/:orderID/pay", ginlock.ByParam("orderID"), pay)
//
// The lock is taken before the handlers that follow in the chain and released
// when they return or panic. They find the lock's context in
// c.Request.Context(): it is cancelled when the lock is lost, and locks taken
// with it re-enter. They do with c itself, too, but what is called with c ends with the lock
// only where the engine's ContextWithFallback is set; otherwise the log says so once,
// whether there is such a call or not.
//
// A middleware in router.Use guards all routes that are added after it, also those that only
// read: see [SafeMethods]. [RouteCheck] lists what is guarded.
//
// A request that must not run is answered with application/problem+json: 400
// when the key is missing, given twice or malformed, 409 with Retry-After when
// the lock is busy, 429 with Retry-After when it has permits and none is free, 503 with
// Retry-After when Redis does not answer or the Locker is closing, 500 when no
// Locker is set. See [ReasonOf] and [PartOf] for its members.
//
// [With] makes middleware that has one Locker and the same options, without globals.
//
// With [core.Shared], or where [Config.Shared] says so, requests share a lock and run
// together; with [core.Permits] or [Config.Permits] so many of a key run as there are permits.
// [ByAll] takes the locks of several keys.
//
// A timeout belongs around the whole engine, as [net/http.TimeoutHandler], or into the request's context as its
// deadline: with middleware outside that answers before the handlers have returned, gin gives their context to
// another request while they still run.
package ginlock
