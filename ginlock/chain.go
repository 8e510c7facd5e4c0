package ginlock

import (
	"net/http"
	"reflect"
	"slices"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/internal/guard"
)

// Nil: this version of gin keeps them elsewhere.
var (
	handlersOf = guard.FieldOf[gin.Context, gin.HandlersChain]("handlers")
	indexOf    = guard.FieldOf[gin.Context, int8]("index")
)

var serveHTTP = guard.FunctionName((*gin.Engine).ServeHTTP)

// chains are what is run in place of the handler chains of routes, by the first handler as gin has it.
type chains struct{ sync.Map }

// chain is that of a route.
type chain struct {
	checked gin.HandlersChain // with a check behind each handler
	refused gin.HandlersChain // runs none of them
}

// take takes the rest of the chain from the context, which runs none of it until it is given back. Gin goes on with it
// where middleware outside has run the guard in a goroutine, which may end without the lock.
func (s *chains) take(c *gin.Context) *chain {
	if handlersOf == nil || indexOf == nil || int(*indexOf(c))+1 >= len(*handlersOf(c)) {
		return nil
	}
	own := *handlersOf(c)
	known, found := s.Load(&own[0])
	if !found {
		known, _ = s.LoadOrStore(&own[0], newChain(own))
	}
	rest := known.(*chain)
	*handlersOf(c) = rest.refused
	return rest
}

// give has the context run the rest of its chain with a check behind each handler, until end. Gin asks the context
// for the next handler when one returns: one that returns late would run another request's handler, under a
// lock that is not that request's.
func (rest *chain) give(c *gin.Context) {
	if rest != nil {
		*handlersOf(c) = rest.checked
	}
}

// newChain returns the chain of a route, or of a guard outside. The last handler ends it, so that what follows is never
// run: the last as gin names it.
func newChain(own gin.HandlersChain) *chain {
	last := len(own) - 1
	rest := &chain{checked: own, refused: append(slices.Repeat(gin.HandlersChain{refuse}, last+1), own[last])}
	if isChecked(own[0]) {
		return rest
	}
	rest.checked = nil
	for _, handler := range own[:last] {
		rest.checked = append(rest.checked, withCheck(handler))
	}
	rest.checked = append(rest.checked, withCheck(func(c *gin.Context) {
		end(c)
		if handler := own[last]; handler != nil {
			handler(c)
		}
	}), own[last])
	return rest
}

// refuse answers where nobody else does.
func refuse(c *gin.Context) {
	c.Abort()
	if !c.Writer.Written() {
		c.AbortWithStatus(http.StatusServiceUnavailable)
	}
}

// end leaves nothing of the chain to be run but its name, that of the last handler, to be asked for. What is behind a guard
// runs inside of it or not at all: gin would go on with it after a panic that middleware outside recovers without an
// Abort, and where HandleContext, before gin 1.11, has left the chain of the other route.
func end(c *gin.Context) {
	if handlersOf == nil {
		return
	}
	if handlers := handlersOf(c); len(*handlers) > 1 {
		*handlers = (*handlers)[len(*handlers)-1:]
	}
}

// withCheck is not inlined, so that isChecked knows what it has made.
//
//go:noinline
func withCheck(handler gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		received := guard.ReceivedIn(c.Request.Context())
		if received != nil && received.IsOver() {
			refuse(c)
			return
		}
		if handler != nil { // some versions of gin pass over one that is nil
			handler(c)
		}
		if received != nil {
			received.End()
		}
	}
}

var checkedCode = reflect.ValueOf(withCheck(nil)).Pointer()

func isChecked(handler gin.HandlerFunc) bool {
	return reflect.ValueOf(handler).Pointer() == checkedCode
}
