package ginlock

import (
	"context"
	"crypto/cipher"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Idempotent has requests with an Idempotency-Key count once: later ones with the same key get
// the first answer again, status, header and body, with "Idempotent-Replayed: true". scope is
// whose key it is, such as keyfunc.Value("userID"). For 24 h a key belongs to one request: one
// with another method, host, path, query, Content-Type or body is refused with 422. While the first is
// processed others are refused with 409 and Retry-After, or wait for its answer with [core.Wait].
// GET, HEAD, OPTIONS and TRACE pass without a key. For all else there is [Idempotency].
//
// Bodies are read in full before, up to 1 MiB, unless [BufferBody] says otherwise. An answer
// that is flushed, hijacked or longer than 64 KiB is not kept: later requests are refused with
// 409. What answers errors has to be inside, or the answer is not seen.
//
// It panics when scope is nil or an option bad.
func Idempotent(scope keyfunc.Func[keyfunc.Request], opts ...core.Option) gin.HandlerFunc {
	return short(guard.Idempotent("ginlock", scope), opts)
}

// Attempt returns the number of the attempt at a request of [Idempotent], from the context that
// its handler works under, which may be the *gin.Context: 1 for the first. If it is more, nobody
// knows whether an earlier one has done the work: find out before it is done again. It is 0 where
// there is none.
func Attempt(ctx context.Context) int {
	if c, ok := ctx.Value(gin.ContextKey).(*gin.Context); ok { // it shows nothing of its request's context by itself
		ctx = c.Request.Context()
	}
	return guard.Attempt(ctx)
}

// Idempotency is how requests count once, for [Config].Idempotent: see [Idempotent].
type Idempotency struct {
	// Scope is whose key it is: the user or tenant that authentication has found out, such as
	// keyfunc.Value("userID"). Required: or one client could read the answers to another's
	// requests.
	Scope keyfunc.Func[keyfunc.Request]
	// Key is what a client gives a request, and its repetitions, to tell them from others. nil:
	// the header field Idempotency-Key, of 1 to 255 visible ASCII characters, quoted or not.
	Key keyfunc.Func[keyfunc.Request]
	// Optional lets requests without a key through, which count each time. Otherwise
	// they are refused with 400, save GET, HEAD, OPTIONS and TRACE.
	Optional bool
	// StoreFor is for how long an answer is kept, from the moment on at which it is complete. If
	// zero 24 h. It is also for how long it is known that an attempt was made, of which nobody
	// knows more.
	StoreFor time.Duration
	// MaxBytes is how long the body of an answer may be that is kept. If zero 64 KiB. The
	// first client gets a longer one, too; later ones are refused with 409.
	MaxBytes int
	// Headers are the names of header fields of the answer that are kept besides Content-Type,
	// Content-Language, Content-Encoding, Location, Content-Location, ETag, Last-Modified and
	// Link.
	Headers []string
	// StoreIf says by its status whether an answer is kept; if not, the request counts as one
	// that has not come, and the next one is processed. nil: those below 400, 402, 404,
	// 410 and 422. Those from 500 on are never kept, those from 400 on for an hour at most, and
	// if their body is no longer than 4 KiB.
	StoreIf func(status int) bool
	// Seal encrypts what is stored of answers. nil: it is stored as it is.
	Seal cipher.AEAD
	// RefuseUnknown refuses a request with 409 where nobody knows whether an earlier attempt has
	// done the work, because its process died or lost Redis. Otherwise it is processed, and
	// [Attempt] is more than 1.
	RefuseUnknown bool
}
