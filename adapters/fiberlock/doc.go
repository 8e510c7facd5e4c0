// Package fiberlock guards handlers of fiber v3 with a distributed lock: of all requests
// with the same key, one at a time runs, across every process.
//
//	app.Post("/orders/:orderID/pay", fiberlock.ByParam("orderID"), pay)
//
// Put the middleware on the route, after authentication: in app.Use fiber does not know the route yet, and a
// request whose key needs a path parameter is refused there. Handlers work under c.Context(): it is cancelled when the lock is
// lost, and locks taken with it re-enter. They do with c itself, too, but c is never done.
//
// A request that must not run is not answered here: the middleware returns an error for the ErrorHandler of the
// application, in which [errors.As] finds a [*fiber.Error] with the status: 400 when the key is missing, given twice or malformed, 409
// when the lock is busy, 429 when it has permits and none is free, 503 when Redis does not answer or the Locker is
// closing, 500 when no Locker is set or the route does not declare the path parameter; the log says so. Retry-After is set
// already. The text of the error may be shown to anybody, and fiber's own ErrorHandler sends it; httplock.ReasonOf returns a
// code for programs. Errors of core that a handler returns are answered in this way as well.
//
// fasthttp does not tell that a client has left: its request waits on, and then runs, unless middleware outside ends the context.
//
// A dedup window opens after a success: not after an error, a panic, a status of 400 or more, or no answer by the end of the context.
package fiberlock
