package conformance_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// answers answers all refusals with a text.
func answers(text string) refusing {
	return func(w http.ResponseWriter, _ *http.Request, _ error) { _, _ = io.WriteString(w, text) }
}

// refused is a request for order 42, whose lock a stranger has, and its answer.
func (h *harness) refused(g guarding) (status int, text string) {
	h.Helper()
	w := send(h.build(post("/orders/{orderID}", []guarding{g}, h.never())), "POST", "/orders/42")
	return w.Code, w.Body.String()
}

var withCases = []conformanceCase{
	{"every middleware of With has its Locker and options, and needs no default", func(h *harness) {
		own := h.lockerWith()
		core.SetDefault(nil)
		common := &with{own, []core.Option{core.NoWait(), h.framework.status(http.StatusLocked), h.framework.onRefused(answers("house style"))}}
		for _, g := range []guarding{
			{param: "orderID"}, {header: "orderID"}, {query: "orderID"}, {template: "orderID={param.orderID}"}, {key: keyfunc.Query("orderID")},
			{keys: keyfunc.All("orderID", keyfunc.Query("orderID"))}, {config: &config{param: "orderID"}}, {scope: keyfunc.Header("orderID")},
		} {
			g.with = common
			var server http.Handler
			ask := func() (int, string) {
				w := send(server, "POST", "/orders/42?orderID=42", "orderID", "42", "Idempotency-Key", "k")
				return w.Code, w.Body.String()
			}
			server = h.build(post("/orders/{orderID}", []guarding{g}, func(w http.ResponseWriter, r *http.Request) {
				k, ok := core.FromContext(r.Context())
				if !ok {
					h.Fatalf("%+v: the handler has no lock", g)
				}
				if info, err := own.Inspect(context.Background(), k.Key()); err != nil || info.Owner != k.Owner() {
					h.Errorf("%+v: the lock of another Locker: %+v, %v", g, info, err)
				}
				if status, text := ask(); status != http.StatusLocked || text != "house style" {
					h.Errorf("%+v: %d %q", g, status, text)
				}
			}))
			if status, text := ask(); status != http.StatusOK {
				h.Errorf("%+v: %d %q", g, status, text)
			}
		}
	}},
	{"what a middleware is given itself counts more than what it has by With", func(h *harness) {
		own, other := h.lockerWith(), h.lockerWith()
		defer h.unlock(h.holdOn(own, "orderID=42"))
		body := func(g guarding) int {
			server := h.build(post("/orders/{orderID}", []guarding{g}, ok))
			return sendBody(context.Background(), server, "POST", "/orders/43", strings.NewReader("1234")).Code
		}
		common := &with{other, []core.Option{
			core.Wait(1e9), h.framework.status(http.StatusLocked), h.framework.onRefused(answers("common")), h.framework.bufferBody(2),
		}}
		for name, g := range map[string]guarding{
			"options": {param: "orderID", options: []core.Option{
				core.NoWait(), h.framework.status(418), h.framework.onRefused(answers("own")), h.framework.bufferBody(8), h.framework.locker(own)}},
			"Config": {config: &config{param: "orderID", status: 418, onRefused: answers("own"), bufferBody: 8, locker: own, options: []core.Option{core.NoWait()}}},
			"options of a Config": {config: &config{param: "orderID", status: 423, onRefused: answers("Config"), bufferBody: 2, locker: other, options: []core.Option{
				core.NoWait(), h.framework.status(418), h.framework.onRefused(answers("own")), h.framework.bufferBody(8), h.framework.locker(own)}}},
		} {
			g.with = common
			if status, text := h.refused(g); status != 418 || text != "own" {
				h.Errorf("%s: %d %q", name, status, text)
			}
			if status := body(g); status != http.StatusOK {
				h.Errorf("%s: the body is refused: %d", name, status)
			}
		}
		if status := body(guarding{with: common, param: "orderID"}); status != http.StatusRequestEntityTooLarge {
			h.Errorf("the body is not refused: %d", status)
		}
	}},
	{"With(nil) asks for the default Locker at each request, and refuses without one", func(h *harness) {
		core.SetDefault(nil)
		runs := 0
		server := h.build(post("/orders/{orderID}", []guarding{{with: &with{}, param: "orderID"}}, func(http.ResponseWriter, *http.Request) { runs++ }))
		h.wantProblem(send(server, "POST", "/orders/42"), http.StatusInternalServerError)
		for i := range 2 {
			locker := h.lockerWith(core.NoWait())
			core.SetDefault(locker)
			h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
			defer h.unlock(h.holdOn(locker, "orderID=42"))
			h.wantProblem(send(server, "POST", "/orders/42"), http.StatusConflict)
			if runs != i+1 {
				h.Errorf("%d handlers have run, want %d", runs, i+1)
			}
		}
	}},
	{"OnRefused of With counts more than SetOnRefused; OnRefused(nil) of a middleware takes it back", func(h *harness) {
		defer h.unlock(h.hold("orderID=42"))
		common := &with{h.locker, []core.Option{core.NoWait(), h.framework.onRefused(answers("common"))}}
		h.framework.setOnRefused(answers("the process"))
		defer h.framework.setOnRefused(nil)
		if _, text := h.refused(guarding{with: common, param: "orderID"}); text != "common" {
			h.Errorf("answered by %q", text)
		}
		back := []core.Option{h.framework.onRefused(nil)}
		if _, text := h.refused(guarding{with: common, param: "orderID", options: back}); text != "the process" {
			h.Errorf("answered by %q", text)
		}
	}},
	{"FailOpen and Strict of With: an outage, and routes without the parameter", func(h *harness) {
		common := &with{unreachable(h), []core.Option{h.framework.failOpen(), h.framework.strict()}}
		for _, g := range []guarding{{param: "orderID"}, {header: "X-Order"}, {config: &config{param: "orderID"}}} {
			g.with = common
			h.wantStatus(send(h.build(post("/orders/{orderID}", []guarding{g}, ok)), "POST", "/orders/42", "X-Order", "42"), http.StatusOK)
		}
		for _, g := range []guarding{{param: "orderID"}, {config: &config{param: "orderID"}}} {
			g.with = common
			carts := h.build(post("/orders/{orderID}", []guarding{g}, ok), post("/carts/{cartID}", []guarding{g}, h.never()))
			h.wantProblem(send(carts, "POST", "/carts/42"), http.StatusInternalServerError)
		}
		down := guarding{with: &with{locker: unreachable(h)}, param: "orderID"}
		if status, _ := h.refused(down); status != http.StatusServiceUnavailable {
			h.Errorf("without FailOpen: %d", status)
		}
	}},
	{"With panics when an option is bad, and its methods when it cannot be combined", func(h *harness) {
		for name, opts := range map[string][]core.Option{
			"empty": {{}}, "bad": {core.Lease(-1)}, "shared owner": {core.Owner("me")}, "option of New": {core.Prefix("x")},
			"other's": {adapter.Option("for another")}, "no Locker": {h.framework.locker(nil)}, "no error": {h.framework.status(200)},
		} {
			got, _ := h.panics(func() { h.framework.with(h.locker, opts...) }).(string)
			if !strings.HasPrefix(got, h.framework.adapter+": ") {
				h.Errorf("%s: panics with %q", name, got)
			}
		}
		for name, g := range map[string]guarding{
			"FailOpen": {scope: byUser, with: &with{h.locker, []core.Option{h.framework.failOpen()}}},
			"KeepFor":  {scope: byUser, with: &with{h.locker, []core.Option{core.KeepFor(1e9)}}},
			"Shared":   {config: &config{param: "x", safe: true}, with: &with{h.locker, []core.Option{core.KeepFor(1e9)}}},
		} {
			if got, _ := h.panics(func() { h.build(post("/", []guarding{g}, ok)) }).(string); !strings.HasPrefix(got, h.framework.adapter+": ") {
				h.Errorf("%s: panics with %q", name, got)
			}
		}
	}},
	{"RouteCheck sees what With has made", func(h *harness) {
		g := []guarding{{with: &with{h.locker, []core.Option{h.framework.failOpen()}}, param: "orderID"}}
		report, err := h.build(post("/orders/{orderID}", g, ok)).(checkedServer).check()
		if err != nil || !strings.Contains(report.String(), `by path parameter "orderID" (FailOpen)`) {
			h.Errorf("%v, the report is\n%s", err, report)
		}
	}},
}

// No two tests have anything in common: each has a Locker and an answer of its own, by With.
func TestWithInParallel(t *testing.T) {
	for _, f := range frameworks {
		for i := range 4 {
			t.Run(fmt.Sprint(f.name, i), func(t *testing.T) {
				t.Parallel()
				h := &harness{T: t, framework: f, locker: locktest.New(t)}
				own := fmt.Sprint("test ", i)
				locks := &with{h.locker, []core.Option{core.NoWait(), f.onRefused(answers(own))}}
				k := h.hold("orderID=42")
				if status, text := h.refused(guarding{with: locks, param: "orderID"}); status != http.StatusConflict || text != own {
					t.Errorf("%d %q", status, text)
				}
				h.unlock(k)
				server := h.build(post("/orders/{orderID}", []guarding{{with: locks, param: "orderID"}}, func(http.ResponseWriter, *http.Request) {
					if h.isFree("orderID=42") {
						t.Error("the handler runs without a lock")
					}
				}))
				h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
			})
		}
	}
}
