package httplock_test

import (
	"bytes"
	"cmp"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// otherRouter is a router that is not net/http's: it tells the pattern of the level
// that it is at, and the parameters of all levels so far.
func otherRouter(pattern string, parameters ...string) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Pattern = pattern
			for i := 0; i < len(parameters); i += 2 {
				r.SetPathValue(parameters[i], parameters[i+1])
			}
			next.ServeHTTP(w, r)
		})
	}
}

func TestByParamAndRouters(t *testing.T) {
	lock := func(h http.Handler) http.Handler { return httplock.ByParam("orderID")(h) }
	mux := func(pattern string, h http.Handler) http.Handler {
		m := http.NewServeMux()
		m.Handle(pattern, h)
		return m
	}
	tell := http.HandlerFunc(tellKey)
	inner := mux("POST /orders/{orderID}/pay", tell)
	for name, c := range map[string]struct {
		handler http.Handler
		status  int
		key     string
		path    string
	}{
		"the route's handler":            {mux("POST /orders/{orderID}/pay", lock(tell)), 200, "orderID=42", ""},
		"a pattern with a host":          {mux("POST example.com/orders/{orderID}/", lock(tell)), 200, "orderID=42", ""},
		"the rest of the path":           {mux("/orders/{orderID...}", lock(tell)), 200, "orderID=42/pay", ""},
		"the rest of the path, empty":    {mux("/orders/{orderID...}", lock(tell)), 400, "", "/orders/"},
		"a subtree that declares it":     {mux("/orders/{orderID}/", lock(inner)), 200, "orderID=42", ""},
		"a route that does not":          {mux("/orders/{id}/pay", lock(tell)), 500, "", ""},
		"a name that begins like it":     {mux("/orders/{orderIDs}/pay", lock(tell)), 500, "", ""},
		"the whole mux":                  {lock(inner), 500, "", ""},
		"between two":                    {mux("/orders/", lock(inner)), 500, "", ""},
		"between two, at the root":       {mux("/", lock(inner)), 500, "", ""},
		"between two, by a wildcard":     {mux("/{rest...}", lock(inner)), 500, "", ""},
		"other router, mounted":          {otherRouter("/orders/*", "*", "42/pay")(lock(tell)), 500, "", ""},
		"other router, mounted below it": {otherRouter("/orders/{orderID}/*", "orderID", "42", "*", "pay")(lock(tell)), 200, "orderID=42", ""},
		"other router, second level":     {otherRouter("/pay", "orderID", "42")(lock(tell)), 200, "orderID=42", ""},
		"other router, no patterns":      {otherRouter("", "orderID", "42")(lock(tell)), 200, "orderID=42", ""},
		"other router, empty value":      {otherRouter("/orders/{orderID}/pay", "orderID", "")(lock(tell)), 400, "", ""},
		"other router, expression":       {otherRouter("/orders/{orderID:[0-9]*}/pay", "orderID", "")(lock(tell)), 400, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *core.Locker, log *bytes.Buffer) {
				w := post(c.handler, "http://example.com"+cmp.Or(c.path, "/orders/42/pay"))
				if w.Code != c.status || w.Code == 200 && w.Body.String() != c.key {
					t.Errorf("%d %q, want %d %q", w.Code, w.Body, c.status, c.key)
				}
				if c.status == 500 && !strings.Contains(log.String(), "wrap the route's handler") && !strings.Contains(log.String(), "no route that the guard has seen") {
					t.Errorf("the log does not say how to fix it: %s", log)
				}
			})
		})
	}
}

// A mux decodes its parameters; other routers may leave that to the handler.
func TestEscapedParametersOfOtherRoutersAreRefused(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/users/{user}", httplock.ByParam("user")(http.HandlerFunc(tellKey)))
	outside := http.NewServeMux()
	outside.Handle("/users/{name}", otherRouter("/users/{user}", "user", "%61nn")(httplock.ByParam("user")(http.HandlerFunc(tellKey))))
	silent := http.NewServeMux()
	silent.HandleFunc("/users/{name}", func(w http.ResponseWriter, r *http.Request) {
		r.SetPathValue("user", "%61nn") // and leaves the pattern
		httplock.ByParam("user")(http.HandlerFunc(tellKey)).ServeHTTP(w, r)
	})
	unescaped := httplock.By(keyfunc.Unescaped(keyfunc.Param("user")))(http.HandlerFunc(tellKey))
	for name, c := range map[string]struct {
		handler http.Handler
		target  string
		status  int
		key     string
	}{
		"mux":                     {mux, "/users/%61nn", 200, "user=ann"},
		"mux, escaped twice":      {mux, "/users/%2561nn", 200, "user=%61nn"},
		"other router in a mux":   {outside, "/users/%61nn", 400, ""},
		"silent router in a mux":  {silent, "/users/%61nn", 400, ""},
		"other router, unescaped": {otherRouter("/users/{user}", "user", "%61nn")(unescaped), "/users/%61nn", 200, "user=ann"},
		"other router": {
			otherRouter("", "user", "%61nn")(httplock.ByParam("user")(http.HandlerFunc(tellKey))), "/users/%61nn", 400, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *core.Locker, _ *bytes.Buffer) {
				if w := post(c.handler, c.target); w.Code != c.status || c.status == 200 && w.Body.String() != c.key {
					t.Errorf("%d %q, want %d %q", w.Code, w.Body, c.status, c.key)
				}
			})
		})
	}
}

// Routers that are not net/http's tell the pattern of their own level only, names with
// signs that net/http does not know, and one name twice.
func TestNamesOfOtherRouters(t *testing.T) {
	for name, c := range map[string]struct {
		router    middleware
		parameter string
		want      string // in the log
	}{
		"expression":           {otherRouter("/orders/{order_id:[0-9]{1,3}}/pay", "order_id", "42"), "orderID", `\"order_id\"`},
		"behind an expression": {otherRouter("/{day:[0-9]{1,3}}/{orderId}", "orderId", "42"), "orderID", `\"orderId\"`},
		"hyphen":               {otherRouter("/orders/{order-id}", "order-id", "42"), "orderID", `\"order-id\"`},
		"level above":          {otherRouter("/pay", "orderId", "42"), "orderID", `\"orderId\"`},
		"level above, snake":   {otherRouter("/pay", "order_id", "42"), "orderID", `\"order_id\"`},
		"level above, kebab":   {otherRouter("/pay", "order-id", "42"), "orderID", `\"order-id\"`},
		"level above, title":   {otherRouter("/pay", "OrderId", "42"), "order_id", `\"OrderId\"`},
		"level above, lower":   {otherRouter("/pay", "orderID", "42"), "orderid", `\"orderID\"`},
		"level above, upper":   {otherRouter("/pay", "ORDER_ID", "42"), "orderId", `\"ORDER_ID\"`},
		"level above, one":     {otherRouter("/pay", "ID", "42"), "id", `\"ID\"`},
		"level above, plain":   {otherRouter("/pay", "id", "42"), "Id", `\"id\"`},
		"twice":                {otherRouter("/users/{id}/orders/{id}", "id", "42"), "id", "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *core.Locker, log *bytes.Buffer) {
				handler := c.router(httplock.ByParam(c.parameter)(http.HandlerFunc(tellKey)))
				if w := post(handler, "/orders/42/pay"); w.Code != http.StatusInternalServerError || !strings.Contains(log.String(), c.want) {
					t.Errorf("%d %q, log %s", w.Code, w.Body, log)
				}
			})
		})
	}
}

// A router inside of a mux, such as chi, overwrites a parameter of the mux by its own of that
// name, as it was sent.
func TestEscapesOfARouterInAMux(t *testing.T) {
	guarded := httplock.ByParam("user", httplock.Locker(locktest.New(t)))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	mux := http.NewServeMux()
	mux.HandleFunc("/users/{user}/", func(w http.ResponseWriter, r *http.Request) {
		r.SetPathValue("user", strings.Split(r.URL.EscapedPath(), "/")[2])
		r.Pattern = "/users/{user}/pay"
		guarded.ServeHTTP(w, r)
	})
	for path, want := range map[string]int{"/users/ann/pay": 200, "/users/%61nn/pay": 400} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("POST", path, nil))
		if w.Code != want {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}
