package echo5lock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/adapters/echo5lock"
)

// At the start of a program, and in a test of its own.
func ExampleRouteCheck() {
	e := echo.New()
	check := echo5lock.RouteCheck(e) // before the routes
	pay := func(*echo.Context) error { return nil }
	orders := e.Group("/orders", echo5lock.ByParam("orderID"))
	orders.POST("/:orderID/pay", pay)
	e.POST("/carts", pay, echo5lock.ByHeader("Idempotency-Key"))
	e.POST("/orders/:orderID/refund", pay)              // not of the group
	e.GET("/orders/:orderID", pay, echo5lock.Unguarded) // reads: on purpose
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
	// GET   /orders/:orderID         not guarded, on purpose
	// POST  /orders/:orderID/pay     by path parameter "orderID"
	// POST  /orders/:orderID/refund  not guarded
	//                                ! it declares "orderID", by which other routes are guarded, and is not: add the middleware before the route, or Unguarded in its place
	// latchkey: the route "POST /orders/:orderID/refund": it declares "orderID", by which other routes are guarded, and is not: add the middleware before the route, or Unguarded in its place
}

// e.Use is for all routes, also for those that are there already.
func TestCheckSeesGuardsOfUse(t *testing.T) {
	e := echo.New()
	check := echo5lock.RouteCheck(e)
	e.POST(`/x\:orderID/:orderID/*`, func(*echo.Context) error { return nil }, echo5lock.ByQuery("id"))
	e.Use(echo5lock.ByParam("orderID"))
	report, err := check()
	if err != nil || len(report) != 1 || report.Err() != nil ||
		fmt.Sprint(report[0].Guards) != `[path parameter "orderID" query parameter "id"]` {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestCheckSeesGuardsBeforeTheRouter(t *testing.T) {
	e := echo.New()
	check := echo5lock.RouteCheck(e)
	e.Pre(echo5lock.ByParam("orderID"), echo5lock.ByHeader("X-Shop"))
	e.POST("/orders/:orderID", func(*echo.Context) error { return nil })
	report, err := check()
	if err != nil || len(report) != 1 || fmt.Sprint(report[0].Guards) != `[header "X-Shop"]` ||
		!strings.Contains(fmt.Sprint(report.Err()), "not to Pre") {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestCheckMissesNoRoute(t *testing.T) {
	handler := func(*echo.Context) error { return nil }
	for name, build := range map[string]func(e *echo.Echo) func() (echo5lock.Report, error){
		"added before RouteCheck": func(e *echo.Echo) func() (echo5lock.Report, error) {
			e.POST("/orders/:orderID", handler)
			return echo5lock.RouteCheck(e)
		},
		"added to the router": func(e *echo.Echo) func() (echo5lock.Report, error) {
			check := echo5lock.RouteCheck(e)
			_, _ = e.Router().Add(echo.Route{Method: "POST", Path: "/orders/:orderID", Handler: handler})
			return check
		},
		"added when another has the hook": func(e *echo.Echo) func() (echo5lock.Report, error) {
			check := echo5lock.RouteCheck(e)
			e.OnAddRoute = nil
			e.POST("/orders/:orderID", handler)
			return check
		},
	} {
		if report, err := build(echo.New())(); err == nil || !strings.Contains(err.Error(), "has not seen the route") {
			t.Errorf("%s: %v, %v", name, report, err)
		}
	}
}
