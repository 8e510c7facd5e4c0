package ginlock

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/core"
)

var contextTold atomic.Bool // once for the process

// tellOfContext logs that calls with c go on when the lock is lost, where the engine has it so: then c
// does not show the context of its request, which has the lock.
func tellOfContext(c *gin.Context, lock *core.Lock, logger *slog.Logger) {
	shows := func() bool {
		shown, _ := core.FromContext(c) // which costs less than the channel of Done
		return shown == lock || c.Done() != nil
	}
	if !contextTold.Load() && !shows() && contextTold.CompareAndSwap(false, true) {
		logger.WarnContext(context.WithoutCancel(c.Request.Context()), "latchkey: calls with gin's c would go on when the lock is lost: "+
			"set the engine's ContextWithFallback, or give all calls c.Request.Context()")
	}
}

// requestContext returns that of the request where ctx is gin's, which shows nothing of it by itself.
func requestContext(ctx context.Context) context.Context {
	if c, ok := ctx.Value(gin.ContextKey).(*gin.Context); ok {
		return c.Request.Context()
	}
	return ctx
}
