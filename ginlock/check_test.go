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
func ExampleRouteCheck() {
	router := newRouter()
	pay := func(*gin.Context) {}
	router.GET("/health", pay)
	router.GET("/orders/:orderID", ginlock.Unguarded, pay) // reads: on purpose
	router.POST("/orders/:orderID/refund", pay)            // added before the guard
	router.Use(ginlock.ByParam("orderID"))
	router.POST("/orders/:orderID/pay", pay)
	router.POST("/orders/close-all", pay) // behind the guard, which lets it pass
	router.POST("/carts", ginlock.ByHeader("Idempotency-Key"), pay)

	report, err := ginlock.RouteCheck(router)
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
	// POST  /orders/close-all        not guarded by path parameter "orderID", which it does not declare
	// latchkey: the route "POST /orders/:orderID/refund": it declares "orderID", by which other routes are guarded, and is not: add the middleware before the route, or Unguarded in its place
}

func TestCheck(t *testing.T) {
	handler := func(*gin.Context) { t.Error("a handler was called") }
	late := gin.New()
	late.POST("/orders/:orderID", handler, ginlock.ByParam("orderID"))
	report, err := ginlock.RouteCheck(late)
	if err != nil || len(report[0].Guards) > 0 || !strings.Contains(fmt.Sprint(report.Err()), "after the handler") {
		t.Errorf("a guard after the handler: %+v, %v", report, err)
	}
	if report, err := ginlock.RouteCheck(gin.New()); len(report) != 0 || err != nil || report.Err() != nil {
		t.Error(report, err)
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
		report, err := ginlock.RouteCheck(router)
		if err != nil {
			t.Fatal(err)
		}
		const fault = `no route behind the guard declares the path parameter "ordrID", by which the lock is: they declare "item", "orderID"`
		if text := fmt.Sprint(report.Err()); strings.Count(text, fault) != 1 || strings.Count(text, "\n") > 0 {
			t.Errorf("%s: %s", name, text)
		}
	}
}
