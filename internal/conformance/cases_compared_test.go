package conformance_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

var safeMethods = []string{"GET", "HEAD", "OPTIONS", "TRACE"}

// Which requests Idempotent takes for one, or refuses to compare.
var comparedCases = []conformanceCase{
	{"a safe method with a key is as any other, so that none runs the handler again", func(h *harness) {
		for name, cfg := range map[string]*guard.Idempotency{
			"header": {}, "optional": {Optional: true}, "query": {Key: keyfunc.Query("id")},
		} {
			s := h.shopWith(func(r *route) {
				r.method = anyMethod
				cfg.Scope = byUser
				r.guards = []guarding{{config: &config{idempotent: cfg}}}
			}, paid)
			path, key := "/orders", []string{"Idempotency-Key", key(name)}
			if cfg.Key != nil {
				path, key = "/orders?id="+name, nil
			}
			first := s.to("POST", path, "a", key...)
			s.wantReplay(first, s.to("POST", path, "a", key...))
			for _, method := range safeMethods {
				h.wantStatus(s.to(method, path, "a", key...), http.StatusUnprocessableEntity)
			}
			s.wantRuns(1)
		}
		s := h.shop(nil, paid)
		s.wantReplay(s.to("GET", "/orders", "", "Idempotency-Key", "k"), s.to("GET", "/orders", "", "Idempotency-Key", "k"))
		h.wantDraft(s.to("GET", "/orders", "", "Idempotency-Key", "a b"), http.StatusBadRequest, malformed)
		h.wantProblem(s.to("GET", "/orders", "", "Idempotency-Key", "k", "Idempotency-Key", "l"), http.StatusBadRequest)
		s.wantRuns(1)
		s = h.shop(&guard.Idempotency{Key: keyfunc.JSON("requestID")}, paid)
		h.wantProblem(s.to("GET", "/orders", `{"requestID": "k"}`), http.StatusBadRequest)
		s.wantRuns(0)
	}},
	{"a safe method without a key passes, such as what a browser asks for before", func(h *harness) {
		for _, key := range []keyfunc.Func[keyfunc.Request]{nil, keyfunc.JSON("requestID")} {
			s := h.shopWith(func(r *route) {
				r.method = anyMethod
				r.guards = []guarding{{config: &config{idempotent: &guard.Idempotency{Scope: byUser, Key: key}}}}
			}, paid)
			for range 2 {
				for _, method := range safeMethods {
					h.wantStatus(send(s, method, "/orders?page=2", "Access-Control-Request-Headers", "idempotency-key"), http.StatusCreated) // nor with a user
				}
			}
			s.wantRuns(8)
		}
	}},
	{"RouteCheck tells of Idempotent where no method is fixed", func(h *harness) {
		any, subtree := post("/orders", idempotent(byUser), ok), post("/old/{path...}", idempotent(byUser), ok)
		any.method, subtree.method = anyMethod, anyMethod
		locked := post("/locked/{orderID}", byParam("orderID"), ok)
		locked.method = anyMethod
		routes := []route{any, locked, post("/fixed", idempotent(byUser), ok)}
		fixed := routes[2]
		fixed.method = "GET" // of a group, perhaps
		routes = append(routes, fixed)
		if h.framework.name == "net/http" {
			routes = append(routes, subtree) // another router may be inside
		}
		report, err := h.build(routes...).(checkedServer).check()
		if err != nil {
			h.Fatal(err)
		}
		var faults []string
		for _, r := range report {
			for _, fault := range r.Faults {
				faults = append(faults, r.Pattern+" "+fault)
			}
		}
		if len(faults) != 1 || !strings.HasPrefix(faults[0], "/orders it is for all methods") || !strings.Contains(faults[0], "give the route its method") {
			h.Errorf("faults %q", faults)
		}
	}},
	{"a body that was read before cannot be compared, and is refused", func(h *harness) {
		for name, read := range map[string]func(*http.Request){
			"form":      func(r *http.Request) { _ = r.ParseForm() },
			"all of it": func(r *http.Request) { _, _ = io.ReadAll(r.Body) },
			"field":     func(r *http.Request) { _ = r.PostFormValue("csrf") },
		} {
			for _, isLengthKnown := range []bool{true, false} {
				if name == "all of it" && !isLengthKnown {
					continue // as an empty one
				}
				h.log.reset()
				s := h.shopWith(func(r *route) {
					r.guards = idempotent(byUser)
					r.around = func(next func(), request func() *http.Request) { read(request()); next() }
				}, paid)
				send := func(form string) *httptest.ResponseRecorder {
					body := io.Reader(strings.NewReader(form))
					if !isLengthKnown {
						body = struct{ io.Reader }{body}
					}
					return sendBody(h.Context(), s, "POST", "/orders", body,
						"X-User", "u7", "Idempotency-Key", key(name), "Content-Type", "application/x-www-form-urlencoded")
				}
				h.wantProblem(send("amount=1&to=alice"), http.StatusInternalServerError)
				h.wantProblem(send("amount=9999&to=bob"), http.StatusInternalServerError)
				s.wantRuns(0)
				if h.log.count("put the middleware that reads it") == 0 {
					h.Errorf("%s: the log does not say how to fix it", name)
				}
				h.wantStatus(send(""), http.StatusCreated)
			}
		}
		form, contentType := upload(h, 10)
		s := h.shopWith(func(r *route) {
			r.guards = idempotent(byUser)
			r.around = func(next func(), request func() *http.Request) { _ = request().ParseMultipartForm(100); next() }
		}, paid)
		h.wantProblem(sendBody(h.Context(), s, "POST", "/orders", form, "X-User", "u7", "Idempotency-Key", "k", "Content-Type", contentType), http.StatusInternalServerError)
	}},
	{"a body that was read before and put back is compared", func(h *harness) {
		s := h.shopWith(func(r *route) {
			r.guards = idempotent(byUser)
			r.around = func(next func(), request func() *http.Request) {
				r := request()
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				next()
			}
		}, paid)
		s.wantReplay(s.order("k", "a"), s.order("k", "a"))
		h.wantDraft(s.order("k", "b"), http.StatusUnprocessableEntity, alreadyUsed)
		s.wantRuns(1)
	}},
	{"a request to another host is another one", func(h *harness) {
		s := h.shop(nil, paid)
		to := func(host string) *httptest.ResponseRecorder {
			return s.to("POST", fmt.Sprintf("http://%s/orders", host), "a", "Idempotency-Key", "k")
		}
		first := to("shop.example")
		h.wantStatus(first, http.StatusCreated)
		h.wantDraft(to("bank.example"), http.StatusUnprocessableEntity, alreadyUsed)
		s.wantReplay(first, to("Shop.Example"))
		s.wantRuns(1)
	}},
}
