package ginlock_test

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/ginlock"
)

// Many may read a report, and one may rebuild it.
func ExampleSafeMethods() {
	locker, stop := newLocker()
	defer stop()

	router := newRouter()
	router.Use(ginlock.New(ginlock.Config{
		Locker:  locker,
		Param:   "reportID",
		Shared:  ginlock.SafeMethods,
		Options: []core.Option{core.NoWait()},
	}))
	router.GET("/reports/:reportID", func(c *gin.Context) {
		if c.Query("meanwhile") != "" { // other clients come
			request(router, "GET", "/reports/7")
			request(router, "POST", "/reports/7")
		}
		c.String(http.StatusOK, "read")
	})
	router.POST("/reports/:reportID", func(c *gin.Context) { c.String(http.StatusOK, "rebuilt") })

	request(router, "GET", "/reports/7?meanwhile=1")
	request(router, "POST", "/reports/7")
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
	router := newRouter()
	router.Use(ginlock.New(ginlock.Config{
		Locker:  locker,
		Param:   "tenant",
		Permits: func(c *gin.Context) int { return plans[c.GetHeader("X-Plan")] }, // yours knows the tenant
		Options: []core.Option{core.NoWait()},
	}))
	router.POST("/tenants/:tenant/exports", func(c *gin.Context) {
		if c.Query("meanwhile") != "" { // another request of the tenant comes
			request(router, "POST", "/tenants/acme/exports", "X-Plan", c.GetHeader("X-Plan"))
		}
		c.String(http.StatusOK, "exported")
	})

	request(router, "POST", "/tenants/acme/exports?meanwhile=1", "X-Plan", "paid")
	request(router, "POST", "/tenants/acme/exports?meanwhile=1", "X-Plan", "free")
	// Output:
	// 200 exported
	// 200 exported
	// 429 {"type":"about:blank","title":"Too Many Requests","status":429,"detail":"Too many requests for the same resource are being processed.","code":"too_many"}
	// 200 exported
}
