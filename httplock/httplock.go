package httplock

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/core"
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
	Shared func(*http.Request) bool
	// Permits says how many requests may hold the lock when one is admitted, such as by the
	// tenant's plan; see [core.Permits]. A request for which it returns less than 1,
	// or more than 10,000, is refused with 500. Where all have the same, use [core.Permits] among
	// the Options.
	Permits func(*http.Request) int
	// Weight says how many of the permits a request takes, in place of one; see [core.Weight]. A
	// request for which it returns less than 1, or more than there are, is refused with 500.
	Weight func(*http.Request) int
	// Skip lets requests pass without a lock when it returns true.
	Skip func(*http.Request) bool
	// OnRefused answers in place of the problem body. Retry-After is set, and what is
	// written without WriteHeader has the status of the refusal; see [StatusOf] and
	// [ReasonOf]. The text of err may be shown; its cause, behind Unwrap, is for the server.
	// It is not called when the client has left. See also [SetOnRefused].
	OnRefused func(w http.ResponseWriter, r *http.Request, err error)
	// FailOpen runs the handler WITHOUT a lock while Redis is unavailable. Only
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
// with the same parameter exclude one another. A route without the parameter
// passes, with a warning in the log. One that declares it twice, or in another spelling
// (letter case, "_" or "-" more or less), is refused with 500.
//
// Where the route is not known yet the request is refused with 500 too: around a mux,
// and on a subtree ("/", "/api/", chi's "/api/*") without the parameter, for another
// router may be inside. Routers within one another need different names: the lock is by
// the value that is known where it stands, and the handler may find another one, of a
// router inside.
//
// It panics when no parameter can have that name or an option is bad.
func ByParam(name string, opts ...core.Option) func(http.Handler) http.Handler {
	return withDefault.ByParam(name, opts...)
}

// ByHeader locks by a header field; a request without it, or with it twice, is
// refused with 400. The key is "X-User-Id=42". It panics when the name is empty
// or an option bad.
func ByHeader(name string, opts ...core.Option) func(http.Handler) http.Handler {
	return withDefault.ByHeader(name, opts...)
}

// ByQuery locks by a query parameter; a request without it, or with it twice, is
// refused with 400. The key is "id=42". It panics when the name is empty or an
// option bad.
func ByQuery(name string, opts ...core.Option) func(http.Handler) http.Handler {
	return withDefault.ByQuery(name, opts...)
}

// ByTemplate locks by a template, such as
// "order:{param.orderID}:user:{header.X-User-ID}". It panics when the template or
// an option is bad.
func ByTemplate(t string, opts ...core.Option) func(http.Handler) http.Handler {
	return withDefault.ByTemplate(t, opts...)
}

// By locks by any key. It panics when key is nil or an option bad.
func By(key keyfunc.Func[keyfunc.Request], opts ...core.Option) func(http.Handler) http.Handler {
	return withDefault.By(key, opts...)
}

// ByAll locks by all of several keys: the request runs when it has the locks of each, as
// [core.Locker.LockAll] takes them. It panics when keys is nil or an option bad.
func ByAll(keys keyfunc.Set[keyfunc.Request], opts ...core.Option) func(http.Handler) http.Handler {
	return withDefault.ByAll(keys, opts...)
}

// New returns middleware for the configuration. It panics unless there is exactly one of Key, Param,
// Keys and Idempotent, when Strict is set without Param, an option is bad, or Status is no error status,
// and when Shared or Permits are combined with each other, with [core.KeepFor], or with an option
// that says the same, or Weight is without permits.
func New(cfg Config) func(http.Handler) http.Handler { return withDefault.New(cfg) }

// middleware is not inlined, so that RouteCheck knows what it has made.
//
//go:noinline
func middleware(common guard.Common[onRefusedFunc], cfg Config, own guard.Config) func(http.Handler) http.Handler {
	g, answerer := guard.New("httplock", common, own, &onRefused, cfg.OnRefused)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r == probed {
				probe.Found(g)
				probeInside(next)
				return
			}
			if cfg.Skip != nil && cfg.Skip(r) {
				next.ServeHTTP(w, r)
				return
			}
			refusal := g.Serve(request{r, w}, func(ctx context.Context, outcome *guard.Outcome) {
				serve(next, w, r, ctx, outcome)
			})
			if refusal == nil {
				return
			}
			answer := answerer()
			if answer == nil || refusal.IsFixed() {
				refusal.Write(w)
				return
			}
			refused := refusal.Writer(w)
			answer(refused, r, refusal)
			refused.Begin()
		})
	}
}

// serve runs the handler under ctx.
func serve(next http.Handler, w http.ResponseWriter, r *http.Request, ctx context.Context, outcome *guard.Outcome) {
	inner := guard.Inner(r, ctx)
	defer guard.HandBack(r, inner)
	if outcome.Matters(ctx) {
		w = guard.Watch(w, outcome, nil)
	}
	next.ServeHTTP(w, inner)
}

// request shows a request of net/http to the guard.
type request struct {
	r *http.Request
	w http.ResponseWriter
}

func (r request) HTTP() *http.Request { return r.r }

func (r request) ResponseHeader() http.Header { return r.w.Header() }

// ServedBy is empty: request and writer are never those of another request.
func (r request) ServedBy() string { return "" }

func (r request) Param(name string) (value string, declared bool) {
	value = r.r.PathValue(name)
	return value, value != "" || slices.Contains(r.Params(), name)
}

// Decoded is true for the values of a mux, and false for those that another router has set, such as
// chi, which takes them from the path as it was sent. Where chi is inside of the mux, and has a
// parameter of the same name, the pattern is another one.
func (r request) Decoded(name string) bool {
	fields := reflect.ValueOf(r.r).Elem()
	matched := reflect.Indirect(fields.FieldByName("pat")) // by the mux
	set := fields.FieldByName("otherValues")               // by SetPathValue
	return matched.Kind() == reflect.Struct && matched.FieldByName("str").String() == r.r.Pattern &&
		set.Kind() == reflect.Map && !set.MapIndex(reflect.ValueOf(name)).IsValid()
}

// Params returns the names that the pattern has, which is that of the last router
// only, without what those around it have found.
func (r request) Params() (names []string) { return params(r.r.Pattern) }

func params(pattern string) (names []string) {
	if strings.HasSuffix(pattern, "/*") { // chi
		names = append(names, "*")
	}
	for {
		_, after, found := strings.Cut(pattern, "{")
		if !found {
			return names
		}
		wildcard, rest, _ := strings.Cut(after, "}")
		name, _, _ := strings.Cut(wildcard, ":") // chi's patterns with a regular expression
		names = append(names, strings.TrimSuffix(name, "..."))
		pattern = rest
	}
}

// Declared is unknown: a mux does not list its routes.
func (r request) Declared() (names []string, known bool) { return nil, false }

func (r request) Value(key any) any { return r.r.Context().Value(key) }

// Route is unknown around a mux, and also between two: the pattern of a subtree
// says nothing about the router that may be inside.
func (r request) Route() (pattern string, known bool) {
	pattern = r.r.Pattern
	return pattern, pattern != "" && !isSubtree(pattern)
}

func isSubtree(pattern string) bool {
	return strings.HasSuffix(pattern, "/") || strings.HasSuffix(pattern, "...}") ||
		strings.HasSuffix(pattern, "/*") // chi's Mount and Route
}
