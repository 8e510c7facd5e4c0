package conformance_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

var checkCases = []conformanceCase{
	{"RouteCheck tells what each route is guarded by, and what looks wrong", func(h *harness) {
		orderID := keyfunc.Int(keyfunc.Param("orderID"))
		optional := func() []guarding { return byKey(keyfunc.Optional(orderID)) }
		either := func(r keyfunc.Request) (string, error) {
			if v, declared := r.Param("orderID"); declared {
				return "order:" + v, nil
			}
			v, _ := r.Param("old")
			return "order:" + v, nil
		}
		failOpen := func(key keyfunc.Func[keyfunc.Request]) []guarding {
			return []guarding{{config: &config{key: key, failOpen: true}}}
		}
		strict := []guarding{{config: &config{param: "basket", strict: true}}}
		const noRoute = `no route behind the guard declares the path parameter "orderID", by which the lock is: they declare "other"`
		wants := map[string]struct {
			guards          []guarding
			guarded, faults string
		}{
			"/a/{orderID}/pay":       {byParam("orderID"), `path parameter "orderID"`, ""},
			"/b/{orderID}/refund":    {nil, "", `it declares "orderID", by which other routes are guarded, and is not`},
			"/c/{orderID}/{path...}": {byKey(orderID), `path parameter "orderID"`, ""},
			"/d/{other}":             {byParam("orderID"), "", noRoute},
			"/e/{other}":             {byKey(orderID), "", `does not declare the path parameter "orderID"`},
			"/f/{order_id}":          {byParam("orderID"), "", `by the path parameter "orderID", but it declares "order_id"`},
			"/g/{order_id}":          {byKey(keyfunc.Named("order", orderID)), "", `by the path parameter "orderID", but it declares "order_id"`},
			"/h/{other}":             {optional(), "", noRoute},
			"/i/{other}/{orderID}":   {optional(), `path parameter "orderID" (optional)`, ""},
			"/j":                     {failOpen(keyfunc.Optional(keyfunc.Header("X-Shop"))), `header "X-Shop" (optional, FailOpen)`, ""},
			"/k":                     {failOpen(keyfunc.Const[keyfunc.Request]("all")), `the constant "all" (FailOpen)`, ""},
			"/u":                     {byKey(keyfunc.Const[keyfunc.Request]("all"), core.Shared()), `the constant "all" (shared)`, ""},
			"/v":                     {byKey(keyfunc.Const[keyfunc.Request]("all"), core.Permits(3)), `the constant "all" (3 permits)`, ""},
			"/w":                     {[]guarding{{config: &config{key: keyfunc.Query("id"), safe: true}}}, `query parameter "id" (shared or alone)`, ""},
			"/x":                     {[]guarding{{config: &config{key: keyfunc.Query("id"), failOpen: true, permits: func(*http.Request) int { return 1 }}}}, `query parameter "id" (permits, FailOpen)`, ""},
			"/4":                     {byKey(keyfunc.Const[keyfunc.Request]("all"), core.Permits(3), core.Weight(2)), `the constant "all" (2 of 3 permits)`, ""},
			"/5":                     {[]guarding{{config: &config{key: keyfunc.Query("id"), permits: ofHeader, weight: ofHeader}}}, `query parameter "id" (weighted permits)`, ""},
			"/y":                     {byKey(keyfunc.Const[keyfunc.Request]("all"), core.Permits(1)), `the constant "all" (1 permit)`, ""},
			"/z":                     {byKey(keyfunc.Const[keyfunc.Request]("all"), core.BackgroundRelease()), `the constant "all" (BackgroundRelease: close the Locker at the end)`, ""},
			"/l/{old}":               {byKey(either), "a key function", ""},
			"/m/{tenant}/{item}":     {byKey(keyfunc.Join(keyfunc.Param("tenant"), keyfunc.Param("item"))), `path parameter "tenant" and path parameter "item"`, ""},
			"/n/{tenant}":            {nil, "", ""},
			"/o/{item}/of/{tenant}":  {nil, "", `it declares "tenant", "item", by which other routes are guarded`},
			"/p/{orderID}": {append(byParam("orderID"), guarding{query: "id"}, guarding{template: "a:{query.id}"}),
				`path parameter "orderID"|query parameter "id"|template "a:{query.id}"`, ""},
			"/0/{from}/to/{to}": {byAll(keyfunc.All("account", keyfunc.Param("from"), keyfunc.Param("to"))),
				`all of path parameter "from" and path parameter "to"`, ""},
			"/1/{from}":              {byAll(keyfunc.All("account", keyfunc.Param("from"), keyfunc.Param("to"))), "", `does not declare the path parameter "to"`},
			"/2":                     {byAll(keyfunc.JSONEach("sku", "items", "sku")), `all of JSON field "sku" in each of JSON array "items"`, ""},
			"/q":                     {strict, "", "Strict"},
			"/r/{basket}":            {strict, `path parameter "basket"`, ""},
			"/s/{orderID}/{orderID}": {byKey(orderID), "", `"orderID" twice`},
			"/t/{orderID}/{orderID}": {byParam("orderID"), "", `"orderID" twice`},
		}
		var routes []route
		byPlace := map[string]string{} // the patterns by their first segments
		for pattern, want := range wants {
			if h.framework.name == "net/http" && strings.Count(pattern, "{orderID}") > 1 {
				continue // its mux panics
			}
			r := post(pattern, want.guards, h.never())
			r.around = func(func(), func() *http.Request) { h.Error("another middleware was called") }
			routes = append(routes, r)
			byPlace[pattern[:2]] = pattern
		}
		report, err := h.build(routes...).(checkedServer).check()
		if err != nil || len(report) != len(routes) {
			h.Errorf("%d routes, want %d, %v", len(report), len(routes), err)
		}
		for _, r := range report {
			want := wants[byPlace[r.Pattern[:2]]]
			if guarded := strings.Join(r.Guards, "|"); guarded != want.guarded {
				h.Errorf("%s %s: guarded by %q, want %q", r.Method, r.Pattern, guarded, want.guarded)
			}
			if passes := want.faults == noRoute; passes != (len(r.Passed) == 1) || passes && !strings.HasPrefix(r.Passed[0], `path parameter "orderID"`) {
				h.Errorf("%s %s: passed %q", r.Method, r.Pattern, r.Passed)
			}
			faults := strings.Join(r.Faults, "|")
			if (faults == "") != (want.faults == "") || !strings.Contains(faults, want.faults) || strings.Contains(faults, "|") {
				h.Errorf("%s %s: faults %q, want %q", r.Method, r.Pattern, faults, want.faults)
			}
		}
	}},
	{"a route that is Unguarded on purpose is no fault, unless it is guarded", func(h *harness) {
		reads := route{method: "GET", pattern: "/a/{orderID}", handle: ok, inside: []companion{unguarded}}
		both := post("/b/{orderID}", byParam("orderID"), ok)
		both.inside = reads.inside
		unrelated := post("/c/health", nil, ok)
		unrelated.outside = reads.inside
		server := h.build(reads, both, unrelated, post("/d/{orderID}", byParam("orderID"), ok), post("/e/{orderID}", nil, ok))
		h.wantStatus(send(server, "GET", "/a/42"), http.StatusOK)
		report, err := server.(checkedServer).check()
		if err != nil || len(report) != 5 {
			h.Fatal(report, err)
		}
		for i, fault := range []string{"", "is declared Unguarded, and is guarded", "", "", "or Unguarded in its place"} {
			r := report[i]
			if faults := strings.Join(r.Faults, "|"); (faults == "") != (fault == "") || !strings.Contains(faults, fault) || r.Unguarded != (i < 3) {
				h.Errorf("%+v, want %q", r, fault)
			}
		}
		if text := report.String(); strings.Count(text, "not guarded, on purpose\n") != 2 || strings.Count(text, "not guarded\n") != 1 {
			h.Error(text)
		}
	}},
	{"RouteCheck says nothing of a BackgroundRelease that Idempotent does not have", func(h *harness) {
		once := &guard.Idempotency{Scope: keyfunc.Value("userID")}
		cfg := &config{locker: h.lockerWith(core.BackgroundRelease(), core.Wait(1e9)), idempotent: once}
		report, err := h.build(post("/payments", []guarding{{config: cfg}}, ok)).(checkedServer).check()
		if err != nil || len(report) != 1 || len(report[0].Guards) != 1 || strings.Contains(report[0].Guards[0], "BackgroundRelease") {
			h.Error(report, err)
		}
	}},
	{"a parameter of another resource is not the one by which others are guarded", func(h *harness) {
		server := h.build(post("/orders/{id}/pay", byParam("id"), ok), post("/orders/{id}/refund", nil, ok), post("/users/{id}/ban", nil, ok))
		report, err := server.(checkedServer).check()
		if err != nil || len(report) != 3 || len(report[0].Faults) != 0 || len(report[1].Faults) != 1 || len(report[2].Faults) != 0 {
			h.Error(report, err)
		}
	}},
	{"RouteCheck tells of locks of different things that have one name", func(h *harness) {
		id, wildcard := byParam("id"), keyfunc.Path(keyfunc.Param("path"))
		if strings.HasPrefix(h.framework.name, "echo") {
			wildcard = keyfunc.Path(keyfunc.Param("*"))
		}
		for name, c := range map[string]struct {
			routes []route
			want   string
		}{
			"two resources": {[]route{post("/users/{id}/ban", id, ok), post("/orders/{id}/pay", id, ok), post("/users/{id}", id, ok)},
				`as in By(keyfunc.Named("users.id", keyfunc.Param("id"))) or ByTemplate("users:{param.id}")`},
			"two guards":     {[]route{post("/a/{id}", byParam("id"), ok), post("/b/{id}", byKey(keyfunc.Int(keyfunc.Param("id"))), ok)}, `"b.id"`},
			"several parts":  {[]route{post("/a/{slug}", byTenant("slug"), ok), post("/b/{slug}", byTenant("slug"), ok)}, `"b.slug"`},
			"versions":       {[]route{post("/v1/a/{id}", id, ok), post("/v2/a/{id}/b", id, ok), post("/c", nil, ok)}, ""},
			"a telling name": {[]route{post("/orders/{orderID}", byParam("orderID"), ok), post("/refunds/{orderID}", byParam("orderID"), ok)}, ""},
			"Named":          {[]route{post("/a/{id}", byKey(keyfunc.Named("a.id", keyfunc.Param("id"))), ok), post("/b/{id}", id, ok)}, ""},
			"Named alike":    {[]route{post("/a/{id}", byKey(keyfunc.Named("orderID", keyfunc.Param("id"))), ok), post("/b/{id}", byKey(keyfunc.Named("orderID", keyfunc.Param("id"))), ok)}, ""},
			"templates":      {[]route{post("/a/{id}", []guarding{{template: "a:{param.id}"}}, ok), post("/b/{id}", []guarding{{template: "b:{param.id}"}}, ok)}, ""},
			"another Redis":  {[]route{post("/a/{id}", []guarding{{config: &config{param: "id", locker: h.lockerWith()}}}, ok), post("/b/{id}", id, ok)}, ""},
			"not by it":      {[]route{post("/a/{id}", id, ok), post("/b/{id}", byKey(keyfunc.Query("id")), ok)}, ""},
			"a wildcard":     {[]route{post("/a/{path...}", byKey(wildcard), ok), post("/b/{path...}", byKey(wildcard), ok)}, `Named("b.path"`},
			"at the root":    {[]route{post("/{id}", id, ok), post("/a/{other}/{id}", id, ok), post("/b/{id}", id, ok)}, ""},
		} {
			report, err := h.build(c.routes...).(checkedServer).check()
			if text := fmt.Sprint(report.Err()); err != nil || strings.Count(text, "is one lock") != min(len(c.want), 1) || !strings.Contains(text, c.want) {
				h.Errorf("%s: %v, %s", name, err, text)
			}
		}
	}},
}

func byTenant(param string) []guarding {
	return byKey(keyfunc.Join(keyfunc.Value("tenant"), keyfunc.Param(param)))
}
