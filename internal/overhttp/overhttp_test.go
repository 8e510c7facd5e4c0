package overhttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/internal/overhttp"
)

type middleware = func(http.Handler) http.Handler

// What is asked of the modules is what the guard does.
func TestHTTPLock(t *testing.T) {
	overhttp.Run(t, overhttp.Adapter[middleware]{
		Name: "httplock", Problems: true, SeesLeaving: true, PassesOthers: true,
		With: func(l *core.Locker, opts ...core.Option) overhttp.Guards[middleware] {
			return httplock.With(l, opts...)
		},
		New: func(c overhttp.Config) middleware {
			cfg := httplock.Config{Locker: c.Locker, Key: c.Key, Param: c.Param, Options: c.Options}
			if c.Shared {
				cfg.Shared = func(*http.Request) bool { return true }
			}
			if c.Permits > 0 {
				cfg.Permits = func(*http.Request) int { return c.Permits }
			}
			if c.Weight > 0 {
				cfg.Weight = func(*http.Request) int { return c.Weight }
			}
			if c.Skip != nil {
				cfg.Skip = func(*http.Request) bool { return c.Skip() }
			}
			return httplock.New(cfg)
		},
		Serve: func(t *testing.T, routes ...overhttp.Route[middleware]) string {
			mux := http.NewServeMux()
			for _, r := range routes {
				handler := func(w http.ResponseWriter, request *http.Request) { r.Handle(call{w, request}) }
				mux.Handle("POST "+r.Pattern, r.Guard(http.HandlerFunc(handler)))
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() {
					if recover() != nil {
						w.WriteHeader(http.StatusInternalServerError)
					}
				}()
				mux.ServeHTTP(w, r)
			}))
			t.Cleanup(server.Close)
			return server.URL
		},
	})
}

type call struct {
	w http.ResponseWriter
	r *http.Request
}

func (c call) Context() context.Context { return c.r.Context() }
func (c call) Param(name string) string { return c.r.PathValue(name) }

func (c call) Body() string {
	text, _ := io.ReadAll(c.r.Body)
	return string(text)
}

func (c call) Answer(status int, text string) {
	c.w.WriteHeader(status)
	_, _ = io.WriteString(c.w, text)
}
