package conformance_test

import (
	"net/http"

	"github.com/latchkey-go/latchkey/httplock"
)

var netHTTPFramework = framework{name: "net/http", build: func(routes ...route) http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes {
		var handler http.Handler = r.handle
		for i := len(r.guards) - 1; i >= 0; i-- {
			handler = netHTTPGuard(r.guards[i])(handler)
		}
		if r.around != nil {
			inner := handler
			handler = http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				r.around(func() { inner.ServeHTTP(w, request) }, func() *http.Request { return request })
			})
		}
		mux.Handle(r.method+" "+r.pattern, handler)
	}
	return mux
}}

func netHTTPGuard(g guarding) func(http.Handler) http.Handler {
	switch {
	case g.config != nil:
		cfg := httplock.Config{
			Locker: g.config.locker, Key: g.config.key, Options: g.config.options, Skip: g.config.skip,
			FailOpen: g.config.failOpen, Status: g.config.status,
		}
		if refused := g.config.onRefused; refused != nil {
			cfg.OnRefused = func(w http.ResponseWriter, _ *http.Request, err error) { refused(w, err) }
		}
		return httplock.New(cfg)
	case g.template != "":
		return httplock.ByTemplate(g.template, g.options...)
	case g.key != nil:
		return httplock.By(g.key, g.options...)
	case g.header != "":
		return httplock.ByHeader(g.header, g.options...)
	case g.query != "":
		return httplock.ByQuery(g.query, g.options...)
	default:
		return httplock.ByParam(g.param, g.options...)
	}
}
