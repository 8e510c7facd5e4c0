// Package httplock guards net/http handlers with a distributed lock: of all
// requests with the same key, one at a time runs, across every process.
//
//	mux.Handle("POST /orders/{orderID}/pay", httplock.ByParam("orderID")(pay))
//
// It fits every router with middleware of the form func(http.Handler)
// http.Handler. [ByParam] needs the router to have matched the route already and
// to show the parameters by [http.Request.PathValue], as net/http's ServeMux and
// chi do: wrap the route's handler (chi: r.With), not the whole mux. With gorilla,
// which does not, use [By] and mux.Vars.
//
// The handler finds the lock's context in its request: it is cancelled when the
// lock is lost, and locks taken with it re-enter.
//
// A request that must not run is answered with application/problem+json: 400
// when the key is missing, given twice or malformed, 409 with Retry-After when
// the lock is busy, 429 with Retry-After when it has permits and none is free, 503 with
// Retry-After when Redis does not answer or the Locker is closing, 500 when no
// Locker is set or the route is not known yet. See [ReasonOf] and [PartOf] for its members.
//
// [With] makes middleware that has one Locker and the same options, without globals.
//
// With [core.Shared], or where [Config.Shared] says so, requests share a lock and run
// together; with [core.Permits] or [Config.Permits] so many of a key run as there are permits.
// [ByAll] takes the locks of several keys.
//
// Put [http.TimeoutHandler] outside: the lock is kept until the handler really
// returns, which may be after the client got its 503. Inside, its 503 is the end for
// the lock as well, while the handler may still be running under a context that is
// done. In the same way a handler that has hijacked the connection keeps the lock
// until it returns, not until the connection is closed.
//
// [LockPage] is a page for operators: what this process holds and waits for.
package httplock
