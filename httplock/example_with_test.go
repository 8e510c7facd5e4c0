package httplock_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// One Locker and one error format for all middleware, without globals: each test makes its own, and runs beside others.
func ExampleWith() {
	locker, stop := newLocker() // in a test: locktest.New(t)
	defer stop()

	answer := func(w http.ResponseWriter, _ *http.Request, err error) { // the status is set
		code, _ := httplock.ReasonOf(err)
		fmt.Fprintf(w, "%s %q", code, httplock.PartOf(err))
	}
	locks := httplock.With(locker, httplock.OnRefused(answer), core.NoWait(), core.KeepFor(time.Minute))

	mux := http.NewServeMux()
	pay := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "paid") })
	mux.Handle("POST /orders/{orderID}/pay", locks.ByParam("orderID")(pay))
	mux.Handle("POST /refunds", locks.ByHeader("X-Refund-Id")(pay))

	request(mux, "POST", "/orders/42/pay")
	request(mux, "POST", "/orders/42/pay")
	request(mux, "POST", "/refunds?order=42")
	// Output:
	// 200 paid
	// 409 done ""
	// 400 missing "X-Refund-Id"
}

// A key of several parts, of which one is no number: the answer names it.
func ExamplePartOf() {
	locker, stop := newLocker()
	defer stop()

	locks := httplock.With(locker)
	key := keyfunc.Join(keyfunc.Param("cartID"), keyfunc.Int(keyfunc.Query("item")))
	mux := http.NewServeMux()
	mux.Handle("POST /carts/{cartID}", locks.By(key)(http.NotFoundHandler()))
	answer := func(w http.ResponseWriter, _ *http.Request, err error) {
		code, _ := httplock.ReasonOf(err)
		fmt.Fprint(w, code+": "+httplock.PartOf(err))
	}
	mux.Handle("POST /own/{cartID}", locks.By(key, httplock.OnRefused(answer))(http.NotFoundHandler()))

	request(mux, "POST", "/carts/7?item=two")
	request(mux, "POST", "/own/7?item=two")
	// Output:
	// 400 {"type":"about:blank","title":"Bad Request","status":400,"detail":"A part of the request is malformed.","code":"malformed","part":"item"}
	// 400 malformed: item
}
