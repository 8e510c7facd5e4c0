package conformance_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/latchkey-go/latchkey/keyfunc"
)

var keyCases = []conformanceCase{
	{"a part missing, empty, given twice or malformed: 400", func(h *harness) {
		server := h.build(
			post("/header", []guarding{{header: "X-User"}}, h.never()),
			post("/query", []guarding{{query: "q"}}, h.never()),
			post("/int", []guarding{{key: keyfunc.Int(keyfunc.Query("q"))}}, h.never()))
		h.wantProblem(send(server, "POST", "/header"), http.StatusBadRequest)
		h.wantProblem(send(server, "POST", "/header", "X-User", ""), http.StatusBadRequest)
		h.wantProblem(send(server, "POST", "/header", "X-User", "secret1", "X-User", "secret2"), http.StatusBadRequest, "secret")
		h.wantProblem(send(server, "POST", "/query?q=1&q=2"), http.StatusBadRequest)
		h.wantProblem(send(server, "POST", "/int?q=secret"), http.StatusBadRequest, "secret")
	}},
	{"the answer tells whether a part is missing, given twice or malformed", func(h *harness) {
		server := h.build(post("/", byKey(keyfunc.Int(keyfunc.Query("q"))), h.never()))
		for query, want := range map[string]string{"": "missing", "?q=1&q=2": "more than once", "?q=x": "malformed"} {
			if w := send(server, "POST", "/"+query); !strings.Contains(w.Body.String(), want) {
				h.Errorf("%q: %s", query, w.Body)
			}
		}
	}},
	{"a name beside that of the key that some binder takes for it: 400, also with Optional", func(h *harness) {
		const name = "orderID"
		for _, other := range []string{"orderId", "orderID[]", "order[ID]", "order.ID", "order_id", "order-id", "[orderID", "O_R_D_E_R[I]d"} {
			for in, r := range map[string]struct {
				key          keyfunc.Func[keyfunc.Request]
				query, body  string
				header, kind string
			}{
				"query":  {keyfunc.Query(name), "?orderID=1&" + url.QueryEscape(other) + "=secret", "", "Accept", "*/*"},
				"cookie": {keyfunc.Cookie(name), "", "", "Cookie", "orderID=1; " + other + "=secret"},
				"JSON":   {keyfunc.JSON(name), "", `{"orderID":1,"` + other + `":"secret"}`, "Content-Type", "application/json"},
				"inside": {keyfunc.JSON("a." + name), "", `{"a":{"` + other + `":"secret","orderID":1}}`, "Content-Type", "application/json"},
			} {
				for _, key := range []keyfunc.Func[keyfunc.Request]{r.key, keyfunc.Optional(r.key)} {
					server := h.build(post("/orders", byKey(key), h.never()))
					w := sendBody(context.Background(), server, "POST", "/orders"+r.query, strings.NewReader(r.body), r.header, r.kind)
					if h.wantProblem(w, http.StatusBadRequest, "secret"); h.Failed() {
						h.Fatalf("%s %q", in, other)
					}
				}
			}
		}
	}},
	{"a key of more than 1,024 bytes: 400", func(h *harness) {
		server := h.build(post("/header", []guarding{{header: "X-User"}}, h.never()))
		h.wantProblem(send(server, "POST", "/header", "X-User", strings.Repeat("x", 1025)), http.StatusBadRequest, "xxx")
	}},
	{"Optional: a request without the part runs without a lock", func(h *harness) {
		server := h.build(post("/query", []guarding{{key: keyfunc.Optional(keyfunc.Query("q"))}}, ok))
		h.wantStatus(send(server, "POST", "/query"), http.StatusOK)
	}},
	{"a template names the parts and the text between them", func(h *harness) {
		server := h.build(post("/orders/{orderID}", []guarding{{template: "order:{param.orderID}:user:{header.X-User-ID}"}},
			h.wantsHeld(`order:42:user:a\:b`)))
		h.wantStatus(send(server, "POST", "/orders/42", "X-User-ID", "a:b"), http.StatusOK)
	}},
	{"a template with a part missing or given twice: 400", func(h *harness) {
		server := h.build(post("/orders/{orderID}", []guarding{{template: "order:{param.orderID}:{query.q}"}}, h.never()))
		h.wantProblem(send(server, "POST", "/orders/secret42"), http.StatusBadRequest, "secret42")
		h.wantProblem(send(server, "POST", "/orders/42?q=secret1&q=secret2"), http.StatusBadRequest, "secret")
	}},
	{"RemoteIP is the direct peer, whatever the client claims", func(h *harness) {
		server := h.build(post("/", byKey(keyfunc.RemoteIP()), h.wantsHeld("remoteIP=192.0.2.1"))) // as httptest has it
		h.wantStatus(send(server, "POST", "/", "X-Forwarded-For", "203.0.113.9", "X-Real-Ip", "203.0.113.9"), http.StatusOK)
	}},
	{"Value finds what earlier middleware stored in the framework's own way", func(h *harness) {
		r := post("/", byKey(keyfunc.Value(h.valueKey("userID"))), h.wantsHeld("value.userID=u7"))
		r.outside = []companion{authenticating}
		h.wantStatus(send(h.build(r), "POST", "/"), http.StatusOK)
	}},
	{"Value of which nothing is stored: 500, however the client names it, and the log says which", func(h *harness) {
		server := h.build(post("/me/{x}", byKey(keyfunc.Value(h.valueKey("userID"))), h.never()))
		h.wantProblem(send(server, "POST", "/me/x?userID=u7", "userID", "u7"), http.StatusInternalServerError)
		if h.log.count("nothing is stored") == 0 || h.log.count("/me/") == 0 {
			h.Error("the log does not say what is missing where")
		}
	}},
}
