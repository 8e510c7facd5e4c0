package conformance_test

import (
	"context"
	"net/http"
	"strings"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

var outageCases = []conformanceCase{
	{"no default Locker: 500, and the log says how to fix it", func(h *harness) {
		core.SetDefault(nil)
		server := h.build(post("/orders/{orderID}", byParam("orderID"), h.never()))
		h.wantProblem(send(server, "POST", "/orders/42"), http.StatusInternalServerError)
		if h.log.count("SetDefault") != 1 {
			h.Error("the log does not say how to fix it")
		}
	}},
	{"the default Locker may be set after the middleware is built", func(h *harness) {
		core.SetDefault(nil)
		server := h.build(post("/orders/{orderID}", byParam("orderID"), h.wantsHeld("orderID=42")))
		core.SetDefault(h.locker)
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
	}},
	{"Redis unreachable: 503, and nothing runs", func(h *harness) {
		core.SetDefault(unreachable(h))
		server := h.build(post("/orders/{orderID}", byParam("orderID"), h.never()))
		h.wantProblem(send(server, "POST", "/orders/42"), http.StatusServiceUnavailable)
	}},
	{"Redis unreachable, FailOpen: the handler runs without a lock", func(h *harness) {
		cfg := &config{locker: unreachable(h), key: keyfunc.Param("orderID"), failOpen: true}
		server := h.build(post("/orders/{orderID}", []guarding{{config: cfg}}, ok))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
		if h.log.count("FailOpen") == 0 {
			h.Error("nothing was logged")
		}
	}},
	{"FailOpen does not open a busy lock", func(h *harness) {
		defer h.unlock(h.hold("orderID=42"))
		cfg := &config{key: keyfunc.Param("orderID"), failOpen: true}
		server := h.build(post("/orders/{orderID}", []guarding{{config: cfg}}, h.never()))
		h.wantProblem(send(server, "POST", "/orders/42"), http.StatusConflict)
	}},
	{"Locker closed: 503", func(h *harness) {
		if err := h.locker.Close(context.Background()); err != nil {
			h.Fatal(err)
		}
		server := h.build(post("/orders/{orderID}", byParam("orderID"), h.never()))
		h.wantProblem(send(server, "POST", "/orders/42"), http.StatusServiceUnavailable)
	}},
	{"what a refusal says is the same whatever the key, the owner and the reason", func(h *harness) {
		k := h.hold("orderID=secret42", core.NoWait())
		defer h.unlock(k)
		held := h.build(post("/orders/{orderID}", byParam("orderID", core.NoWait()), h.never()))
		h.wantProblem(send(held, "POST", "/orders/secret42"), http.StatusConflict, "secret", "orderID", k.Owner(), strings.Split(k.Owner(), ":")[0])
		cfg := &config{locker: unreachable(h), key: keyfunc.Param("orderID")}
		down := h.build(post("/orders/{orderID}", []guarding{{config: cfg}}, h.never()))
		h.wantProblem(send(down, "POST", "/orders/secret42"), http.StatusServiceUnavailable, "secret", "orderID", "refused", "6379", "tcp")
	}},
}
