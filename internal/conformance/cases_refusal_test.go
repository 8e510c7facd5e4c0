package conformance_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/echolock"
	echolock5 "github.com/latchkey-go/latchkey/echolock/v5"
	"github.com/latchkey-go/latchkey/ginlock"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// strict is the adapter's option of that name.
func strict(h *harness) core.Option {
	switch h.framework.name {
	case "gin":
		return ginlock.Strict()
	case "echo v4":
		return echolock.Strict()
	case "echo v5":
		return echolock5.Strict()
	}
	return httplock.Strict()
}

const unlike = "application/xml"

var refusalCases = []conformanceCase{
	{"each cause of a 400 has a text of its own, and one line in the log without values", func(h *harness) {
		part := keyfunc.Join(keyfunc.Const[keyfunc.Request]("x"), keyfunc.Query("id"))
		field := keyfunc.JSON("id")
		for _, c := range []struct {
			key                       keyfunc.Func[keyfunc.Request]
			target, body, contentType string
			status                    int
			says, part                string
		}{
			{part, "/orders", "", "", 400, "A required part of the request is missing.", `query parameter \"id\"`},
			{part, "/orders?id=s3cret&id=2", "", "", 400, "A part of the request is given more than once.", `query parameter \"id\"`},
			{part, "/orders?ID=s3cret", "", "", 400, "The name of a part of the request is in another letter case.", `query parameter \"id\"`},
			{part, "/orders?id=%zzs3cret", "", "", 400, "A part of the request is malformed.", `query parameter \"id\"`},
			{keyfunc.Int(part), "/orders?id=s3cret", "", "", 400, "A part of the request is malformed.", "Int"},
			{field, "/orders", `{"id":1}`, unlike, 400, "The body is not declared as JSON: it needs one Content-Type, application/json.", `JSON field \"id\"`},
			{field, "/orders", `{"id":1}`, "", 400, "The body is not declared as JSON: it needs one Content-Type, application/json.", `JSON field \"id\"`},
			{field, "/orders", `{"id":"s3cret`, "application/json", 400, "A part of the request is malformed.", `JSON field \"id\"`},
			{field, "/orders", `{"id":"s3cret","id":2}`, "application/json", 400, "A part of the request is given more than once.", `JSON field \"id\"`},
			{field, "/orders", `{"id":"s3cret","Id":2}`, "application/json", 400, "The name of a part of the request is in another letter case.", `JSON field \"id\"`},
			{keyfunc.JSON("id", keyfunc.MaxBytes(5)), "/orders", `{"id":"s3cret"}`, "application/json", 413, "The request body is too large.", `JSON field \"id\"`},
			{part, "/orders?id=" + strings.Repeat("s3cret", 1000), "", "", 400, "A part of the request is too long.", ""},
			{func(keyfunc.Request) (string, error) { return "", errors.New("s3cret") }, "/orders", "", "", 400, "A part of the request is malformed.", ""},
		} {
			h.log.reset()
			server := h.build(post("/orders", byKey(c.key), h.never()))
			for range 2 {
				var header []string
				if c.contentType != "" {
					header = []string{"Content-Type", c.contentType}
				}
				w := sendBody(context.Background(), server, "POST", c.target, strings.NewReader(c.body), header...)
				h.wantProblem(w, c.status, "s3cret")
				if !strings.Contains(w.Body.String(), `"`+c.says+`"`) {
					h.Errorf("%s %s: %s; want %q", c.target, c.body, w.Body, c.says)
				}
			}
			if n := h.log.count("it has no key"); n != 1 || h.log.count(c.says) != 1 || h.log.count("route=/orders") != 1 && h.log.count(`route="POST /orders"`) != 1 {
				h.Errorf("%s %s: %d lines, want 1 with route and reason", c.target, c.body, n)
			}
			if c.part != "" && h.log.count(c.part) != 1 || h.log.count("s3cret") > 0 {
				h.Errorf("%s %s: the part is not in the log, or the value is", c.target, c.body)
			}
		}
	}},
	{"a busy lock: whether somebody is at work or the work was done", func(h *harness) {
		server := h.build(post("/orders/{orderID}", byParam("orderID", core.NoWait()), h.never()))
		says := func(want string) {
			h.Helper()
			w := send(server, "POST", "/orders/42")
			h.wantProblem(w, http.StatusConflict)
			if !strings.Contains(w.Body.String(), want) {
				h.Errorf("%s; want %q", w.Body, want)
			}
		}
		k := h.hold("orderID=42", core.KeepFor(time.Minute))
		says("Another request for the same resource is being processed.")
		h.unlock(k)
		says("A request for the same resource was processed just now.")
	}},
	{"Param that the route does not declare: 500 with the route in the log; no route: as without a guard", func(h *harness) {
		server := h.build(post("/orders", byKey(keyfunc.Param("orderID")), h.never()))
		h.wantProblem(send(server, "POST", "/orders"), http.StatusInternalServerError)
		if h.log.count("/orders") == 0 || h.log.count("orderID") == 0 {
			h.Error("the log does not say which route lacks what")
		}
	}},
	{"Strict refuses a route that does not declare the parameter: 500, and the log says which", func(h *harness) {
		for _, g := range []guarding{
			{param: "orderID", options: []core.Option{strict(h)}},
			{config: &config{param: "orderID", strict: true}},
		} {
			h.log.reset()
			server := h.build(
				route{method: "POST", pattern: "/orders/{orderID}", guards: []guarding{g}, handle: ok},
				route{method: "POST", pattern: "/carts/{cartID}", guards: []guarding{g}, handle: h.never()},
			)
			h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
			h.wantProblem(send(server, "POST", "/carts/42"), http.StatusInternalServerError)
			if h.log.count("Strict") != 1 || h.log.count("/carts/") == 0 {
				h.Error("the log does not say which route lacks the parameter")
			}
			h.wantStatus(send(server, "POST", "/nowhere"), http.StatusNotFound)
		}
	}},
	{"OnRefused begins with status and Retry-After; an answer without a body has them too", func(h *harness) {
		defer h.unlock(h.hold("orderID=42"))
		for name, answer := range map[string]refusing{
			"writes":  func(w http.ResponseWriter, _ *http.Request, _ error) { _, _ = w.Write([]byte("house style")) },
			"flushes": func(w http.ResponseWriter, _ *http.Request, _ error) { _ = http.NewResponseController(w).Flush() },
			"nothing": func(http.ResponseWriter, *http.Request, error) {},
		} {
			if name == "flushes" && strings.HasPrefix(h.framework.name, "echo") {
				continue // echo flushes past its own status
			}
			cfg := &config{param: "orderID", options: []core.Option{core.NoWait()}, status: http.StatusTooManyRequests, onRefused: answer}
			w := send(h.build(post("/orders/{orderID}", []guarding{{config: cfg}}, h.never())), "POST", "/orders/42")
			if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" {
				h.Errorf("%s: status %d, Retry-After %q", name, w.Code, w.Header().Get("Retry-After"))
			}
			if name == "writes" && w.Body.String() != "house style" {
				h.Errorf("body %q", w.Body)
			}
		}
	}},
	{"OnRefused of the By functions, and of the process: the nearer one answers", func(h *harness) {
		h.Cleanup(func() { h.framework.setOnRefused(nil) })
		defer h.unlock(h.hold("orderID=42"))
		by := func(name string) refusing {
			return func(w http.ResponseWriter, _ *http.Request, err error) {
				if !errors.Is(err, core.ErrNotAcquired) {
					h.Errorf("error %v", err)
				}
				_, _ = w.Write([]byte(name))
			}
		}
		send := func(g guarding) *httptest.ResponseRecorder {
			g.param, g.options = "orderID", []core.Option{core.NoWait()}
			return send(h.build(post("/orders/{orderID}", []guarding{g}, h.never())), "POST", "/orders/42")
		}
		h.wantProblem(send(guarding{}), http.StatusConflict)
		h.framework.setOnRefused(by("the process"))
		for want, g := range map[string]guarding{"the process": {}, "the guard": {onRefused: by("the guard")}} {
			w := send(g)
			h.wantStatus(w, http.StatusConflict)
			if w.Body.String() != want {
				h.Errorf("answered by %q, want %q", w.Body, want)
			}
		}
		h.framework.setOnRefused(nil)
		h.wantProblem(send(guarding{}), http.StatusConflict)
	}},
	{"a refusal that is answered 200 opens no window of the guards outside", func(h *harness) {
		inner := &config{key: keyfunc.Query("id"), onRefused: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusOK)
		}}
		window := core.KeepFor(time.Minute)
		outer := append(byParam("orderID", window), byKey(keyfunc.Const[keyfunc.Request]("between"), window)...)
		server := h.build(post("/orders/{orderID}", append(outer, guarding{config: inner}), ok))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
		h.wantWindow("orderID=42", false)
		h.wantWindow("between", false)
		h.wantStatus(send(server, "POST", "/orders/42?id=1"), http.StatusOK)
		h.wantWindow("orderID=42", true)
		h.wantWindow("between", true)
	}},
	{"a busy lock is logged as such by no Status", func(h *harness) {
		defer h.unlock(h.hold("orderID=s3cret"))
		for _, status := range []int{400, 413, 500, 503} {
			cfg := &config{param: "orderID", options: []core.Option{core.NoWait()}, status: status}
			h.wantStatus(send(h.build(post("/orders/{orderID}", []guarding{{config: cfg}}, h.never())), "POST", "/orders/s3cret"), status)
		}
		if h.log.count("s3cret")+h.log.count("set up wrongly")+h.log.count("no key") > 0 {
			h.Error("it was logged as something else")
		}
	}},
	{"StatusOf knows the status of the error that OnRefused gets", func(h *harness) {
		for name, c := range map[string]struct {
			cfg    config
			target string
			status int
			after  time.Duration
		}{
			"busy":               {config{param: "orderID"}, "/orders/42", 409, time.Second},
			"busy, as it says":   {config{param: "orderID", status: 423}, "/orders/42", 423, time.Second},
			"missing":            {config{key: keyfunc.Query("id")}, "/orders/1", 400, 0},
			"set up wrongly":     {config{key: keyfunc.Param("cartID")}, "/orders/1", 500, 0},
			"Redis does not run": {config{param: "orderID", locker: unreachable(h)}, "/orders/1", 503, time.Second},
		} {
			k := h.hold("orderID=42")
			cfg := c.cfg
			cfg.options = []core.Option{core.NoWait()}
			called := false
			cfg.onRefused = func(_ http.ResponseWriter, _ *http.Request, err error) {
				called = true
				if status, after := h.framework.statusOf(err); status != c.status || after != c.after {
					h.Errorf("%s: %d, %v; want %d, %v", name, status, after, c.status, c.after)
				}
			}
			h.wantStatus(send(h.build(post("/orders/{orderID}", []guarding{{config: &cfg}}, h.never())), "POST", c.target), c.status)
			if !called {
				h.Errorf("%s: was not called", name)
			}
			h.unlock(k)
		}
	}},
	{"StatusOf knows the errors of core and of keyfunc", func(h *harness) {
		k := h.hold("k")
		defer h.unlock(k)
		_, busy := h.locker.TryLock(context.Background(), "k")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, gone := h.locker.Lock(ctx, "k")
		_, invalid := h.locker.Lock(context.Background(), "")
		for _, c := range []struct {
			err    error
			status int
			after  time.Duration
		}{
			{busy, 409, time.Second}, {gone, 499, 0}, {invalid, 400, 0},
			{core.ErrUnavailable, 503, time.Second}, {core.ErrClosed, 503, time.Second}, {core.ErrLost, 503, time.Second},
			{core.ErrMaxHold, 503, time.Second}, {keyfunc.ErrTooLarge, 413, 0}, {keyfunc.ErrMissing, 400, 0},
			{keyfunc.ErrNotSetUp, 500, 0}, {errors.New("of another kind"), 500, 0},
		} {
			if status, after := h.framework.statusOf(c.err); status != c.status || after != c.after {
				h.Errorf("%v: %d, %v; want %d, %v", c.err, status, after, c.status, c.after)
			}
		}
	}},
}
