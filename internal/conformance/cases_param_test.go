package conformance_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// byEveryWay are the ways to lock by a path parameter. A route that does not declare
// it may pass in none of them if it declares one that was probably meant.
func byEveryWay(name string) map[string]guarding {
	return map[string]guarding{
		"ByParam":      {param: name},
		"Config.Param": {config: &config{param: name}},
		"By":           {key: keyfunc.Param(name)},
		"Optional":     {key: keyfunc.Optional(keyfunc.Param(name))},
		"ByTemplate":   {template: "order:{param." + name + "}"},
	}
}

var paramCases = []conformanceCase{
	{"a name with the router's signs panics at set-up, with the right spelling", func(h *harness) {
		for name, want := range map[string]string{
			":orderID":             "orderID",
			"{orderID}":            "orderID",
			"{orderID:[0-9]{1,9}}": "orderID",
			"{orderID...}":         "orderID",
			"orderID...":           "orderID",
			"*orderID":             "orderID",
			"/orders/:orderID/pay": "orderID",
			"/orders/{orderID}":    "orderID",
			"orders/orderID":       "orderID",
			"orderID:":             "orderID",
			" orderID":             "orderID",
		} {
			for call, g := range map[string]guarding{"ByParam(%q)": {param: name}, "Config.Param %q": {config: &config{param: name}}} {
				got, _ := h.panics(func() { h.build(post("/orders/{orderID}", []guarding{g}, ok)) }).(string)
				if !strings.HasPrefix(got, h.framework.adapter+": "+fmt.Sprintf(call, name)) || !strings.HasSuffix(got, fmt.Sprintf(call, want)) {
					h.Errorf("%q: panics with %q", name, got)
				}
			}
		}
		for _, name := range []string{"*", "{}", ":"} {
			got, _ := h.panics(func() { h.build(post("/orders/{orderID}", byParam(name), ok)) }).(string)
			if !strings.HasPrefix(got, h.framework.adapter+": ") || !strings.Contains(got, "keyfunc.Param(") {
				h.Errorf("%q: panics with %q", name, got)
			}
		}
	}},
	{"a route that declares the name in another spelling: 500, and both names in the log", func(h *harness) {
		for _, declared := range []string{"orderId", "orderid", "ORDERID", "order_id", "order_ID", "OrderID", "order_I_D_"} {
			for way, g := range byEveryWay("orderID") {
				server := h.build(post("/orders/{"+declared+"}/pay", []guarding{g}, h.never()))
				h.wantProblem(send(server, "POST", "/orders/secret42/pay"), http.StatusInternalServerError, "secret42", "order")
				if h.log.count(`\"`+declared+`\"`) == 0 || h.log.count(`\"orderID\"`) == 0 {
					h.Errorf("%s, %s: the log does not have both names", way, declared)
				}
				h.log.reset()
			}
		}
	}},
	{"a route that declares the name beside another spelling is guarded", func(h *harness) {
		server := h.build(post("/orders/{orderID}/{order_id}", byParam("orderID"), h.wantsHeld("orderID=42")))
		h.wantStatus(send(server, "POST", "/orders/42/43"), http.StatusOK)
	}},
	{"a name that only resembles it is another one: it passes, with one warning", func(h *harness) {
		for _, other := range []string{"orderIDs", "id", "order", "orderNo"} {
			guards := byParam("orderID")
			server := h.build(post("/orders/{"+other+"}", guards, ok), post("/pay/{orderID}", guards, ok))
			h.wantStatus(send(server, "POST", "/pay/42"), http.StatusOK) // net/http's guard has seen it now
			h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
			h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
			if n := h.log.count("does not declare the parameter"); n != 1 {
				h.Errorf("%s: %d warnings, want 1", other, n)
			}
			h.log.reset()
		}
	}},
	{"a name that no route behind the guard declares: 500, and the names that there are in the log", func(h *harness) {
		for _, elsewhere := range [][]guarding{nil, byParam("ordrID")} {
			guards := byParam("ordrID")
			server := h.build(
				post("/orders/{orderID}/pay", guards, h.never()),
				post("/users/{userID}", guards, h.never()),
				post("/health", guards, h.never()),
				post("/drafts/{ordrID}", elsewhere, ok))
			h.wantStatus(send(server, "POST", "/drafts/42"), http.StatusOK)
			if strings.HasPrefix(h.framework.name, "echo") { // which does not tell what is behind a guard: RouteCheck does
				_, _ = server.(checkedServer).check()
			}
			for _, path := range []string{"/orders/secret42/pay", "/orders/secret42/pay", "/health"} {
				h.wantProblem(send(server, "POST", path), http.StatusInternalServerError, "secret42", "ord")
			}
			if there := `they declare \"orderID\", \"userID\"`; h.framework.name == "gin" && h.log.count(there) == 0 || h.log.count(`\"ordrID\"`) == 0 {
				h.Error("the log does not have the names")
			}
			h.wantStatus(send(server, "POST", "/nothing"), http.StatusNotFound)
			h.log.reset()
		}
	}},
	{"a route without the parameter passes once the guard knows of one with it: by the router, a check or a request", func(h *harness) {
		for by, learn := range map[string]func(server http.Handler){
			"check":   func(server http.Handler) { _, _ = server.(checkedServer).check() },
			"request": func(server http.Handler) { h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK) },
		} {
			guards := byParam("orderID")
			server := h.build(post("/health", guards, ok), post("/orders/{orderID}", guards, ok))
			before := http.StatusOK
			if h.framework.name == "net/http" { // a mux does not list its routes
				before = http.StatusInternalServerError
			}
			if w := send(server, "POST", "/health"); w.Code != before {
				h.Errorf("%s: status %d before, want %d", by, w.Code, before)
			}
			learn(server)
			h.wantStatus(send(server, "POST", "/health"), http.StatusOK)
		}
	}},
	{"a key function may try several names", func(h *harness) {
		either := func(r keyfunc.Request) (string, error) {
			if v, ok := r.Param("orderID"); ok {
				return "order:" + v, nil
			}
			v, _ := r.Param("order_id")
			return "order:" + v, nil
		}
		server := h.build(post("/old/{order_id}", byKey(either), h.wantsHeld("order:42")))
		h.wantStatus(send(server, "POST", "/old/42"), http.StatusOK)
	}},
	{"a route that declares the name twice: 500, and the log says how to fix it", func(h *harness) {
		ways := byEveryWay("id")
		ways["Join"] = guarding{key: keyfunc.Join(keyfunc.Param("id"), keyfunc.Optional(keyfunc.Query("q")))}
		for way, g := range ways {
			twice := post("/users/{id}/orders/{id}", []guarding{g}, h.never())
			if h.framework.name == "net/http" {
				h.panics(func() { h.build(twice) }) // its own
				continue
			}
			server := h.build(twice)
			h.wantProblem(send(server, "POST", "/users/7/orders/42"), http.StatusInternalServerError)
			if h.log.count("twice") != 1 || h.log.count(`\"id\"`) != 1 {
				h.Errorf("%s: the log does not say what is wrong", way)
			}
			h.log.reset()
		}
	}},
	{"Config.Param does what ByParam does", func(h *harness) {
		guards := []guarding{{config: &config{param: "orderID", options: []core.Option{core.NoWait()}}}}
		server := h.build(post("/orders/{orderID}", guards, h.wantsHeld("orderID=42")), post("/health", guards, ok))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
		h.wantStatus(send(server, "POST", "/health"), http.StatusOK)
		h.wantStatus(send(server, "POST", "/nothing"), http.StatusNotFound)
		if n := h.log.count("does not declare the parameter"); n != 1 {
			h.Errorf("%d warnings, want 1", n)
		}
		defer h.unlock(h.hold("orderID=43"))
		h.wantProblem(send(server, "POST", "/orders/43"), http.StatusConflict)
	}},
}
