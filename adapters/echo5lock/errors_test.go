package echo5lock_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/adapters/echo5lock"
	"github.com/latchkey-go/latchkey/core"
)

// refusing is an application whose only route is refused with 409.
func refusing(t *testing.T, locker *core.Locker) *echo.Echo {
	busy(t, locker)
	e := echo.New()
	e.Any("/orders/:orderID", tellKey, echo5lock.ByParam("orderID", core.NoWait()))
	return e
}

func TestErrorHandlerOfTheApplication(t *testing.T) {
	inBubble(t, func(t *testing.T, locker *core.Locker, _ *bytes.Buffer) {
		e := refusing(t, locker)
		var answer func(c *echo.Context, he *echo.HTTPError) error
		e.HTTPErrorHandler = func(c *echo.Context, err error) {
			var he *echo.HTTPError
			ok := errors.As(err, &he)
			if !ok || !errors.Is(err, core.ErrNotAcquired) {
				t.Errorf("%T: %v", err, err)
				return
			}
			if err := answer(c, he); err != nil {
				t.Error(err)
			}
		}
		for name, c := range map[string]struct {
			answer            func(c *echo.Context, he *echo.HTTPError) error
			contentType, body string
		}{
			"text": {func(c *echo.Context, he *echo.HTTPError) error {
				return c.String(he.Code, "sorry")
			}, "text/plain; charset=UTF-8", "sorry"},
			"a form of its own around the message": {func(c *echo.Context, he *echo.HTTPError) error {
				return c.JSON(he.Code, map[string]any{"error": he.Message})
			}, "application/json", `{"error":"Another request for the same resource is being processed."}`},
		} {
			answer = c.answer
			w := send(e, "POST", "/orders/42")
			if got := w.Header().Get("Content-Type"); w.Code != 409 || got != c.contentType || strings.TrimSpace(w.Body.String()) != c.body {
				t.Errorf("%s: %d %q %q", name, w.Code, got, w.Body)
			}
			if w.Header().Get("Retry-After") != "1" {
				t.Errorf("%s: Retry-After %q", name, w.Header().Get("Retry-After"))
			}
		}
	})
}

// Many error handlers look at some errors and leave the others to echo's.
func TestErrorHandlerThatLeavesItToEcho(t *testing.T) {
	inBubble(t, func(t *testing.T, locker *core.Locker, _ *bytes.Buffer) {
		e := refusing(t, locker)
		e.HTTPErrorHandler = func(c *echo.Context, err error) {
			echo.DefaultHTTPErrorHandler(true)(c, err)
		}
		wantProblem(t, send(e, "POST", "/orders/42"))
	})
}

// What helps the developer must not tell clients about keys and owners.
func TestNothingLeaksWhereErrorsAreShown(t *testing.T) {
	inBubble(t, func(t *testing.T, locker *core.Locker, _ *bytes.Buffer) {
		e := refusing(t, locker)
		e.HTTPErrorHandler = echo.DefaultHTTPErrorHandler(true)
		wantProblem(t, send(e, "POST", "/orders/42"))
	})
}

func wantProblem(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	var problem map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	want := map[string]any{
		"type": "about:blank", "title": "Conflict", "status": 409.,
		"detail": "Another request for the same resource is being processed.",
		"code":   "busy",
	}
	for name, value := range want {
		if problem[name] != value {
			t.Errorf("%s: %v", name, problem[name])
		}
	}
	if len(problem) != len(want) || w.Code != 409 || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestHEADIsRefusedWithoutABody(t *testing.T) {
	inBubble(t, func(t *testing.T, locker *core.Locker, _ *bytes.Buffer) {
		w := send(refusing(t, locker), "HEAD", "/orders/42")
		if w.Code != 409 || w.Body.Len() > 0 || w.Header().Get("Retry-After") != "1" {
			t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
		}
	})
}

// plain hides echo's response.
type plain struct{ http.ResponseWriter }

// Whatever writer middleware has put in its place, a refusal is no success by a slip.
func TestRefusalThroughAForeignWriter(t *testing.T) {
	inBubble(t, func(t *testing.T, locker *core.Locker, _ *bytes.Buffer) {
		busy(t, locker)
		for name, answer := range map[string]func(c *echo.Context, err error) error{
			"nothing": func(*echo.Context, error) error { return nil },
			"a body":  func(c *echo.Context, _ error) error { _, err := c.Response().Write([]byte("busy")); return err },
		} {
			e := echo.New()
			e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c *echo.Context) error {
					c.SetResponse(plain{c.Response()})
					return next(c)
				}
			})
			e.Use(echo5lock.ByParam("orderID", core.NoWait(), echo5lock.OnRefused(answer)))
			e.POST("/orders/:orderID", func(*echo.Context) error { t.Error("the handler ran"); return nil })
			if w := send(e, "POST", "/orders/42"); w.Code != http.StatusConflict {
				t.Errorf("%s: status %d", name, w.Code)
			}
		}
	})
}
