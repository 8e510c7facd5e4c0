// Code generated from ginlock/idempotent.go by internal/architecture. DO NOT EDIT.

package echo5lock

import (
	"context"
	"crypto/cipher"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Idempotent processes the requests with an Idempotency-Key once: later requests with the same key
// get the stored answer, status, header and body, with "Idempotent-Replayed: true". scope is whose
// key it is, such as keyfunc.Value("userID"). For 24 h a key belongs to one request: one with
// another method, host, path, query, Content-Type or body is refused with 422. While the first
// request is processed, others are refused with 409 and Retry-After, or wait for its answer with
// [core.Wait]. GET, HEAD, OPTIONS and TRACE pass without a key. For all else there is [Idempotency].
//
// Bodies are read in full first, up to 1 MiB, unless [BufferBody] says otherwise. An answer that
// is hijacked, text/event-stream, longer than 64 KiB or not seen whole is not stored: later requests are refused
// with 409. Middleware that answers errors has to be inside, or the answer is not seen. What somebody writes by a
// ResponseWriter of net/http that was kept from outside cannot be noticed, and is missing when the answer is sent again.
//
// Where a handler returns without any answer and the context of the request is over, it is unknown whether it has
// done its work: see [Attempt].
//
// It panics when scope is nil or an option bad.
func Idempotent(scope keyfunc.Func[keyfunc.Request], opts ...core.Option) echo.MiddlewareFunc {
	return withDefault.Idempotent(scope, opts...)
}

// Attempt returns the number of the attempt at a request of [Idempotent], from the context of its
// handler: 1 for the first. If it is more, the outcome of an earlier attempt is unknown: find out
// whether it has done the work before it is done again. It is 0 outside of Idempotent.
func Attempt(ctx context.Context) int { return guard.Attempt(ctx) }

// IdempotencyKey returns the key by which a request of [Idempotent] is processed once, from a context as [Attempt]
// takes it: that of the header without quotes, so that it is the same in each spelling; or what
// [Idempotency].Key returns, such as "requestID=42". It is not ok outside of Idempotent.
func IdempotencyKey(ctx context.Context) (key string, ok bool) {
	return guard.IdempotencyKey(ctx)
}

// Idempotency says how requests are processed once, for [Config].Idempotent: see [Idempotent].
type Idempotency struct {
	// Scope is whose key it is: the user or tenant that authentication has found, such as
	// keyfunc.Value("userID"). Required: otherwise one client could read the answers to
	// another's requests.
	Scope keyfunc.Func[keyfunc.Request]
	// Key tells a request and its repetitions from other requests. nil: the header field
	// Idempotency-Key, of 1 to 255 visible ASCII characters, quoted or not.
	Key keyfunc.Func[keyfunc.Request]
	// Fingerprint is what a request and its repetitions have in common besides the key and the method: a
	// request with another one is refused with 422, one for which it fails with 400. nil: host, path, query,
	// Content-Type and body, of which a client sends the same bytes again. Needed where the query is signed anew,
	// or a token in the body changes; take all that says what is to be done.
	Fingerprint keyfunc.Func[keyfunc.Request]
	// Optional lets requests without a key through: they are processed each time. Otherwise
	// they are refused with 400, except GET, HEAD, OPTIONS and TRACE.
	Optional bool
	// StoreFor is for how long an answer is stored, from the moment at which it is complete. If
	// zero 24 h. It is also for how long an attempt with an unknown outcome is remembered.
	StoreFor time.Duration
	// MaxBytes is how long the body of a stored answer may be. If zero 64 KiB. The first client
	// gets a longer one, too; later ones are refused with 409.
	MaxBytes int
	// StoreIf says by its status whether an answer is stored; if not, the next request is
	// processed as if this one had not come. nil: those below 400, 402, 404, 410 and 422. Answers
	// from 500 on are never stored. Those from 400 on are stored for an hour at most, and only if
	// their body has at most 4 KiB.
	StoreIf func(status int) bool
	// Seal encrypts what is stored of answers. nil: it is stored as it is.
	Seal cipher.AEAD
	// RefuseUnknown refuses a request with 409 where the outcome of an earlier attempt is
	// unknown, because its process died or lost Redis, or it was not answered in time. Otherwise the request is processed, and
	// [Attempt] is more than 1.
	RefuseUnknown bool
}
