// Package echo5lock guards echo v5 routes with a distributed lock: of all requests
// with the same key, one at a time runs, across every process. For echo v4 import
// github.com/latchkey-go/latchkey/echolock, which has the same functions.
//
//	e.POST("/orders/:orderID/pay", pay, echo5lock.ByParam("orderID"))
//
// The lock is taken before the handler and released when it returns or panics. The
// handler finds the lock's context in c.Request().Context(): it is cancelled when
// the lock is lost, and locks taken with it re-enter.
//
// A request that must not run ends with an *echo.HTTPError, so that the
// application's error handler stays in charge: 400 when the key is missing, given
// twice or malformed, 409 when the lock is busy, 429 when it has permits and none is
// free, 503 when Redis does not answer or the Locker is closing, 500 when no Locker is
// set or, in e.Pre, the route is not known yet. Retry-After is set on the response.
// echo's own error handler answers with the body that RFC 9457 defines,
// application/problem+json: see [ReasonOf] and [PartOf] for its members.
//
// [With] makes middleware that has one Locker and the same options, without globals.
//
// With [core.Shared], or where [Config.Shared] says so, requests share a lock and run
// together; with [core.Permits] or [Config.Permits] so many of a key run as there are permits.
// [ByAll] takes the locks of several keys.
//
// A timeout belongs around the whole engine, as [net/http.TimeoutHandler], or into the request's context as its
// deadline: with middleware outside that answers before the handlers have returned, echo gives their context to
// another request while they still run.
//
// Update this module together with latchkey: it stands on what is internal there.
package echo5lock
