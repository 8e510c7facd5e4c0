package conformance_test

import (
	"context"
	"errors"
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
			{part, "/orders", "", "", 400, "A required part of the request is missing.", "part=id "},
			{part, "/orders?id=s3cret&id=2", "", "", 400, "A part of the request is given more than once.", "part=id "},
			{part, "/orders?ID=s3cret", "", "", 400, "The name of a part of the request is in another letter case.", "part=id "},
			{part, "/orders?id=%zzs3cret", "", "", 400, "A part of the request is malformed.", "part=id "},
			{keyfunc.Int(part), "/orders?id=s3cret", "", "", 400, "A part of the request is malformed.", "Int"},
			{field, "/orders", `{"id":1}`, unlike, 400, "The body is not declared as JSON: it needs one Content-Type, application/json.", "part=id "},
			{field, "/orders", `{"id":1}`, "", 400, "The body is not declared as JSON: it needs one Content-Type, application/json.", "part=id "},
			{field, "/orders", `{"id":"s3cret`, "application/json", 400, "A part of the request is malformed.", "part=id "},
			{field, "/orders", `{"id":"s3cret","id":2}`, "application/json", 400, "A part of the request is given more than once.", "part=id "},
			{field, "/orders", `{"id":"s3cret","Id":2}`, "application/json", 400, "The name of a part of the request is in another letter case.", "part=id "},
			{keyfunc.JSON("id", keyfunc.MaxBytes(5)), "/orders", `{"id":"s3cret"}`, "application/json", 413, "The request body is too large.", "part=body "},
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
			line := "its key cannot be used"
			if strings.Contains(c.says, "missing") {
				line = "it has no key"
			}
			if n := h.log.count(line); n != 1 || h.log.count(c.says) != 1 || h.log.count(`route="POST /orders"`) != 1 {
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
			g.param, g.options = "orderID", append(g.options, core.NoWait())
			return send(h.build(post("/orders/{orderID}", []guarding{g}, h.never())), "POST", "/orders/42")
		}
		h.wantProblem(send(guarding{}), http.StatusConflict)
		h.framework.setOnRefused(by("the process"))
		for want, g := range map[string]guarding{"the process": {}, "the guard": {options: []core.Option{h.framework.onRefused(by("the guard"))}}} {
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
		if h.log.count("s3cret")+h.log.count("misconfigured")+h.log.count("no key")+h.log.count("cannot be used") > 0 {
			h.Error("it was logged as something else")
		}
	}},
}
