package httplock_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// A mux does not list its routes: a table of the program's own serves both. With chi it is
// chi.Walk(router, check.Add).
func ExampleRouteCheck() {
	pay := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	mux, check := http.NewServeMux(), httplock.RouteCheck{}
	for pattern, handler := range map[string]http.Handler{
		"POST /orders/{orderID}/pay":    httplock.ByParam("orderID")(pay),
		"POST /orders/{orderID}/refund": pay, // forgotten
		"POST /carts":                   httplock.ByHeader("Idempotency-Key")(pay),
		"GET /orders/{orderID}":         httplock.Unguarded(pay), // reads: on purpose
		"GET /health":                   pay,
	} {
		mux.Handle(pattern, handler)
		method, path, _ := strings.Cut(pattern, " ")
		check.Add(method, path, handler)
	}
	report := check.Report()
	fmt.Print(report)
	fmt.Println(report.Err())
	// Output:
	// POST  /carts                    by header "Idempotency-Key"
	// GET   /health                   not guarded
	// GET   /orders/{orderID}         not guarded, on purpose
	// POST  /orders/{orderID}/pay     by path parameter "orderID"
	// POST  /orders/{orderID}/refund  not guarded
	//                                 ! it declares "orderID", by which other routes are guarded, and is not: add the middleware before the route, or Unguarded in its place
	// latchkey: the route "POST /orders/{orderID}/refund": it declares "orderID", by which other routes are guarded, and is not: add the middleware before the route, or Unguarded in its place
}

func TestCheck(t *testing.T) {
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a handler was called") })
	other := func(http.Handler) http.Handler { t.Error("another middleware was called"); return nil }
	var check httplock.RouteCheck
	walk := check.Add // as chi.Walk calls it
	_ = walk("POST", "/a/{orderID:[0-9]+}/{rest...}", handler, other, httplock.ByParam("orderID"), httplock.By(keyfunc.Query("id")))
	_ = walk("POST", "/b/{orderID}", httplock.ByParam("orderID")(httplock.ByQuery("id")(handler)))
	_ = walk("POST", "/c", nil)
	_ = walk("POST", "/d/", httplock.ByParam("orderID")(handler))
	_ = walk("POST", "/e/*", handler, httplock.By(keyfunc.Path(keyfunc.Param("*"))))
	_ = walk("POST", "/f/*", handler) // another wildcard
	_ = walk("GET", "/g/{orderID}", httplock.Unguarded(handler))
	_ = walk("GET", "/h/{orderID}", httplock.Unguarded(httplock.ByParam("orderID")(handler)))
	want := []struct{ guards, faults string }{
		{`path parameter "orderID"|query parameter "id"`, ""},
		{`path parameter "orderID"|query parameter "id"`, ""},
		{"", ""},
		{"", "a subtree"},
		{`path parameter "*"`, ""},
		{"", ""},
		{"", ""},
		{`path parameter "orderID"`, "is declared Unguarded, and is guarded"},
	}
	for i, r := range check.Report() {
		if guards := strings.Join(r.Guards, "|"); guards != want[i].guards {
			t.Errorf("%s: guarded by %q, want %q", r.Pattern, guards, want[i].guards)
		}
		if faults := strings.Join(r.Faults, "|"); (faults == "") != (want[i].faults == "") || !strings.Contains(faults, want[i].faults) {
			t.Errorf("%s: faults %q, want %q", r.Pattern, faults, want[i].faults)
		}
	}
}
