package echo5lock_test

import (
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/adapters/echo5lock"
	"github.com/latchkey-go/latchkey/core"
)

// Many may read a report, and one may rebuild it.
func ExampleSafeMethods() {
	locker, stop := newLocker()
	defer stop()

	e := echo.New()
	e.Use(echo5lock.New(echo5lock.Config{
		Locker:  locker,
		Param:   "reportID",
		Shared:  echo5lock.SafeMethods,
		Options: []core.Option{core.NoWait()},
	}))
	e.GET("/reports/:reportID", func(c *echo.Context) error {
		if c.QueryParam("meanwhile") != "" { // other clients come
			request(e, "GET", "/reports/7")
			request(e, "POST", "/reports/7")
		}
		return c.String(http.StatusOK, "read")
	})
	e.POST("/reports/:reportID", func(c *echo.Context) error { return c.String(http.StatusOK, "rebuilt") })

	request(e, "GET", "/reports/7?meanwhile=1")
	request(e, "POST", "/reports/7")
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
	e := echo.New()
	e.Use(echo5lock.New(echo5lock.Config{
		Locker:  locker,
		Param:   "tenant",
		Permits: func(c *echo.Context) int { return plans[c.Request().Header.Get("X-Plan")] }, // yours knows the tenant
		Options: []core.Option{core.NoWait()},
	}))
	e.POST("/tenants/:tenant/exports", func(c *echo.Context) error {
		if c.QueryParam("meanwhile") != "" { // another request of the tenant comes
			request(e, "POST", "/tenants/acme/exports", "X-Plan", c.Request().Header.Get("X-Plan"))
		}
		return c.String(http.StatusOK, "exported")
	})

	request(e, "POST", "/tenants/acme/exports?meanwhile=1", "X-Plan", "paid")
	request(e, "POST", "/tenants/acme/exports?meanwhile=1", "X-Plan", "free")
	// Output:
	// 200 exported
	// 200 exported
	// 429 {"type":"about:blank","title":"Too Many Requests","status":429,"detail":"Too many requests for the same resource are being processed.","code":"too_many"}
	// 200 exported
}
