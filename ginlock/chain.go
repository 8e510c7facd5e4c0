package ginlock

import (
	"reflect"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/internal/guard"
)

var serveHTTP = guard.FunctionName((*gin.Engine).ServeHTTP)

// chains are the handler chains of routes with a check behind each handler, by the first handler as gin has it.
type chains struct{ sync.Map }

// check has the context run the rest of its chain with a check behind each handler, until end. Gin asks the context
// for the next handler when one returns: one that returns late would run another request's handler, under a
// lock that is not that request's.
func (s *chains) check(c *gin.Context) {
	fields := reflect.ValueOf(c).Elem()
	chain, index := guard.Unexported[gin.HandlersChain](fields, "handlers"), guard.Unexported[int8](fields, "index")
	if chain == nil || index == nil { // this version of gin keeps them elsewhere
		return
	}
	own := *chain
	if int(*index)+1 >= len(own) || isChecked(own[0]) {
		return
	}
	known, found := s.Load(&own[0])
	if !found {
		known, _ = s.LoadOrStore(&own[0], checked(own))
	}
	*chain = known.(gin.HandlersChain)
}

// checked returns the chain with a check behind each handler. The last one ends it, so that what follows is never run:
// the last as gin names it.
func checked(own gin.HandlersChain) gin.HandlersChain {
	checked := make(gin.HandlersChain, len(own), len(own)+1)
	last := len(own) - 1
	for i, handler := range own {
		checked[i] = withCheck(handler)
	}
	checked[last] = withCheck(func(c *gin.Context) {
		end(c)
		if handler := own[last]; handler != nil {
			handler(c)
		}
	})
	return append(checked, own[last])
}

// end leaves nothing of the chain to be run but its name, that of the last handler, to be asked for. What is behind a guard
// runs inside of it or not at all: gin would go on with it after a panic that middleware outside recovers without an
// Abort, and where HandleContext, before gin 1.11, has left the chain of the other route.
func end(c *gin.Context) {
	chain := guard.Unexported[gin.HandlersChain](reflect.ValueOf(c).Elem(), "handlers")
	if chain != nil && len(*chain) > 1 {
		*chain = (*chain)[len(*chain)-1:]
	}
}

// withCheck is not inlined, so that isChecked knows what it has made.
//
//go:noinline
func withCheck(handler gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		received := guard.ReceivedIn(c.Request.Context())
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
