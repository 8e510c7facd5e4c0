package ginlock

import (
	"log/slog"
	"sync/atomic"

	"github.com/gin-gonic/gin"
)

var contextTold atomic.Bool // once for the process

// tellOfContext logs that calls with c go on when the lock is lost, where the engine has it so.
func tellOfContext(c *gin.Context) {
	if !contextTold.Load() && c.Done() == nil && contextTold.CompareAndSwap(false, true) {
		slog.Warn("latchkey: calls with gin's c would go on when the lock is lost: set the engine's ContextWithFallback, or give all calls c.Request.Context()")
	}
}
