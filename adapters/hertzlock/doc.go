// Package hertzlock guards handlers of hertz with a distributed lock: of all requests
// with the same key, one at a time runs, across every process.
//
//	h.POST("/orders/:orderID/pay", hertzlock.ByParam("orderID"), pay)
//
// Put it on the routes, or a group of them, after authentication. The context.Context of the handlers behind it is cancelled
// when the lock is lost, and locks taken with it re-enter. hertz gives a RequestContext to the next request when its
// handlers have returned: a goroutine that outlives them needs a copy, and has no lock.
//
// A request that must not run is answered with application/problem+json: 400 when the key is missing, given twice or
// malformed, 409 with Retry-After when the lock is busy, 429 with Retry-After when it has permits and none is free, 503 with
// Retry-After when Redis does not answer or the Locker is closing, 500 when no Locker is set or the route does not
// declare the path parameter of a key; the log says so. Package httplock says of the error in c.Errors what the body has.
//
// Give the server the option WithSenseClientDisconnection(true), so that a client that leaves ends its wait.
//
// A dedup window opens after a success: not after an error in c.Errors, a panic, a status of 400 or more, or no answer by the
// end of the context.
package hertzlock
