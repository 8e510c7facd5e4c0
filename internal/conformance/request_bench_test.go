package conformance_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// One request through each framework, on a real Redis: what the middleware adds to a
// handler that does nothing.
func BenchmarkRequest(b *testing.B) {
	locker, err := core.New(redistest.Start(b).Client(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = locker.Close(b.Context()) })
	core.SetDefault(locker)
	b.Cleanup(func() { core.SetDefault(nil) })
	for _, f := range frameworks {
		for _, name := range []string{"bare", "guarded"} {
			b.Run(f.name+"/"+name, func(b *testing.B) {
				var guards []guarding
				if name == "guarded" {
					guards = byParam("orderID")
				}
				handler := f.build(post("/orders/{orderID}/pay", guards, func(http.ResponseWriter, *http.Request) {}))
				b.ReportAllocs()
				for b.Loop() {
					w := httptest.NewRecorder()
					handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/42/pay", nil))
					if w.Code != http.StatusOK {
						b.Fatal(w.Code, w.Body)
					}
				}
			})
		}
	}
}
