package echolock_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/echolock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

func TestRouteNotFoundThatWorks(t *testing.T) {
	inBubble(t, func(t *testing.T, locker *core.Locker, log *bytes.Buffer) {
		e := echo.New()
		e.Use(echolock.ByParam("orderID", core.NoWait()))
		e.RouteNotFound("/orders/:orderID/*", tellKey) // such as a proxy to another service
		busy(t, locker)
		if w := send(e, "POST", "/orders/42/pay"); w.Code != http.StatusConflict {
			t.Errorf("ran beside the holder: %d; log: %q", w.Code, log)
		}
	})
}

func TestPreThatWorks(t *testing.T) {
	inBubble(t, func(t *testing.T, locker *core.Locker, log *bytes.Buffer) {
		e := echo.New()
		e.Pre(echolock.ByParam("orderID", core.NoWait()))
		e.Pre(func(next echo.HandlerFunc) echo.HandlerFunc { return tellKey }) // such as middleware.Proxy
		if w := send(e, "POST", "/orders/42/pay"); w.Code != http.StatusInternalServerError {
			t.Errorf("ran without a lock: %d; log: %q", w.Code, log)
		}
	})
}

func TestPreByKeyThenMethodOverride(t *testing.T) {
	inBubble(t, func(t *testing.T, locker *core.Locker, log *bytes.Buffer) {
		e := echo.New()
		e.Pre(echolock.By(keyfunc.Query("id")))
		e.Pre(overrideMethod)
		e.PUT("/x", tellKey)
		w := send(e, "POST", "/x?id=1")
		t.Logf("%d %s", w.Code, w.Body)
	})
}
