package conformance_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"

	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

var fingerprintCases = []conformanceCase{
	{"a host is one, with and without the default port, and in any letter case", func(h *harness) {
		for one, hosts := range map[string][2][]string{
			"shop.example":  {{"shop.example:443", "shop.example:80", "SHOP.example:", "shop.example"}, {"shop.example:8443", "shop.example:4430", "example:443"}},
			"[2001:db8::1]": {{"[2001:DB8::1]:443", "[2001:db8::1]:"}, {"[2001:db8::1]:8080", "[2001:db8::443]"}},
		} {
			s := h.shop(nil, paid)
			to := func(host string) *httptest.ResponseRecorder {
				r := keyed("/orders", "host"+fmt.Sprint(len(one)))
				r.Host = host
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				return w
			}
			first := to(one)
			for _, host := range hosts[0] {
				s.wantReplay(first, to(host))
			}
			for _, host := range hosts[1] {
				h.wantDraft(to(host), http.StatusUnprocessableEntity, alreadyUsed)
			}
			s.wantRuns(1)
		}
	}},
	{"the path is the one that the server has received, also where a prefix was taken away", func(h *harness) {
		s := h.shop(nil, paid)
		prefixes := http.NewServeMux()
		for _, prefix := range []string{"/payments", "/refunds"} {
			prefixes.Handle(prefix+"/", http.StripPrefix(prefix, s))
		}
		to := func(target string) *httptest.ResponseRecorder {
			r, w := keyed(target, "k"), httptest.NewRecorder()
			r.Host = "example.com"
			prefixes.ServeHTTP(w, r)
			return w
		}
		first := to("/payments/orders/42")
		h.wantStatus(first, http.StatusCreated)
		h.wantDraft(to("/refunds/orders/42"), http.StatusUnprocessableEntity, alreadyUsed)
		s.wantReplay(first, to("/payments/orders/42"))
		s.wantReplay(first, to("http://example.com/payments/orders/42")) // by way of a proxy
		s.wantRuns(1)
	}},
	{"a part of a batch is another request than the next part, though the server has received one", func(h *harness) {
		s := h.shop(nil, paid)
		part := func(path string) *httptest.ResponseRecorder {
			r, w := keyed("/batches", "k"), httptest.NewRecorder()
			r.URL.Path = path
			s.ServeHTTP(w, r)
			return w
		}
		first := part("/orders/42")
		h.wantStatus(first, http.StatusCreated)
		h.wantDraft(part("/orders/43"), http.StatusUnprocessableEntity, alreadyUsed)
		s.wantReplay(first, part("/orders/42"))
	}},
	{"a request that no server has received has the path of its URL", func(h *harness) {
		s := h.shop(nil, paid)
		to := func(path string) *httptest.ResponseRecorder {
			r, w := keyed(path, "k"), httptest.NewRecorder()
			r.RequestURI = ""
			s.ServeHTTP(w, r)
			return w
		}
		first := to("/orders/4%32")
		h.wantStatus(first, http.StatusCreated)
		s.wantReplay(first, s.to("POST", "/orders/4%32", "a", "Idempotency-Key", "k"))
		h.wantDraft(to("/orders/43"), http.StatusUnprocessableEntity, alreadyUsed)
	}},
	{"the handler gets the key that was guarded, the same whether it was sent in quotes or not", func(h *harness) {
		var keys []string
		note := func(w http.ResponseWriter, r *http.Request) {
			own, ok := h.framework.ownKey(r.Context())
			keys = append(keys, fmt.Sprint(own, " ", ok))
			w.WriteHeader(http.StatusTeapot) // not stored
		}
		s := h.shop(nil, note)
		for _, sent := range []string{`k1`, `"k1"`, `"a\"b\\"`, `a=b:c`} {
			s.order(sent, "a")
		}
		s = h.shop(&guard.Idempotency{Key: keyfunc.JSON("requestID")}, note)
		s.to("POST", "/orders", `{"requestID": "r1"}`)
		s = h.shop(&guard.Idempotency{Optional: true}, note)
		s.to("POST", "/orders", "a")
		want := []string{"k1 true", "k1 true", `a"b\ true`, "a=b:c true", "requestID=r1 true", " false"}
		if !reflect.DeepEqual(keys, want) {
			h.Errorf("%q, want %q", keys, want)
		}
	}},
	{"Fingerprint: a repetition may differ in all but that and the method", func(h *harness) {
		s := h.shop(&guard.Idempotency{Fingerprint: keyfunc.Query("order")}, paid)
		to := func(method, query, body string) *httptest.ResponseRecorder {
			return s.to(method, "/orders?"+query, body, "Idempotency-Key", "k")
		}
		first := to("POST", "order=42&signature=a", "token 1")
		h.wantStatus(first, http.StatusCreated)
		s.wantReplay(first, to("POST", "order=42&signature=b", "token 2"))
		h.wantDraft(to("POST", "order=43&signature=a", "token 1"), http.StatusUnprocessableEntity, alreadyUsed)
		h.wantDraft(to("PUT", "order=42&signature=a", "token 1"), http.StatusUnprocessableEntity, alreadyUsed)
		s.wantRuns(1)
		if h.log.count(`compared="method, order"`) != 2 {
			h.Errorf("the log is %s", h.log.text())
		}
	}},
	{"Fingerprint: a number need not be an integer, for nothing is locked by it; a key's need", func(h *harness) {
		s := h.shop(&guard.Idempotency{Fingerprint: keyfunc.Join(keyfunc.JSON("id"), keyfunc.Named("amount", keyfunc.JSON("sum.amount")))}, paid)
		to := func(amount string) *httptest.ResponseRecorder {
			body := `{"id":42,"sum":{"amount":` + amount + `}}`
			return s.to("POST", "/orders", body, "Idempotency-Key", amount)
		}
		for _, amount := range []string{"10.5", "1e3", "-0", "18446744073709551616"} {
			first := to(amount)
			h.wantStatus(first, http.StatusCreated)
			s.wantReplay(first, to(amount))
		}
		h.wantProblem(to("1.x"), http.StatusBadRequest)
		s.wantRuns(4)
		server := h.build(post("/orders", byKey(keyfunc.JSON("amount")), h.never()))
		body := strings.NewReader(`{"amount":10.5}`)
		h.wantProblem(sendBody(context.Background(), server, "POST", "/orders", body, "Content-Type", "application/json"), http.StatusBadRequest)
	}},
	{"Fingerprint: a request for which there is none is refused, and not taken for any other", func(h *harness) {
		for name, none := range map[string]keyfunc.Func[keyfunc.Request]{
			"missing":  keyfunc.Query("order"),
			"optional": keyfunc.Optional(keyfunc.Query("order")),
			"skipped":  func(keyfunc.Request) (string, error) { return "", keyfunc.ErrSkip },
			"empty":    func(keyfunc.Request) (string, error) { return "", nil },
			"failed":   func(keyfunc.Request) (string, error) { return "", io.ErrUnexpectedEOF },
		} {
			s := h.shop(&guard.Idempotency{Fingerprint: none}, paid)
			h.wantProblem(s.order(key(name), "a"), http.StatusBadRequest)
			s.wantRuns(0)
		}
		s := h.shop(&guard.Idempotency{Fingerprint: keyfunc.Param("orderId")}, paid) // the route has none
		h.wantProblem(s.order("k", "a"), http.StatusInternalServerError)
		s.wantRuns(0)
	}},
}
