package httplock

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/internal/guard"
)

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

// Declared is unknown, unless chi has found the route: a mux does not list its routes.
func (r request) Declared(behind *guard.Guard) (names []string, known bool) {
	check := RouteCheck{}
	if router, found := chiOf(r.r.Context()); !found || check.AddRouter(router) != nil {
		return nil, false
	}
	return guard.DeclaredBehind(behind, check.seen), true
}

// IsFallback is false: a mux has no handler of such requests, and chi does not tell that it has called its own.
func (r request) IsFallback(*guard.Guard) bool { return false }

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
