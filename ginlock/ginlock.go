package ginlock

import (
	"context"
	"net/http"
	"reflect"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/internal/guard"
)

// middleware is not inlined, so that RouteCheck knows what it has made.
//
//go:noinline
func middleware(common guard.Common[onRefusedFunc], cfg Config, own guard.Config) gin.HandlerFunc {
	g, answerer := guard.New("ginlock", common, own, &onRefused, cfg.OnRefused)
	chains := new(chains)
	return func(c *gin.Context) {
		if c == probed {
			probe.Found(g)
			return
		}
		if cfg.Skip != nil && cfg.Skip(c) {
			return
		}
		rest := chains.take(c)
		refusal := g.Serve(request{c}, func(ctx context.Context, outcome *guard.Outcome) { next(c, rest, ctx, outcome) })
		if refusal == nil {
			return
		}
		c.Abort()
		end(c)
		if refusal.IsFixed() {
			refusal.Write(c.Writer)
			return
		}
		_ = c.Error(&gin.Error{Err: refusal, Type: gin.ErrorTypePrivate}) // as it is, or gin looks for one of its own in the cause
		answer := answerer()
		if answer == nil {
			refusal.Write(c.Writer)
			return
		}
		refusal.RetryHeader(c.Writer.Header())
		c.Status(refusal.Status)
		answer(c, refusal)
	}
}

// next runs the rest of the chain under ctx. Afterwards the request has its own
// context back, for the middleware outside: the lock's is cancelled by then.
func next(c *gin.Context, rest *chain, ctx context.Context, outcome *guard.Outcome) {
	outer, writer := c.Request, c.Writer // middleware inside may put another writer in its place
	before, _ := c.Get(adapter.ContextKey)
	failures := len(c.Errors)
	received := guard.ReceivedIn(ctx)

	c.Request = guard.Inner(outer, ctx)
	if lock, ok := core.FromContext(ctx); ok {
		tellOfContext(c, lock, received.Logger())
		c.Set(adapter.ContextKey, lock)
	}
	var watched *recorded
	if outcome.Matters(ctx) {
		watched = record(writer, outcome)
		c.Writer = watched
		defer func() {
			if received.IsOurs() && c.Writer == watched {
				c.Writer = writer
			}
		}()
	}
	rest.give(c)
	defer func() {
		if !received.IsOurs() {
			outcome.Unseen()
			return
		}
		end(c)
		c.Request = received.Outer(outer, c.Request)
		c.Set(adapter.ContextKey, before)

		outcome.Implied(writer.Status(), watched != nil && watched.stated)
		if writer.Written() {
			outcome.WriteHeader(writer.Status())
		}
		if len(c.Errors) > failures {
			outcome.Fail()
		}
	}()
	c.Next()
}

// request shows a gin request to the guard.
type request struct{ c *gin.Context }

func (r request) HTTP() *http.Request { return r.c.Request }

func (r request) Param(name string) (value string, declared bool) {
	value, declared = r.c.Params.Get(name)
	return value, declared || slices.Contains(r.Params(), name)
}

// Decoded is false where UseRawPath may take the parameters from the path as it was sent, and
// nobody decodes them.
func (r request) Decoded(string) bool {
	engine := engineOf(r.c)
	return engine != nil && engine.UnescapePathValues
}

// Params are in the pattern of the route as well: a context that gin has made before any route had a parameter has no room
// for their values, and gin leaves them out.
func (r request) Params() []string {
	if len(r.c.Params) == 0 {
		return guard.ColonParams(r.c.FullPath(), ":*")
	}
	names := make([]string, len(r.c.Params))
	for i, p := range r.c.Params {
		names[i] = p.Key
	}
	return names
}

func (r request) Value(key any) any {
	if v := r.c.Value(key); v != nil {
		return v
	}
	return r.c.Request.Context().Value(key)
}

func (r request) ResponseHeader() http.Header { return r.c.Writer.Header() }

func (r request) ServedBy() string { return serveHTTP }

func (r request) Declared(behind *guard.Guard) (names []string, known bool) {
	engine := engineOf(r.c)
	if engine == nil {
		return nil, false
	}
	routes, err := routesOf(engine)
	return guard.DeclaredBehind(behind, routes), err == nil
}

func (r request) IsFallback(g *guard.Guard) bool {
	engine := engineOf(r.c)
	if engine == nil {
		return false
	}
	given := slices.Concat(fallbacks(engine, "NoRoute"), fallbacks(engine, "NoMethod"))
	return len(given) > 0 && slices.Contains(guardsOf(given), g)
}

// engineOf returns nil where this version of gin keeps it elsewhere.
func engineOf(c *gin.Context) *gin.Engine {
	engine := guard.Unexported[*gin.Engine](reflect.ValueOf(c).Elem(), "engine")
	if engine == nil {
		return nil
	}
	return *engine
}

func (r request) Route() (pattern string, known bool) { return r.c.FullPath(), true }
