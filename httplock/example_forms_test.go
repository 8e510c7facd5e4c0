package httplock_test

import (
	"io"
	"net/http"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
)

// Many may read a report, and one may rebuild it.
func ExampleSafeMethods() {
	locker, stop := newLocker()
	defer stop()

	mux := http.NewServeMux()
	lock := httplock.New(httplock.Config{
		Locker:  locker,
		Param:   "reportID",
		Shared:  httplock.SafeMethods,
		Options: []core.Option{core.NoWait()},
	})
	mux.Handle("GET /reports/{reportID}", lock(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("meanwhile") != "" { // other clients come
			request(mux, "GET", "/reports/7")
			request(mux, "POST", "/reports/7")
		}
		_, _ = io.WriteString(w, "read")
	})))
	mux.Handle("POST /reports/{reportID}", lock(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "rebuilt")
	})))

	request(mux, "GET", "/reports/7?meanwhile=1")
	request(mux, "POST", "/reports/7")
	// Output:
	// 200 read
	// 409 {"type":"about:blank","title":"Conflict","status":409,"detail":"Another request for the same resource is being processed.","code":"busy"}
	// 200 read
	// 200 rebuilt
}

// At most so many exports of a tenant at once as its plan has.
func ExampleConfig_permits() {
	locker, stop := newLocker()
	defer stop()

	plans := map[string]int{"free": 1, "paid": 3}
	mux := http.NewServeMux()
	lock := httplock.New(httplock.Config{
		Locker:  locker,
		Param:   "tenant",
		Permits: func(r *http.Request) int { return plans[r.Header.Get("X-Plan")] }, // yours knows the tenant
		Options: []core.Option{core.NoWait()},
	})
	mux.Handle("POST /tenants/{tenant}/exports", lock(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("meanwhile") != "" { // another request of the tenant comes
			request(mux, "POST", "/tenants/acme/exports", "X-Plan", r.Header.Get("X-Plan"))
		}
		_, _ = io.WriteString(w, "exported")
	})))

	request(mux, "POST", "/tenants/acme/exports?meanwhile=1", "X-Plan", "paid")
	request(mux, "POST", "/tenants/acme/exports?meanwhile=1", "X-Plan", "free")
	// Output:
	// 200 exported
	// 200 exported
	// 429 {"type":"about:blank","title":"Too Many Requests","status":429,"detail":"Too many requests for the same resource are being processed.","code":"too_many"}
	// 200 exported
}
