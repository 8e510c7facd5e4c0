package conformance_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

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
			{param: "orderID", options: []core.Option{h.framework.strict()}},
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

		for name, between := range map[string]func(http.Handler) http.Handler{
			"with a response of its own": func(next http.Handler) http.Handler { return http.TimeoutHandler(next, time.Minute, "") },
			"with a request of its own": func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r.Clone(r.Context())) })
			},
		} {
			behind := between(h.build(post("/orders/{orderID}", []guarding{{config: inner}}, ok)))
			server := h.build(post("/orders/{orderID}", byParam("orderID", window), behind.ServeHTTP))
			for id, query := range map[string]string{"no-id": "", "id": "?id=1"} {
				id := key(name, id)
				h.wantStatus(send(server, "POST", "/orders/"+id+query), http.StatusOK)
				h.wantWindow("orderID="+id, query != "")
			}
		}
	}},
	{"a refusal behind http.TimeoutHandler may come when the guards outside have answered", func(h *harness) {
		defer h.unlock(h.hold("between"))
		behind := h.build(post("/orders/{orderID}", byKey(keyfunc.Const[keyfunc.Request]("between"), core.Wait(time.Hour)), h.never()))
		server := h.build(post("/orders/{orderID}", byParam("orderID", core.KeepFor(time.Minute)), http.TimeoutHandler(behind, time.Second, "").ServeHTTP))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusServiceUnavailable)
		h.wantWindow("orderID=42", false)
	}},
	{"a busy lock is logged as such by no Status", func(h *harness) {
		defer h.unlock(h.hold("orderID=s3cret"))
		for _, status := range []int{400, 413, 500, 503} {
			cfg := &config{param: "orderID", options: []core.Option{core.NoWait()}, status: status}
			h.wantStatus(send(h.build(post("/orders/{orderID}", []guarding{{config: cfg}}, h.never())), "POST", "/orders/s3cret"), status)
		}
		if h.log.count("s3cret")+h.log.count("misconfigured")+h.log.count("no key") > 0 {
			h.Error("it was logged as something else")
		}
	}},
	{"StatusOf and ReasonOf know the error that OnRefused gets", func(h *harness) {
		for name, c := range map[string]struct {
			cfg    config
			target string
			status int
			after  time.Duration
			code   string
		}{
			"busy":               {config{param: "orderID"}, "/orders/42", 409, time.Second, "busy"},
			"busy, as it says":   {config{param: "orderID", status: 423}, "/orders/42", 423, time.Second, "busy"},
			"missing":            {config{key: keyfunc.Query("id")}, "/orders/1", 400, 0, "missing"},
			"misconfigured":      {config{key: keyfunc.Param("cartID")}, "/orders/1", 500, 0, "internal"},
			"Redis does not run": {config{param: "orderID", locker: unreachable(h)}, "/orders/1", 503, time.Second, "unavailable"},
		} {
			k := h.hold("orderID=42")
			cfg := c.cfg
			cfg.options = []core.Option{core.NoWait()}
			says := ""
			cfg.onRefused = func(_ http.ResponseWriter, _ *http.Request, err error) {
				if status, after := h.framework.statusOf(err); status != c.status || after != c.after {
					h.Errorf("%s: %d, %v; want %d, %v", name, status, after, c.status, c.after)
				}
				code, text := h.framework.reasonOf(err)
				if code != c.code || text != err.Error() {
					h.Errorf("%s: %q, %q; want %q, %q", name, code, text, c.code, err)
				}
				says = text
			}
			h.wantStatus(send(h.build(post("/orders/{orderID}", []guarding{{config: &cfg}}, h.never())), "POST", c.target), c.status)
			cfg.onRefused = nil
			w := send(h.build(post("/orders/{orderID}", []guarding{{config: &cfg}}, h.never())), "POST", c.target)
			if says == "" || !strings.Contains(w.Body.String(), `"detail":"`+says+`","code":"`+c.code+`"`) {
				h.Errorf("%s: the text is %q of %q, the body %s", name, says, c.code, w.Body)
			}
			h.unlock(k)
		}
	}},
	{"StatusOf and ReasonOf know the errors of core and of keyfunc", func(h *harness) {
		k := h.hold("k")
		defer h.unlock(k)
		_, busy := h.locker.TryLock(context.Background(), "k")
		h.unlock(h.hold("done", core.KeepFor(time.Minute)))
		_, done := h.locker.TryLock(context.Background(), "done")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, gone := h.locker.Lock(ctx, "k")
		_, invalid := h.locker.Lock(context.Background(), "")
		for _, c := range []struct {
			err    error
			status int
			after  time.Duration
			code   string
		}{
			{busy, 409, time.Second, "busy"}, {done, 409, time.Minute, "done"}, {gone, 499, 0, "gone"}, {invalid, 400, 0, "too_long"},
			{core.ErrNotAcquired, 409, time.Second, "busy"},
			{core.ErrUnavailable, 503, time.Second, "unavailable"}, {core.ErrClosed, 503, time.Second, "unavailable"},
			{core.ErrLost, 503, time.Second, "unavailable"}, {core.ErrMaxHold, 503, time.Second, "unavailable"},
			{keyfunc.ErrTooLarge, 413, 0, "too_large"}, {keyfunc.ErrMissing, 400, 0, "missing"}, {keyfunc.ErrRepeated, 400, 0, "repeated"},
			{keyfunc.ErrLetterCase, 400, 0, "letter_case"}, {keyfunc.ErrNotJSON, 400, 0, "not_json"}, {keyfunc.ErrPath, 400, 0, "path"},
			{keyfunc.ErrAmbiguous, 400, 0, "ambiguous"}, {keyfunc.ErrMalformed, 400, 0, "malformed"},
			{keyfunc.ErrNotSetUp, 500, 0, "internal"}, {errors.New("of another kind"), 500, 0, "internal"},
		} {
			if status, after := h.framework.statusOf(c.err); status != c.status || after != c.after {
				h.Errorf("%v: %d, %v; want %d, %v", c.err, status, after, c.status, c.after)
			}
			if code, text := h.framework.reasonOf(c.err); code != c.code || !strings.HasSuffix(text, ".") {
				h.Errorf("%v: %q, %q; want %q", c.err, code, text, c.code)
			}
		}
	}},
	{"the errors of refusals have no key, address or error of Redis in their texts; the log has", func(h *harness) {
		failing := func(keyfunc.Request) (string, error) { return "", errors.New("s3cret") }
		for name, c := range map[string]struct {
			cfg  config
			kind error
		}{
			"busy":               {config{param: "orderID"}, core.ErrNotAcquired},
			"Redis does not run": {config{param: "orderID", locker: unreachable(h)}, core.ErrUnavailable},
			"no key":             {config{key: failing}, nil},
		} {
			k := h.hold("orderID=s3cret")
			check := func(err error) {
				text := strings.ToLower(err.Error())
				for _, secret := range []string{"s3cret", "orderid", "127.0.0.1", "dial", "connection", "redis", "core", "latchkey"} {
					if strings.Contains(text, secret) {
						h.Errorf("%s: it tells about %q: %s", name, secret, text)
					}
				}
				if c.kind != nil && !errors.Is(err, c.kind) {
					h.Errorf("%s: it is no %v: %v", name, c.kind, err)
				}
				if code, _ := h.framework.reasonOf(err); code == "internal" {
					h.Errorf("%s: the reason is not found in %v", name, err)
				}
			}
			for _, own := range []bool{true, false} {
				seen, cfg := 0, c.cfg
				cfg.options = []core.Option{core.NoWait()}
				r := post("/orders/{orderID}", []guarding{{config: &cfg}}, h.never())
				r.failed = func(err error) {
					seen++
					check(err)
				}
				want := 0
				if own {
					want++
					cfg.onRefused = func(_ http.ResponseWriter, _ *http.Request, err error) {
						seen++
						check(err)
						h.log.reset()
						slog.Info("refused", "error", err)
						if (h.log.count("s3cret") > 0) != (c.kind != nil) {
							h.Errorf("%s: the cause is in the log, or is not", name)
						}
					}
				}
				if h.framework.hasErrors && (!own || h.framework.name == "gin") {
					want++
				}
				send(h.build(r), "POST", "/orders/s3cret")
				if seen != want {
					h.Errorf("%s: %d errors were seen, want %d", name, seen, want)
				}
			}
			h.unlock(k)
		}
	}},
}
