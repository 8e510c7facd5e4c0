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
		slog.Warn("latchkey: a call with gin's c goes on when the lock is lost: set the engine's ContextWithFallback, or give such calls c.Request.Context()")
	}
}
