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

// check has the context run the rest of its chain with a check behind each handler, until restore. Gin asks the context
// for the next handler when one returns: one that returns late would run another request's handler, under a
// lock that is not that request's.
func (s *chains) check(c *gin.Context) (restore func()) {
	chain := guard.Unexported[gin.HandlersChain](reflect.ValueOf(c).Elem(), "handlers")
	if chain == nil || len(*chain) == 0 || isChecked((*chain)[0]) { // nil: this version of gin keeps it elsewhere
		return func() {}
	}
	own := *chain
	known, found := s.Load(&own[0])
	if !found {
		checked := make(gin.HandlersChain, len(own))
		for i, handler := range own {
			checked[i] = withCheck(handler)
		}
		known, _ = s.LoadOrStore(&own[0], checked)
	}
	checked := known.(gin.HandlersChain)
	*chain = checked
	return func() {
		if len(*chain) > 0 && &(*chain)[0] == &checked[0] { // HandleContext leaves another one
			*chain = own
		}
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
