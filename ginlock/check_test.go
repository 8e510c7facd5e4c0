package ginlock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/ginlock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// At the start of a program, and in a test of its own.
func ExampleCheck() {
	router := newRouter()
	pay := func(*gin.Context) {}
	router.GET("/health", pay)
	router.POST("/orders/:orderID/refund", pay) // added before the guard
	router.Use(ginlock.ByParam("orderID"))
	router.POST("/orders/:orderID/pay", pay)
	router.POST("/carts", ginlock.ByHeader("Idempotency-Key"), pay)

	report, err := ginlock.Check(router)
	if err != nil {
		panic(err)
	}
	fmt.Print(report)
	fmt.Println(report.Err())
	// Output:
	// POST  /carts                   by header "Idempotency-Key"
	// GET   /health                  not guarded
	// POST  /orders/:orderID/pay     by path parameter "orderID"
	// POST  /orders/:orderID/refund  not guarded
	//                                ! it declares "orderID", by which other routes are guarded, and is not: add the middleware before the route
	// latchkey: the route "POST /orders/:orderID/refund": it declares "orderID", by which other routes are guarded, and is not: add the middleware before the route
}

func TestCheck(t *testing.T) {
	handler := func(*gin.Context) { t.Error("a handler was called") }
	other := func(*gin.Context) { t.Error("another middleware was called") }
	router := gin.New()
	router.Use(other)
	group := router.Group("/api", ginlock.ByParam("orderID"), other)
	group.GET("/orders/:orderID/items/*path", handler)
	group.POST("/orders/:orderID/x/:orderID", handler)
	group.POST("/baskets/:order_id", handler)
	group.POST("/both/:orderID", ginlock.By(keyfunc.Query("id")), ginlock.ByTemplate("a:{query.id}"), handler)
	strictly := router.Group("/strict", ginlock.New(ginlock.Config{Param: "id", Strict: true}))
	strictly.POST("/none", handler)
	strictly.POST("/by/:id", handler)
	router.DELETE("/free/:other", handler)

	report, err := ginlock.Check(router)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct{ guards, faults string }{
		"POST /api/baskets/:order_id":          {"", `by the path parameter "orderID", but it declares "order_id"`},
		"POST /api/both/:orderID":              {`path parameter "orderID"|query parameter "id"|template "a:{query.id}"`, ""},
		"GET /api/orders/:orderID/items/*path": {`path parameter "orderID"`, ""},
		"POST /api/orders/:orderID/x/:orderID": {"", `"orderID" twice`},
		"DELETE /free/:other":                  {"", ""},
		"POST /strict/by/:id":                  {`path parameter "id"`, ""},
		"POST /strict/none":                    {"", "Strict"},
	}
	if len(report) != len(want) {
		t.Errorf("%d routes, want %d", len(report), len(want))
	}
	for _, r := range report {
		w, there := want[r.Method+" "+r.Pattern]
		if guards := strings.Join(r.Guards, "|"); !there || guards != w.guards {
			t.Errorf("%s %s: guarded by %q, want %q", r.Method, r.Pattern, guards, w.guards)
		}
		if faults := strings.Join(r.Faults, "|"); (faults == "") != (w.faults == "") || !strings.Contains(faults, w.faults) {
			t.Errorf("%s %s: faults %q, want %q", r.Method, r.Pattern, faults, w.faults)
		}
	}
	late := gin.New()
	late.POST("/orders/:orderID", handler, ginlock.ByParam("orderID"))
	if report, err := ginlock.Check(late); err != nil || len(report[0].Guards) > 0 || !strings.Contains(fmt.Sprint(report.Err()), "after the handler") {
		t.Errorf("a guard after the handler: %+v, %v", report, err)
	}
	if report, err := ginlock.Check(gin.New()); len(report) != 0 || err != nil || report.Err() != nil {
		t.Error(report, err)
	}
}

// A key function is known by what it reads.
func TestCheckSeesWhatKeyFunctionsRead(t *testing.T) {
	handler := func(*gin.Context) { t.Error("a handler was called") }
	by := func(key keyfunc.Func[keyfunc.Request]) gin.HandlerFunc { return ginlock.By(key) }
	orderID := keyfunc.Int(keyfunc.Param("orderID"))
	either := func(r keyfunc.Request) (string, error) {
		if v, declared := r.Param("orderID"); declared {
			return "order:" + v, nil
		}
		v, _ := r.Param("old")
		return "order:" + v, nil
	}
	both := keyfunc.Join(keyfunc.Param("tenant"), keyfunc.Param("item"))
	router := gin.New()
	optional := by(keyfunc.Optional(orderID))
	router.POST("/a/:orderID/pay", by(orderID), handler)
	router.POST("/a/:orderID/refund", handler)
	router.POST("/b/:other", by(orderID), handler)
	router.POST("/c/:order_id", by(keyfunc.Named("order", orderID)), handler)
	router.POST("/d/:orderID/:orderID", by(orderID), handler)
	router.POST("/e/:other", optional, handler)
	router.POST("/e/:other/:orderID", optional, handler)
	router.POST("/f", ginlock.New(ginlock.Config{Key: keyfunc.Optional(keyfunc.Header("X-Shop")), FailOpen: true}), handler)
	router.POST("/g", ginlock.New(ginlock.Config{Key: keyfunc.Const[keyfunc.Request]("all"), FailOpen: true}), handler)
	router.POST("/h/:old", by(either), handler)
	router.POST("/i/:tenant/:item", by(both), handler)
	router.POST("/j/:tenant", handler)
	router.POST("/k/:item/of/:tenant", handler)

	report, err := ginlock.Check(router)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct{ guards, faults string }{
		"/a/:orderID/pay":      {`path parameter "orderID"`, ""},
		"/a/:orderID/refund":   {"", `it declares "orderID", by which other routes are guarded, and is not`},
		"/b/:other":            {"", `does not declare the path parameter "orderID"`},
		"/c/:order_id":         {"", `by the path parameter "orderID", but it declares "order_id"`},
		"/d/:orderID/:orderID": {"", `"orderID" twice`},
		"/e/:other":            {"", ""},
		"/e/:other/:orderID":   {`path parameter "orderID" (optional)`, ""},
		"/f":                   {`header "X-Shop" (optional, FailOpen)`, ""},
		"/g":                   {`the constant "all" (FailOpen)`, ""},
		"/h/:old":              {"a key function", ""},
		"/i/:tenant/:item":     {`path parameter "tenant" and path parameter "item"`, ""},
		"/j/:tenant":           {"", ""},
		"/k/:item/of/:tenant":  {"", `it declares "tenant", "item", by which other routes are guarded`},
	}
	for _, r := range report {
		w, there := want[r.Pattern]
		if guards := strings.Join(r.Guards, "|"); !there || guards != w.guards {
			t.Errorf("%s: guarded by %q, want %q", r.Pattern, guards, w.guards)
		}
		if faults := strings.Join(r.Faults, "|"); (faults == "") != (w.faults == "") || !strings.Contains(faults, w.faults) || strings.Contains(faults, "|") {
			t.Errorf("%s: faults %q, want %q", r.Pattern, faults, w.faults)
		}
	}
}

// A guard by a parameter that no route behind it has guards nothing, and is told once.
func TestCheckKnowsTheParametersThatThereAre(t *testing.T) {
	handler := func(*gin.Context) {}
	for name, typo := range map[string]gin.HandlerFunc{
		"ByParam":  ginlock.ByParam("ordrID"),
		"Optional": ginlock.By(keyfunc.Optional(keyfunc.Param("ordrID"))),
	} {
		router := gin.New()
		router.POST("/before/:ordrID", handler)
		router.Use(typo)
		router.POST("/orders/:orderID/pay", handler)
		router.POST("/orders/:orderID/items/:item", handler)
		router.GET("/health", handler)
		report, err := ginlock.Check(router)
		if err != nil {
			t.Fatal(err)
		}
		const fault = `no route behind the guard declares the path parameter "ordrID", by which the lock is: they declare "item", "orderID"`
		if text := fmt.Sprint(report.Err()); strings.Count(text, fault) != 1 || strings.Count(text, "\n") > 0 {
			t.Errorf("%s: %s", name, text)
		}
	}
}
