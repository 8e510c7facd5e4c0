package httplock_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// A handler that holds the lock of an order calls another service, which needs that lock, too:
// it enters the lock of its caller. Nobody else may send the header: see docs/forms.md#a-call-to-another-service.
func Example_callToAnotherService() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	stock := http.NewServeMux() // on a listener that clients do not reach
	stock.HandleFunc("POST /orders/{orderID}/reserve", func(w http.ResponseWriter, r *http.Request) {
		key := keyfunc.Key("orderID", r.PathValue("orderID"))
		err := locker.Do(r.Context(), key, func(ctx context.Context) error {
			info, err := locker.Inspect(ctx, key)
			fmt.Fprint(w, "reserved by ", info.Count, " holds")
			return err
		}, core.Owner(r.Header.Get("Lock-Owner")))
		if err != nil {
			status, _ := httplock.StatusOf(err)
			w.WriteHeader(status)
		}
	})
	inside := httptest.NewServer(stock)
	defer inside.Close()

	shop := http.NewServeMux()
	shop.Handle("POST /orders/{orderID}/pay", httplock.ByParam("orderID")(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock, _ := core.FromContext(r.Context())
		call, err := http.NewRequestWithContext(r.Context(), "POST", inside.URL+"/orders/42/reserve", nil)
		if err != nil {
			return
		}
		call.Header.Set("Lock-Owner", lock.ShareOwner())
		answer, err := http.DefaultClient.Do(call)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		_, _ = io.Copy(w, answer.Body)
	})))

	request(shop, "POST", "/orders/42/pay")
	// Output: 200 reserved by 2 holds
}
