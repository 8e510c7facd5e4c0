package conformance_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

var exclusionCases = []conformanceCase{
	{"requests with one key run one at a time", func(h *harness) {
		var o overlap
		server := h.build(post("/orders/{orderID}/pay", byParam("orderID"), o.slow(10*time.Millisecond)))
		h.sendAll(server, 20, func(int) string { return "/orders/42/pay" }, http.StatusOK)
		if o.max != 1 || o.runs != 20 {
			h.Errorf("%d ran, up to %d at once", o.runs, o.max)
		}
		if !h.isFree("orderID=42") {
			h.Error("the lock was not released")
		}
	}},
	{"requests with different keys run at the same time", func(h *harness) {
		var o overlap
		server := h.build(post("/orders/{orderID}/pay", byParam("orderID"), o.slow(time.Second)))
		h.sendAll(server, 20, func(i int) string { return fmt.Sprintf("/orders/%d/pay", i) }, http.StatusOK)
		if o.max != 20 {
			h.Errorf("up to %d at once, want 20", o.max)
		}
	}},
	{"routes with the same parameter exclude each other", func(h *harness) {
		var o overlap
		server := h.build(
			post("/orders/{orderID}/pay", byParam("orderID"), o.slow(10*time.Millisecond)),
			post("/orders/{orderID}/cancel", byParam("orderID"), o.slow(10*time.Millisecond)))
		h.sendAll(server, 10, func(i int) string {
			return "/orders/42/" + []string{"pay", "cancel"}[i%2]
		}, http.StatusOK)
		if o.max != 1 {
			h.Errorf("up to %d at once", o.max)
		}
	}},
	{"the key names the part: orderID=42, X-User=7, q=x", func(h *harness) {
		server := h.build(
			post("/orders/{orderID}", byParam("orderID"), h.wantsHeld("orderID=42")),
			post("/header", []guarding{{header: "x-user"}}, h.wantsHeld("X-User=7")),
			post("/query", []guarding{{query: "q"}}, h.wantsHeld("q=x")))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
		h.wantStatus(send(server, "POST", "/header", "X-User", "7"), http.StatusOK)
		h.wantStatus(send(server, "POST", "/query?q=x"), http.StatusOK)
	}},
	{"unmatched routes and methods get the router's own answer", func(h *harness) {
		server := h.build(post("/orders/{orderID}", byParam("orderID"), ok))
		h.wantStatus(send(server, "POST", "/nothing"), http.StatusNotFound)
		h.wantStatus(send(server, "GET", "/orders/42"), http.StatusMethodNotAllowed)
	}},
	{"a route without the parameter passes, with one warning", func(h *harness) {
		guards := byParam("orderID")
		server := h.build(post("/health", guards, ok), post("/orders/{orderID}", guards, ok))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
		for range 3 {
			h.wantStatus(send(server, "POST", "/health"), http.StatusOK)
		}
		if n := h.log.count("does not declare the parameter"); n != 1 {
			h.Errorf("%d warnings, want 1", n)
		}
	}},
	{"a busy lock: 409 after the wait of 3 s", func(h *harness) {
		defer h.unlock(h.hold("orderID=secret42"))
		server := h.build(post("/orders/{orderID}", byParam("orderID"), h.never()))
		started := time.Now()
		h.wantProblem(send(server, "POST", "/orders/secret42"), http.StatusConflict, "secret42")
		if took := time.Since(started); took != 3*time.Second {
			h.Errorf("waited %v", took)
		}
	}},
	{"a wait in vain leaves a line in the log, with route, key and holder, of whom the client hears nothing; a refusal at once none", func(h *harness) {
		const line = "has waited for its lock in vain"
		k := h.hold("orderID=42")
		defer h.unlock(k)
		process, _ := core.ProcessOf(k.Owner())
		holder := fmt.Sprintf("%s (%d)", process.Name, process.PID)
		secrets := []string{"orderID=42", k.Owner(), holder, "held", "waiting"}
		server := h.build(post("/orders/{orderID}", byParam("orderID"), h.never()), post("/orders/{orderID}/now", byParam("orderID", core.NoWait()), h.never()))
		var crowd sync.WaitGroup
		for range 5 {
			crowd.Go(func() { h.wantProblem(send(server, "POST", "/orders/42"), http.StatusConflict, secrets...) })
		}
		crowd.Wait()
		synctest.Wait()
		names := fmt.Sprintf("state=held holder=%q owner=%s for=3s ", holder, k.Owner())
		if h.log.count(names) != 1 || h.log.count(line) != 1 || h.log.count("key=\"orderID=42\"") != 1 || h.log.count("the wait of 3s is over") != 1 {
			h.Errorf("the log:\n%s", h.log.buf.String())
		}
		h.log.reset()
		h.wantProblem(send(server, "POST", "/orders/42/now"), http.StatusConflict)
		synctest.Wait()
		if h.log.count(line) != 0 {
			h.Errorf("the log:\n%s", h.log.buf.String())
		}
	}},
	{"a busy lock with NoWait: 409 at once", func(h *harness) {
		defer h.unlock(h.hold("orderID=42"))
		server := h.build(post("/orders/{orderID}", byParam("orderID", core.NoWait()), h.never()))
		started := time.Now()
		h.wantProblem(send(server, "POST", "/orders/42"), http.StatusConflict)
		if took := time.Since(started); took > 100*time.Millisecond {
			h.Errorf("waited %v", took)
		}
	}},
	{"the Locker's own Wait counts where the middleware says nothing", func(h *harness) {
		locker := h.lockerWith(core.Wait(10 * time.Second))
		core.SetDefault(locker)
		defer h.unlock(h.holdOn(locker, "orderID=42"))
		server := h.build(post("/orders/{orderID}", byParam("orderID"), h.never()))
		started := time.Now()
		h.wantProblem(send(server, "POST", "/orders/42"), http.StatusConflict)
		if took := time.Since(started); took != 10*time.Second {
			h.Errorf("waited %v", took)
		}
	}},
	{"more than 256 waiting requests: 409 at once", func(h *harness) {
		k := h.hold("orderID=42")
		var o overlap
		server := h.build(post("/orders/{orderID}", byParam("orderID"), o.slow(0)))
		var crowd sync.WaitGroup
		for range 256 {
			crowd.Go(func() { send(server, "POST", "/orders/42") })
		}
		synctest.Wait()
		started := time.Now()
		h.wantProblem(send(server, "POST", "/orders/42"), http.StatusConflict)
		if took := time.Since(started); took != 0 {
			h.Errorf("waited %v", took)
		}
		h.unlock(k)
		crowd.Wait()
		if o.runs != 256 {
			h.Errorf("%d ran, want 256", o.runs)
		}
	}},
	{"the request's own deadline ends the wait: 409", func(h *harness) {
		defer h.unlock(h.hold("orderID=42"))
		server := h.build(post("/orders/{orderID}", byParam("orderID"), h.never()))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		h.wantProblem(sendWith(ctx, server, "POST", "/orders/42"), http.StatusConflict)
	}},
	{"the same middleware twice does not wait for itself", func(h *harness) {
		server := h.build(post("/orders/{orderID}", append(byParam("orderID"), byParam("orderID")...), ok))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
	}},
}
