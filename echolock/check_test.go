package echolock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/latchkey-go/latchkey/echolock"
)

// At the start of a program, and in a test of its own.
func ExampleRouteCheck() {
	e := echo.New()
	check := echolock.RouteCheck(e) // before the routes
	pay := func(echo.Context) error { return nil }
	orders := e.Group("/orders", echolock.ByParam("orderID"))
	orders.POST("/:orderID/pay", pay)
	e.POST("/carts", pay, echolock.ByHeader("Idempotency-Key"))
	e.POST("/orders/:orderID/refund", pay)             // not of the group
	e.GET("/orders/:orderID", pay, echolock.Unguarded) // reads: on purpose
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
	check := echolock.RouteCheck(e)
	e.POST(`/x\:orderID/:orderID/*`, func(echo.Context) error { return nil }, echolock.ByQuery("id"))
	e.Use(echolock.ByParam("orderID"))
	report, err := check()
	if err != nil || len(report) != 1 || report.Err() != nil ||
		fmt.Sprint(report[0].Guards) != `[path parameter "orderID" query parameter "id"]` {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestCheckSeesGuardsBeforeTheRouter(t *testing.T) {
	e := echo.New()
	check := echolock.RouteCheck(e)
	e.Pre(echolock.ByParam("orderID"), echolock.ByHeader("X-Shop"))
	e.POST("/orders/:orderID", func(echo.Context) error { return nil })
	report, err := check()
	if err != nil || len(report) != 1 || fmt.Sprint(report[0].Guards) != `[header "X-Shop"]` ||
		!strings.Contains(fmt.Sprint(report.Err()), "not to Pre") {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestCheckMissesNoRoute(t *testing.T) {
	handler := func(echo.Context) error { return nil }
	for name, build := range map[string]func(e *echo.Echo) func() (echolock.Report, error){
		"added before RouteCheck": func(e *echo.Echo) func() (echolock.Report, error) {
			e.POST("/orders/:orderID", handler)
			return echolock.RouteCheck(e)
		},
		"of a host, added before RouteCheck": func(e *echo.Echo) func() (echolock.Report, error) {
			e.Host("shop").POST("/orders/:orderID", handler)
			return echolock.RouteCheck(e)
		},
		"added when another has the hook": func(e *echo.Echo) func() (echolock.Report, error) {
			check := echolock.RouteCheck(e)
			e.OnAddRouteHandler = nil
			e.POST("/orders/:orderID", handler)
			return check
		},
	} {
		if report, err := build(echo.New())(); err == nil || !strings.Contains(err.Error(), "has not seen the route") {
			t.Errorf("%s: %v, %v", name, report, err)
		}
	}
}
