package echolock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/echolock/v5"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// At the start of a program, and in a test of its own.
func ExampleCheck() {
	e := echo.New()
	check := echolock.Check(e) // before the routes
	pay := func(*echo.Context) error { return nil }
	orders := e.Group("/orders", echolock.ByParam("orderID"))
	orders.POST("/:orderID/pay", pay)
	e.POST("/carts", pay, echolock.ByHeader("Idempotency-Key"))
	e.POST("/orders/:orderID/refund", pay) // not of the group
	e.GET("/health", pay)

	report, err := check()
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
	handler := func(*echo.Context) error { t.Error("a handler was called"); return nil }
	other := func(echo.HandlerFunc) echo.HandlerFunc {
		return func(*echo.Context) error { t.Error("another middleware was called"); return nil }
	}
	e := echo.New()
	check := echolock.Check(e)
	e.POST(`/api/x\:y/:orderID/*`, handler) // e.Use is for all routes
	e.Use(other, echolock.ByParam("orderID"))
	group := e.Group("/api", other)
	group.POST("/orders/:orderID/x/:orderID", handler)
	group.POST("/baskets/:order_id", handler)
	group.POST("/both/:orderID", handler, echolock.By(keyfunc.Query("id")), echolock.ByTemplate("a:{query.id}"))
	strictly := e.Group("/strict", echolock.New(echolock.Config{Param: "id", Strict: true}))
	strictly.POST("/none", handler)
	strictly.POST("/by/:id", handler)
	e.DELETE("/free/:other", handler)

	want := map[string]struct{ guards, faults string }{
		`POST /api/x\:y/:orderID/*`:            {`path parameter "orderID"`, ""},
		"POST /api/baskets/:order_id":          {"", `by the path parameter "orderID", but it declares "order_id"`},
		"POST /api/both/:orderID":              {`path parameter "orderID"|query parameter "id"|template "a:{query.id}"`, ""},
		"POST /api/orders/:orderID/x/:orderID": {"", `"orderID" twice`},
		"DELETE /free/:other":                  {"", ""},
		"POST /strict/by/:id":                  {`path parameter "id"`, ""},
		"POST /strict/none":                    {"", "Strict"},
	}
	report, err := check()
	if err != nil {
		t.Fatal(err)
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
}

func TestCheckSeesGuardsBeforeTheRouter(t *testing.T) {
	e := echo.New()
	check := echolock.Check(e)
	e.Pre(echolock.ByParam("orderID"), echolock.ByHeader("X-Shop"))
	e.POST("/orders/:orderID", func(*echo.Context) error { return nil })
	report, err := check()
	if err != nil || len(report) != 1 || fmt.Sprint(report[0].Guards) != `[header "X-Shop"]` || !strings.Contains(fmt.Sprint(report.Err()), "not to Pre") {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestCheckMissesNoRoute(t *testing.T) {
	handler := func(*echo.Context) error { return nil }
	for name, build := range map[string]func(e *echo.Echo) func() (echolock.Report, error){
		"added before Check": func(e *echo.Echo) func() (echolock.Report, error) {
			e.POST("/orders/:orderID", handler)
			return echolock.Check(e)
		},
		"added to the router": func(e *echo.Echo) func() (echolock.Report, error) {
			check := echolock.Check(e)
			_, _ = e.Router().Add(echo.Route{Method: "POST", Path: "/orders/:orderID", Handler: handler})
			return check
		},
		"added when another has the hook": func(e *echo.Echo) func() (echolock.Report, error) {
			check := echolock.Check(e)
			e.OnAddRoute = nil
			e.POST("/orders/:orderID", handler)
			return check
		},
	} {
		if report, err := build(echo.New())(); err == nil || !strings.Contains(err.Error(), "was not told of the route") {
			t.Errorf("%s: %v, %v", name, report, err)
		}
	}
}
