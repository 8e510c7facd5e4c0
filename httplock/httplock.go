package httplock

import (
	"context"
	"net/http"
	"strings"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Config is the long form of the By functions.
type Config struct {
	// Locker takes the locks. nil means [core.Default], looked up for each
	// request; with none set the request is refused with 500.
	Locker *core.Locker
	// Key derives the key of a request. Required.
	Key keyfunc.Func[keyfunc.Request]
	// Options are for each lock. Unless they, or the Locker's, say otherwise,
	// a request waits up to 3 s, and up to 256 requests wait for one key in a
	// process.
	Options []core.Option
	// Skip lets requests through without a lock when it returns true.
	Skip func(*http.Request) bool
	// OnRefused answers in place of the problem body; err tells why, for the
	// server only. It is not called when the client has left.
	OnRefused func(w http.ResponseWriter, r *http.Request, err error)
	// FailOpen runs the handler WITHOUT a lock while Redis is unavailable. Only
	// for work that may run twice.
	FailOpen bool
	// Status answers a busy lock, 409 if zero; between 400 and 599.
	Status int
}

// ByParam locks by a path parameter, on exactly the routes that declare it. The
// key is "orderID=42": the name is part of it, the route is not, so that routes
// with the same parameter exclude one another. A route without the parameter
// passes, with a warning in the log. Where the route is not known yet the request is
// refused with 500: around a mux, and on a subtree ("/", "/api/", chi's "/api/*")
// without the parameter, for another router may be inside. It panics when the name is
// empty or an option bad.
func ByParam(name string, opts ...core.Option) func(http.Handler) http.Handler {
	return short(guard.ByParam(name), opts)
}

// ByHeader locks by a header field; a request without it, or with it twice, is
// refused with 400. The key is "X-User-Id=42". It panics when the name is empty
// or an option bad.
func ByHeader(name string, opts ...core.Option) func(http.Handler) http.Handler {
	return short(guard.ByHeader(name), opts)
}

// ByQuery locks by a query parameter; a request without it, or with it twice, is
// refused with 400. The key is "id=42". It panics when the name is empty or an
// option bad.
func ByQuery(name string, opts ...core.Option) func(http.Handler) http.Handler {
	return short(guard.ByQuery(name), opts)
}

// ByTemplate locks by a template, such as
// "order:{param.orderID}:user:{header.X-User-ID}". It panics when the template or
// an option is bad.
func ByTemplate(t string, opts ...core.Option) func(http.Handler) http.Handler {
	return short(guard.ByTemplate("httplock", t), opts)
}

// By locks by any key. It panics when key is nil or an option bad.
func By(key keyfunc.Func[keyfunc.Request], opts ...core.Option) func(http.Handler) http.Handler {
	return short(guard.Config{Key: key}, opts)
}

// New returns a middleware for the configuration. It panics when Key is nil, an
// option is bad or Status is no error status.
func New(cfg Config) func(http.Handler) http.Handler {
	return middleware(cfg, guard.New("httplock", guard.Config{
		Locker:   cfg.Locker,
		Key:      cfg.Key,
		Options:  cfg.Options,
		FailOpen: cfg.FailOpen,
		Status:   cfg.Status,
	}))
}

func short(cfg guard.Config, opts []core.Option) func(http.Handler) http.Handler {
	cfg.Options = opts
	return middleware(Config{}, guard.New("httplock", cfg))
}

func middleware(cfg Config, g *guard.Guard) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if cfg.Skip != nil && cfg.Skip(r) {
				next.ServeHTTP(w, r)
				return
			}
			refusal := g.Serve(request{r}, func(ctx context.Context) bool { return serve(next, w, r, ctx) })
			switch {
			case refusal == nil:
			case cfg.OnRefused != nil && !refusal.Gone():
				cfg.OnRefused(w, r, refusal.Err)
			default:
				refusal.Write(w)
			}
		})
	}
}

// serve runs the handler under ctx.
func serve(next http.Handler, w http.ResponseWriter, r *http.Request, ctx context.Context) (succeeded bool) {
	inner := r.WithContext(ctx)
	defer guard.HandBack(r, inner)
	if !guard.Matters(ctx) {
		next.ServeHTTP(w, inner)
		return true
	}
	w, answer := watch(w)
	next.ServeHTTP(w, inner)
	return answer.Succeeded()
}

// request shows a request of net/http to the guard.
type request struct{ r *http.Request }

func (r request) HTTP() *http.Request { return r.r }

func (r request) Param(name string) (value string, declared bool) {
	value = r.r.PathValue(name)
	return value, value != "" ||
		strings.Contains(r.r.Pattern, "{"+name+"}") || strings.Contains(r.r.Pattern, "{"+name+"...}") ||
		strings.Contains(r.r.Pattern, "{"+name+":") // chi's patterns with a regular expression
}

func (r request) Value(key any) any { return r.r.Context().Value(key) }

// Route is unknown around a mux, and also between two: the pattern of a subtree
// says nothing about the router that may be inside.
func (r request) Route() (pattern string, known bool) {
	pattern = r.r.Pattern
	subtree := strings.HasSuffix(pattern, "/") || strings.HasSuffix(pattern, "...}") ||
		strings.HasSuffix(pattern, "/*") // chi's Mount and Route
	return pattern, pattern != "" && !subtree
}
