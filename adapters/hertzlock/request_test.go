package hertzlock_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"unsafe"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"

	"github.com/latchkey-go/latchkey/adapters/hertzlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/overhttp"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// What the lock is by is what the handler finds.
func TestKeyIsWhatTheHandlerReads(t *testing.T) {
	path := func(c *app.RequestContext) string { return "id=" + c.Param("id") }
	query := func(c *app.RequestContext) string { return "q=" + c.Query("q") }
	for name, c := range map[string]struct {
		key     keyfunc.Func[keyfunc.Request]
		request string
		read    func(*app.RequestContext) string
	}{
		"path":             {keyfunc.Param("id"), "POST /42", path},
		"path, escaped":    {keyfunc.Param("id"), "POST /4%32", path},
		"path, upper case": {keyfunc.Param("id"), "POST /aB", path},
		"query":            {keyfunc.Query("q"), "POST /1?q=4%32", query},
		"query, plus":      {keyfunc.Query("q"), "POST /1?q=4+2", query},
		"query, fragment":  {keyfunc.Query("q"), "POST /1?q=42#1", query},
		"query, name":      {keyfunc.Query("q"), "POST /1?%71=42", query},
	} {
		t.Run(name, func(t *testing.T) {
			locker, _ := overhttp.NewLocker(t)
			url := serve(t, func(h *server.Hertz) {
				h.POST("/:id", hertzlock.With(locker).By(c.key), func(ctx context.Context, rc *app.RequestContext) {
					if k, held := core.FromContext(ctx); !held || k.Key() != c.read(rc) {
						t.Errorf("the lock is %q, the handler reads %q", k.Key(), c.read(rc))
					}
				})
			})
			if got := overhttp.Exchange(t, url, c.request); got[0] != http.StatusOK {
				t.Errorf("status %d", got)
			}
		})
	}
}

// hertz routes by the path without dot segments, unless a server behind it sees more of them.
func TestDotSegmentsAreRefused(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	for _, raw := range []bool{false, true} {
		url := serve(t, func(h *server.Hertz) {
			h.POST("/orders/:id/*rest", hertzlock.With(locker).By(keyfunc.Param("id")), func(ctx context.Context, c *app.RequestContext) {
				if k, _ := core.FromContext(ctx); k.Key() != "id="+c.Param("id") {
					t.Errorf("the lock is %q, the handler reads %q", k.Key(), c.Param("id"))
				}
			})
		}, server.WithUseRawPath(raw))
		removed := http.StatusOK
		if raw {
			removed = http.StatusBadRequest
		}
		for path, status := range map[string]int{
			"/orders/42/.pay": http.StatusOK, "/orders/42/%2e%2e/43/pay": removed, "/orders/42/../43/pay": removed, "/orders/42/pay%20": http.StatusOK,
			"/orders/42/..;/43/pay": http.StatusBadRequest, "/orders/42/..%5c43": http.StatusBadRequest,
		} {
			if got := overhttp.Exchange(t, url, "POST "+path); got[0] != status {
				t.Errorf("raw %v: %s: status %d, want %d", raw, path, got[0], status)
			}
		}
	}
}

// The name of a lock lives longer than the request, whose bytes hertz overwrites.
func TestKeyIsCopied(t *testing.T) {
	locker, heard := overhttp.NewLocker(t)
	byHand := func(r keyfunc.Request) (string, error) { return r.Value("order").(string), nil }
	url := serve(t, func(h *server.Hertz) {
		h.POST("/:id", func(_ context.Context, c *app.RequestContext) {
			path := c.Request.URI().Path()
			c.Set("order", unsafe.String(&path[1], len(path)-1)) // valid within the handler only
		}, hertzlock.With(locker).By(byHand), nothing)
	})
	requests := []string{"POST /order-1", "POST /order-2", "POST /order-3"}
	overhttp.Exchange(t, url, requests...)
	for i := range requests {
		if key := heard.Next(t, core.EventReleased).Key; key != fmt.Sprintf("order-%d", i+1) {
			t.Errorf("the lock of request %d is now %q", i+1, key)
		}
	}
}

// The handler finds the body, also after a key function has read it, and the values of
// earlier middleware are found.
func TestBodyAndValues(t *testing.T) {
	type typedKey struct{}
	locker, _ := overhttp.NewLocker(t)
	url := serve(t, func(h *server.Hertz) {
		h.POST("/", func(ctx context.Context, c *app.RequestContext) {
			c.Set("user", "u1")
			c.Next(context.WithValue(ctx, typedKey{}, 7))
		}, hertzlock.With(locker).By(keyfunc.Join(keyfunc.JSON("id"), keyfunc.JSON("line"), keyfunc.Value("user"),
			keyfunc.Named("n", keyfunc.Value(typedKey{})), keyfunc.Header("Host"), keyfunc.RemoteIP())),
			func(ctx context.Context, c *app.RequestContext) {
				k, _ := core.FromContext(ctx)
				c.String(http.StatusOK, "%s %s", k.Key(), c.Request.Body())
			})
	})
	a := overhttp.Post(t, url, `{"id":42,"line":1}`, "Content-Type", "application/json")
	host, _, _ := strings.Cut(strings.TrimPrefix(a.Body, `id=42:line=1:value.user=u1:n=7:Host=`), `\:`)
	if host != "127.0.0.1" || !strings.HasSuffix(a.Body, `:remoteIP=127.0.0.1 {"id":42,"line":1}`) {
		t.Errorf("%q", a.Body)
	}
}

// A body that is not in memory is no place for a key, and stays where it is.
func TestStreamedBody(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	url := serve(t, func(h *server.Hertz) {
		h.POST("/body", hertzlock.With(locker).By(keyfunc.Optional(keyfunc.JSON("id"))),
			func(context.Context, *app.RequestContext) { t.Error("the handler ran") })
		h.POST("/header", hertzlock.With(locker).By(keyfunc.Header("X-Order")), func(_ context.Context, c *app.RequestContext) {
			text, err := io.ReadAll(c.RequestBodyStream())
			if err != nil {
				t.Error(err)
			}
			c.String(http.StatusOK, "%s", text)
		})
	}, server.WithStreamBody(true))
	want(t, overhttp.Post(t, url+"/body", `{"id":42}`, "Content-Type", "application/json"), http.StatusBadRequest)
	if a := overhttp.Post(t, url+"/header", "a body", "X-Order", "42"); a.Body != "a body" {
		t.Errorf("%v", a)
	}
}
