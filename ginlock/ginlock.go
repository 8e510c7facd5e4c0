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
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Config is the long form of the By functions.
type Config struct {
	// Locker takes the locks. nil means that of [With], or else [core.Default], looked up for each
	// request; with none set the request is refused with 500.
	Locker *core.Locker
	// Key derives the key of a request. One of Key, Param, Keys and Idempotent is required.
	Key keyfunc.Func[keyfunc.Request]
	// Param is the path parameter to lock by, on exactly the routes that declare
	// it, as [ByParam] does.
	Param string
	// Keys, in place of Key and Param, derives several keys: the request needs the locks of
	// all of them, as [ByAll] has it.
	Keys keyfunc.Set[keyfunc.Request]
	// Idempotent, in place of Key, Param and Keys, processes requests once, as the function
	// [Idempotent] does. It cannot be combined with Shared, Permits and FailOpen.
	Idempotent *Idempotency
	// Strict refuses, with 500 and a line in the log, a route that is matched and
	// does not declare Param, so that none passes by mistake. It needs Param.
	Strict bool
	// Options are for each lock. Unless they, or the Locker's, say otherwise,
	// a request waits up to 3 s, and up to 256 requests wait for one key in a
	// process.
	Options []core.Option
	// Shared says which requests share the lock, such as [SafeMethods]: they run together, and
	// the others have the lock alone; see [core.Shared].
	Shared func(*gin.Context) bool
	// Permits says how many requests may hold the lock when one is admitted, such as by the
	// tenant's plan; see [core.Permits]. A request for which it returns less than 1,
	// or more than 10,000, is refused with 500. Where all have the same, use [core.Permits] among
	// the Options.
	Permits func(*gin.Context) int
	// Weight says how many of the permits a request takes, in place of one; see [core.Weight]. A
	// request for which it returns less than 1, or more than there are, is refused with 500.
	Weight func(*gin.Context) int
	// Skip lets requests pass without a lock when it returns true.
	Skip func(*gin.Context) bool
	// OnRefused answers in place of the problem body. It begins with the status and
	// Retry-After set, so that it need only write a body; see [StatusOf] and [ReasonOf]. The
	// text of err may be shown; its cause, behind Unwrap, is for the server. The chain is
	// aborted already, and c.Errors has err: where middleware outside answers by c.Errors
	// without a look at c.Writer.Written, let OnRefused do nothing. It is not called when the
	// client has left. See also [SetOnRefused].
	OnRefused func(c *gin.Context, err error)
	// FailOpen runs the handlers WITHOUT a lock while Redis is unavailable. Only
	// for work that may run twice.
	FailOpen bool
	// Status answers a busy lock; if zero 409, or 429 where no permit is free. Between 400 and 599.
	Status int
	// BufferBody is how many bytes the body of a request may have. The body is read in full
	// before the lock is requested, so that no client waits for the lock, or holds it, while it
	// delays its body; the handler reads it from memory. A longer body is answered with 413, one
	// that cannot be read with 400. If zero, bodies of known length are read in this way up to
	// 64 KiB, and longer ones are left to the handler; if negative, all are.
	BufferBody int64
}

// ByParam locks by a path parameter, on exactly the routes that declare it. The
// key is "orderID=42": the name is part of it, the route is not, so that routes
// with the same parameter exclude one another. Routes without the parameter pass,
// with a warning in the log; where no route at all declares it, they are refused with 500
// and a line in the log that lists the declared names. A route that declares it twice, or in another
// spelling (letter case, "_" or "-" more or less), is refused with 500. It panics when no
// parameter can have that name or an option is bad.
func ByParam(name string, opts ...core.Option) gin.HandlerFunc {
	return withDefault.ByParam(name, opts...)
}

// ByHeader locks by a header field; a request without it, or with it twice, is
// refused with 400. The key is "X-User-Id=42". It panics when the name is empty
// or an option bad.
func ByHeader(name string, opts ...core.Option) gin.HandlerFunc {
	return withDefault.ByHeader(name, opts...)
}

// ByQuery locks by a query parameter; a request without it, or with it twice, is
// refused with 400. The key is "id=42". It panics when the name is empty or an
// option bad.
func ByQuery(name string, opts ...core.Option) gin.HandlerFunc {
	return withDefault.ByQuery(name, opts...)
}

// ByTemplate locks by a template, such as
// "order:{param.orderID}:user:{header.X-User-ID}". It panics when the template or
// an option is bad.
func ByTemplate(t string, opts ...core.Option) gin.HandlerFunc {
	return withDefault.ByTemplate(t, opts...)
}

// By locks by any key. It panics when key is nil or an option bad.
func By(key keyfunc.Func[keyfunc.Request], opts ...core.Option) gin.HandlerFunc {
	return withDefault.By(key, opts...)
}

// ByAll locks by all of several keys: the request runs when it has the locks of each, as
// [core.Locker.LockAll] takes them. It panics when keys is nil or an option bad.
func ByAll(keys keyfunc.Set[keyfunc.Request], opts ...core.Option) gin.HandlerFunc {
	return withDefault.ByAll(keys, opts...)
}

// New returns middleware for the configuration. It panics unless there is exactly one of Key, Param,
// Keys and Idempotent, when Strict is set without Param, an option is bad, or Status is no error status,
// and when Shared or Permits are combined with each other, with [core.KeepFor], or with an option
// that says the same, or Weight is without permits.
func New(cfg Config) gin.HandlerFunc { return withDefault.New(cfg) }

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

func (r request) Declared() (names []string, known bool) {
	engine := engineOf(r.c)
	if engine == nil {
		return nil, false
	}
	for _, route := range engine.Routes() {
		names = append(names, guard.ColonParams(route.Path, ":*")...)
	}
	return names, true
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
