package conformance_test

import (
	"context"
	"log"
	"net/http"
	"strings"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
)

type netHTTPMiddleware = func(http.Handler) http.Handler

var netHTTPFramework = framework{name: "net/http", adapter: "httplock", statusOf: httplock.StatusOf, reasonOf: httplock.ReasonOf, partOf: httplock.PartOf,
	strict: httplock.Strict, failOpen: httplock.FailOpen, status: httplock.Status, locker: httplock.Locker, bufferBody: httplock.BufferBody,
	with:      func(l *core.Locker, opts ...core.Option) { httplock.With(l, opts...) },
	onRefused: func(f refusing) core.Option { return httplock.OnRefused(f) },
	attempt:   httplock.Attempt, ownKey: httplock.IdempotencyKey,
	setOnRefused: func(f refusing) { httplock.SetOnRefused(f) }, build: func(routes ...route) http.Handler {
		mux, check, guardOf := http.NewServeMux(), httplock.RouteCheck{}, oneEach(netHTTPGuard)
		for _, r := range routes {
			var chain []netHTTPMiddleware
			if r.around != nil {
				chain = append(chain, func(next http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
						r.around(func() { next.ServeHTTP(w, request) }, func() *http.Request { return request })
					})
				})
			}
			for _, name := range r.outside {
				chain = append(chain, netHTTPCompanion(name))
			}
			for i := range r.guards {
				chain = append(chain, guardOf(&r.guards[i]))
			}
			for _, name := range r.inside {
				chain = append(chain, netHTTPCompanion(name))
			}
			var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) { _ = r.run(w, request) })
			if r.method == anyMethod {
				r.method = ""
			}
			_ = check.Add(r.method, r.pattern, handler, chain...)
			for i := len(chain) - 1; i >= 0; i-- {
				handler = chain[i](handler)
			}
			mux.Handle(strings.TrimSpace(r.method+" "+r.pattern), handler)
		}
		return checkedServer{mux, func() (report, error) { return reportOf(check.Report(), nil) }}
	}}

// stored is a key of the type that an application has for its own values.
type stored string

// valueKey is the key under which a value is stored in the framework's way.
func (h *harness) valueKey(name string) any {
	if h.framework.name == "net/http" {
		return stored(name)
	}
	return name
}

func netHTTPCompanion(name companion) netHTTPMiddleware {
	if name == unguarded {
		return httplock.Unguarded
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch name {
			case gzipping:
				zip := &gzipWriter{ResponseWriter: w}
				defer zip.close()
				w = zip
			case recovering:
				defer recoverPanic(w)
			case identifying:
				w.Header().Set("X-Request-Id", "1")
			case logging:
				logged := &loggedWriter{ResponseWriter: w}
				defer func() { log.Print("status ", logged.status) }()
				w = logged
			case authenticating:
				r = r.WithContext(context.WithValue(r.Context(), stored("userID"), "u7"))
			default:
				panic("no such companion: " + name)
			}
			next.ServeHTTP(w, r)
		})
	}
}

func recoverPanic(w http.ResponseWriter) {
	switch v := recover(); v {
	case nil:
	case http.ErrAbortHandler:
		panic(v)
	default:
		w.WriteHeader(http.StatusInternalServerError)
	}
}

type loggedWriter struct {
	http.ResponseWriter
	status int
}

func (w *loggedWriter) WriteHeader(code int) {
	w.status = code
	w.ResponseWriter.WriteHeader(code)
}

func (w *loggedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func netHTTPGuard(g guarding) netHTTPMiddleware {
	make := maker[netHTTPMiddleware, httplock.Config]{
		httplock.ByParam, httplock.ByHeader, httplock.ByQuery, httplock.ByTemplate, httplock.By, httplock.Idempotent, httplock.ByAll, httplock.New,
	}
	if common := g.with; common != nil {
		make = makerOf(httplock.With(common.locker, common.options...))
	}
	return make.middleware(g, netHTTPConfig)
}

func netHTTPConfig(c config) httplock.Config {
	shared := c.shared
	if c.safe {
		shared = httplock.SafeMethods
	}
	return httplock.Config{
		Shared: shared, Permits: c.permits, Weight: c.weight,
		Locker: c.locker, Key: c.key, Keys: c.keys, Idempotent: (*httplock.Idempotency)(c.idempotent), Options: c.options, Skip: c.skip,
		OnRefused: c.onRefused, FailOpen: c.failOpen, Status: c.status,
		Param: c.param, BufferBody: c.bufferBody, Strict: c.strict,
	}
}
