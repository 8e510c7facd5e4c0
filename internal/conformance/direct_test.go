package conformance_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	echo4 "github.com/labstack/echo/v4"
	echo5 "github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/adapters/echo5lock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/echolock"
	"github.com/latchkey-go/latchkey/ginlock"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// Tests of applications call a guard with a context that they have made, without the framework's ServeHTTP. Its request
// may be over: the guard returns, and answers as it does in a server.
func TestGuardsThatATestCalls(t *testing.T) {
	calls := map[string]func(w *httptest.ResponseRecorder, r *http.Request, l *core.Locker, handle func()){
		"gin": func(w *httptest.ResponseRecorder, r *http.Request, l *core.Locker, _ func()) {
			c, _ := gin.CreateTestContext(w)
			c.Request, c.Params = r, gin.Params{{Key: "id", Value: "42"}}
			ginlock.By(keyfunc.Param("id"), ginlock.Locker(l), core.Wait(time.Hour))(c)
			c.Writer.WriteHeaderNow()
		},
		"gin, a chain": func(w *httptest.ResponseRecorder, r *http.Request, l *core.Locker, handle func()) {
			router := gin.New()
			router.POST("/orders/:id", ginlock.By(keyfunc.Param("id"), ginlock.Locker(l), core.Wait(time.Hour)), func(*gin.Context) { handle() })
			c := gin.CreateTestContextOnly(w, router)
			c.Request = r
			router.HandleContext(c)
		},
		"echo4": func(w *httptest.ResponseRecorder, r *http.Request, l *core.Locker, handle func()) {
			c := echo4.New().NewContext(r, w)
			c.SetParamNames("id")
			c.SetParamValues("42")
			guarded := echolock.By(keyfunc.Param("id"), echolock.Locker(l), core.Wait(time.Hour))
			if err := guarded(func(echo4.Context) error { handle(); return nil })(c); err != nil {
				c.Error(err)
			}
		},
		"echo5": func(w *httptest.ResponseRecorder, r *http.Request, l *core.Locker, handle func()) {
			e := echo5.New()
			c := e.NewContext(r, w)
			c.SetPathValues(echo5.PathValues{{Name: "id", Value: "42"}})
			guarded := echo5lock.By(keyfunc.Param("id"), echo5lock.Locker(l), core.Wait(time.Hour))
			if err := guarded(func(*echo5.Context) error { handle(); return nil })(c); err != nil {
				e.HTTPErrorHandler(c, err)
			}
		},
	}
	for name, call := range calls {
		for what, c := range map[string]struct {
			cancel bool // the client leaves; else a deadline ends
			busy   bool
			status int
		}{
			"a deadline ends the wait":             {busy: true, status: http.StatusConflict},
			"the client leaves in the wait":        {busy: true, cancel: true, status: 499},
			"a deadline ends in the handler":       {status: http.StatusOK},
			"the client leaves while it is served": {cancel: true, status: http.StatusOK},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := locktest.New(t)
					if c.busy {
						defer locktest.Hold(t, l, "id=42")()
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					if c.cancel {
						ctx, cancel = context.WithCancel(t.Context())
						time.AfterFunc(time.Second, cancel)
					}
					defer cancel()
					w, returned := httptest.NewRecorder(), make(chan struct{})
					go func() { // as tests of a wait have it
						call(w, httptest.NewRequestWithContext(ctx, "POST", "/orders/42", nil), l, func() { <-ctx.Done() })
						close(returned)
					}()
					select {
					case <-returned:
						if w.Code != c.status {
							t.Errorf("status %d", w.Code)
						}
					case <-time.After(time.Minute):
						t.Error("it has not returned")
					}
				})
			})
		}
	}
}
