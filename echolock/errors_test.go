package echolock_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/echolock"
)

// refusing is an application whose only route is refused with 409.
func refusing(t *testing.T, locker *core.Locker) *echo.Echo {
	busy(t, locker)
	e := echo.New()
	e.Any("/orders/:orderID", tellKey, echolock.ByParam("orderID", core.NoWait()))
	return e
}

func TestErrorHandlerOfTheApplication(t *testing.T) {
	inBubble(t, func(t *testing.T, locker *core.Locker, _ *bytes.Buffer) {
		e := refusing(t, locker)
		var answer func(c echo.Context, he *echo.HTTPError) error
		e.HTTPErrorHandler = func(err error, c echo.Context) {
			he, ok := err.(*echo.HTTPError)
			if !ok || !errors.Is(err, core.ErrNotAcquired) {
				t.Errorf("%T: %v", err, err)
				return
			}
			if err := answer(c, he); err != nil {
				t.Error(err)
			}
		}
		for name, c := range map[string]struct {
			answer            func(c echo.Context, he *echo.HTTPError) error
			contentType, body string
		}{
			"text": {func(c echo.Context, he *echo.HTTPError) error {
				return c.String(he.Code, "sorry")
			}, "text/plain; charset=UTF-8", "sorry"},
			"a form of its own around the message": {func(c echo.Context, he *echo.HTTPError) error {
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
		e.HTTPErrorHandler = func(err error, c echo.Context) {
			e.DefaultHTTPErrorHandler(err, c)
		}
		wantProblem(t, send(e, "POST", "/orders/42"))
	})
}

// What helps the developer must not tell clients about keys and owners.
func TestNothingLeaksWhereErrorsAreShown(t *testing.T) {
	inBubble(t, func(t *testing.T, locker *core.Locker, _ *bytes.Buffer) {
		e := refusing(t, locker)
		e.Debug = true
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
