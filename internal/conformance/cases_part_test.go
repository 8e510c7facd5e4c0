package conformance_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// partOfBody is the part that a problem names, and whether it names one.
func (h *harness) partOfBody(w *httptest.ResponseRecorder) (part string, named bool) {
	h.Helper()
	var problem map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil {
		h.Fatalf("%v: %s", err, w.Body)
	}
	part, named = problem["part"].(string)
	return part, named
}

// sendSecrets sends an order whose values are all secret.
func sendSecrets(server http.Handler, header ...string) *httptest.ResponseRecorder {
	header = append(header, "Content-Type", "application/json", "X-Secret", "s3cret")
	body := strings.NewReader(`{"order":{"id":"s3cret"},"items":[{"sku":"tea"},{}]}`)
	return sendBody(context.Background(), server, "POST", "/orders/s3cret?number=s3cret", body, header...)
}

var partCases = []conformanceCase{
	{"a 400 names the part, in its body, to OnRefused and in the log, and no value", func(h *harness) {
		number := keyfunc.Query("number")
		byHand := func(keyfunc.Request) (string, error) { return "", keyfunc.ErrMalformed }
		for _, c := range []struct {
			guard guarding
			want  string
			log   string // empty: the same
		}{
			{guarding{header: "x-order"}, "X-Order", ""},
			{guarding{query: "id"}, "id", ""},
			{guarding{key: keyfunc.Int(number)}, "number", ""},
			{guarding{key: keyfunc.JSON("order.number")}, "order.number", ""},
			{guarding{keys: keyfunc.JSONEach("sku", "items", "sku")}, "items.*.sku", ""},
			{guarding{key: keyfunc.Scope("order", keyfunc.Join(keyfunc.Param("orderID"), keyfunc.UUID(number)))}, "number", ""},
			{guarding{keys: keyfunc.All("account", keyfunc.Param("orderID"), keyfunc.JSON("to"))}, "to", ""},
			{guarding{template: "order:{param.orderID}:{cookie.session}"}, "session", ""},
			{guarding{key: keyfunc.Named("orderID", byHand)}, "orderID", ""},
			{guarding{scope: keyfunc.Header("X-User")}, "X-User", ""},
			{guarding{scope: keyfunc.Header("X-Secret")}, "Idempotency-Key", ""},
			{guarding{key: keyfunc.Join(keyfunc.Param("orderID"), byHand)}, "", `part="part 2"`},
			{guarding{key: byHand}, "", `part=""`},
			{guarding{config: &config{key: keyfunc.Param("orderID"), bufferBody: 8}}, "body", ""},
		} {
			h.log.reset()
			w := sendSecrets(h.build(post("/orders/{orderID}", []guarding{c.guard}, h.never())))
			part, named := h.partOfBody(w)
			if w.Code/100 != 4 || part != c.want || named != (c.want != "") || strings.Contains(w.Body.String(), "s3cret") {
				h.Errorf("want %q: %d %s", c.want, w.Code, w.Body)
			}
			if h.log.count(cmp.Or(c.log, "part="+c.want)+" ") != 1 || h.log.count("s3cret") != 0 {
				h.Errorf("%s: the log does not name the part, or tells a value: %s", c.want, &h.log.buf)
			}
			if c.guard.config != nil {
				continue
			}
			c.guard.options = []core.Option{h.framework.onRefused(func(w http.ResponseWriter, _ *http.Request, err error) {
				fmt.Fprint(w, h.framework.partOf(err))
			})}
			if w := sendSecrets(h.build(post("/orders/{orderID}", []guarding{c.guard}, h.never()))); w.Body.String() != c.want {
				h.Errorf("PartOf is %q, want %q", w.Body, c.want)
			}
		}
	}},
	{"the name is escaped in the body as JSON has it", func(h *harness) {
		const name = "a\"b\\c\n<d>é"
		server := h.build(post("/orders", byKey(keyfunc.Query(name)), h.never()))
		if part, _ := h.partOfBody(send(server, "POST", "/orders")); part != name {
			h.Errorf("%q", part)
		}
	}},
	{"a name that a client has chosen is not in the answer, nor in the log", func(h *harness) {
		chosen := func(r keyfunc.Request) (string, error) { return keyfunc.Query(r.HTTP().Header.Get("X-Secret"))(r) }
		for _, key := range []keyfunc.Func[keyfunc.Request]{chosen, keyfunc.Join(keyfunc.Param("orderID"), chosen), keyfunc.Named("orderID", chosen)} {
			h.log.reset()
			g := guarding{key: key}
			if w := sendSecrets(h.build(post("/orders/{orderID}", []guarding{g}, h.never()))); w.Code != 400 || strings.Contains(w.Body.String(), "s3cret") {
				h.Errorf("%d %s", w.Code, w.Body)
			}
			if h.log.count("s3cret") != 0 || h.log.count("a request was refused") != 1 {
				h.Errorf("the log is %s", &h.log.buf)
			}
			g.options = []core.Option{h.framework.onRefused(func(w http.ResponseWriter, _ *http.Request, err error) {
				fmt.Fprint(w, h.framework.partOf(err))
			})}
			if w := sendSecrets(h.build(post("/orders/{orderID}", []guarding{g}, h.never()))); w.Body.Len() > 0 {
				h.Errorf("PartOf is %q", w.Body)
			}
		}
	}},
	{"a key that is too long: the part, if there is one only", func(h *harness) {
		long := strings.Repeat("x", 2000)
		byHand := func(r keyfunc.Request) (string, error) { return r.HTTP().Header.Get("X-Order"), nil }
		for _, c := range []struct {
			key  keyfunc.Func[keyfunc.Request]
			want string
			log  string
		}{
			{keyfunc.Header("X-Order"), "X-Order", "X-Order"},
			{keyfunc.Scope("order", keyfunc.Header("X-Order")), "X-Order", "X-Order"},
			{keyfunc.Named("orderID", keyfunc.Header("X-Order")), "X-Order", "X-Order"},
			{keyfunc.Named("orderID", byHand), "orderID", "orderID"},
			{keyfunc.Join(keyfunc.Header("X-Order"), keyfunc.Param("orderID")), "", `"X-Order, orderID"`},
			{keyfunc.Join(keyfunc.Header("X-Order"), byHand), "", "X-Order"},
			{byHand, "", `""`},
		} {
			h.log.reset()
			w := send(h.build(post("/orders/{orderID}", byKey(c.key), h.never())), "POST", "/orders/42", "X-Order", long)
			if part, _ := h.partOfBody(w); w.Code != 400 || part != c.want || !strings.Contains(w.Body.String(), "too_long") {
				h.Errorf("want %q: %d %s", c.want, w.Code, w.Body)
			}
			if h.log.count("part="+c.log+" ") != 1 {
				h.Errorf("the log does not name %q: %s", c.log, &h.log.buf)
			}
		}
	}},
	{"the part of a Fingerprint, and that of a malformed Idempotency-Key", func(h *harness) {
		byUser := &guard.Idempotency{Scope: keyfunc.Header("X-Secret"), Fingerprint: keyfunc.JSON("amount")}
		server := h.build(post("/orders/{orderID}", []guarding{{config: &config{idempotent: byUser}}}, h.never()))
		for key, want := range map[string]string{"k": "amount", "not ascii: é": "Idempotency-Key"} {
			if part, _ := h.partOfBody(sendSecrets(server, "Idempotency-Key", key)); part != want {
				h.Errorf("%q, want %q", part, want)
			}
		}
	}},
	{"a path that leads past the parameter is the part itself", func(h *harness) {
		server := h.build(post("/orders/{orderID}/{path...}", byParam("orderID"), h.never()))
		w := send(server, "POST", "/orders/42/%2e%2e/43/pay")
		if part, _ := h.partOfBody(w); w.Code != 400 || part != "path" {
			h.Errorf("%d %s", w.Code, w.Body)
		}
	}},
	{"other refusals have no part", func(h *harness) {
		defer h.unlock(h.hold("orderID=42"))
		busy := send(h.build(post("/orders/{orderID}", byParam("orderID", core.NoWait()), h.never())), "POST", "/orders/42")
		setup := send(h.build(post("/orders", byKey(keyfunc.Param("orderID")), h.never())), "POST", "/orders")
		for _, w := range []*httptest.ResponseRecorder{busy, setup} {
			if part, named := h.partOfBody(w); named {
				h.Errorf("%d names %q", w.Code, part)
			}
		}
		_, missing := keyfunc.Query("id")(bareRequest{})
		if part := h.framework.partOf(missing); part != "id" {
			h.Errorf("the error of a keyfunc: %q", part)
		}
		if part := h.framework.partOf(core.ErrNotAcquired); part != "" {
			h.Errorf("an error of core: %q", part)
		}
	}},
}

// bareRequest is a request without anything.
type bareRequest struct{ keyfunc.Request }

func (bareRequest) HTTP() *http.Request { return httptest.NewRequest("POST", "/", nil) }
