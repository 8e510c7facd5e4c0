package ginlock

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Idempotent has requests with an Idempotency-Key count once: later ones with the same key get
// the first answer again, status, header and body, with "Idempotent-Replayed: true". scope is
// whose key it is, such as keyfunc.Value("userID"). For 24 h a key belongs to one request: one
// with another method, path, query, Content-Type or body is refused with 422. While the first is
// processed others are refused with 409 and Retry-After, or wait for its answer with [core.Wait].
// GET, HEAD, OPTIONS and TRACE pass. For all else there is [Idempotency].
//
// Bodies are read in full before, up to 1 MiB, unless [BufferBody] says otherwise. An answer
// that is flushed, hijacked or longer than 256 KiB is not kept: later requests are refused with
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

// Idempotency is how requests count once, for [Config].Idempotent: see [Idempotent]. Scope is
// required; docs/idempotency.md has all fields.
type Idempotency = guard.Idempotency
