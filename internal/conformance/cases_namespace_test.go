package conformance_test

import (
	"net/http"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

var namespaceCases = []conformanceCase{
	{"no value of one guard is a key of another", func(h *harness) {
		noWait := core.NoWait()
		orders := keyfunc.Scope("order", keyfunc.Header("Idempotency-Key"))
		defer h.unlock(h.hold("orderID=42"))
		defer h.unlock(h.hold("order:Idempotency-Key=43"))
		user := keyfunc.Join(keyfunc.Value(h.valueKey("userID")), keyfunc.Header("Idempotency-Key"))
		mine := post("/mine", byKey(user, noWait), ok)
		mine.outside = []companion{authenticating}
		server := h.build(mine,
			post("/batches", byKey(keyfunc.Header("X-Batch-ID"), noWait), ok),
			post("/users", byKey(keyfunc.Join(keyfunc.Header("X-User"), keyfunc.Header("Idempotency-Key")), noWait), ok),
			post("/orders", byKey(orders, noWait), h.never()),
			post("/orders/{orderID}", byParam("orderID", noWait), h.never()))
		for _, value := range []string{"orderID=42", "42", `orderID\=42`, "order:Idempotency-Key=43"} {
			h.wantStatus(send(server, "POST", "/batches", "X-Batch-ID", value), http.StatusOK)
		}
		h.wantStatus(send(server, "POST", "/users", "X-User", "order", "Idempotency-Key", "43"), http.StatusOK)
		h.wantStatus(send(server, "POST", "/mine", "Idempotency-Key", "43"), http.StatusOK)
		h.wantStatus(send(server, "POST", "/orders", "Idempotency-Key", "43"), http.StatusConflict)
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusConflict)
	}},
	{"a name is one thing, wherever the value is and whatever brings it to one form", func(h *harness) {
		defer h.unlock(h.hold("orderID=42"))
		noWait := core.NoWait()
		server := h.build(
			post("/query", []guarding{{query: "orderID", options: []core.Option{noWait}}}, h.never()),
			post("/int/{orderID}", byKey(keyfunc.Int(keyfunc.Param("orderID")), noWait), h.never()),
			post("/named/{id}", byKey(keyfunc.Named("orderID", keyfunc.Int(keyfunc.Param("id"))), noWait), h.never()),
			post("/template/{id}", []guarding{{template: "orderID={param.id}", options: []core.Option{noWait}}}, h.never()))
		for _, target := range []string{"/query?orderID=42", "/int/042", "/named/+42", "/template/42"} {
			h.wantStatus(send(server, "POST", target), http.StatusConflict)
		}
	}},
	{"a query name in another letter case: 400, also with Optional", func(h *harness) {
		server := h.build(post("/", byKey(keyfunc.Optional(keyfunc.Query("id"))), h.never()))
		h.wantProblem(send(server, "POST", "/?ID=secret"), http.StatusBadRequest, "secret")
		h.wantProblem(send(server, "POST", "/?id=1&Id=secret"), http.StatusBadRequest, "secret")
	}},
}
