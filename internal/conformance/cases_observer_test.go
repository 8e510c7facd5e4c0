package conformance_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// observed is an Observer that remembers what it was told of some kinds.
type observed struct {
	kinds []core.EventKind
	mu    sync.Mutex
	lines []string
}

type observedKey struct{}

// forEvents is an Observer.
type forEvents func(core.Event)

func (f forEvents) Observe(ctx context.Context, e core.Event) context.Context {
	f(e)
	return ctx
}

func (o *observed) Observe(ctx context.Context, e core.Event) context.Context {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.Contains(o.kinds, e.Kind) {
		o.lines = append(o.lines, strings.TrimSpace(fmt.Sprint(e.Name, " ", e.Reason, " ", e.Status)))
	}
	if e.Kind == core.EventAcquired {
		return context.WithValue(ctx, observedKey{}, "the Observer was here")
	}
	return ctx
}

func (o *observed) want(h *harness, what string, want ...string) {
	h.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Equal(o.lines, want) {
		h.Errorf("%s: heard %q, want %q", what, o.lines, want)
	}
	o.lines = nil
}

// observe makes the default Locker one that tells of events of these kinds.
func (h *harness) observe(kinds ...core.EventKind) *observed {
	o := &observed{kinds: kinds}
	h.locker = h.lockerWith(core.Observe(o))
	core.SetDefault(h.locker)
	return o
}

var observerCases = []conformanceCase{
	{"Observers call a lock by what is read, without the value, or by core.Name", func(h *harness) {
		o := h.observe(core.EventAcquired)
		for _, c := range []struct {
			want  string
			guard guarding
		}{
			{"orderID", guarding{param: "orderID"}},
			{"X-User-Id", guarding{header: "x-user-id"}},
			{"id", guarding{query: "id"}},
			{"order:{param.orderID}", guarding{template: "order:{param.orderID}"}},
			{"orderID", guarding{key: keyfunc.Int(keyfunc.Param("orderID"))}},
			{"orderID", guarding{config: &config{key: keyfunc.Param("orderID")}}},
			{"cart:X-User-Id:id", guarding{key: keyfunc.Scope("cart", keyfunc.Join(keyfunc.Header("x-user-id"), keyfunc.Query("id")))}},
			{"", guarding{key: func(keyfunc.Request) (string, error) { return "x", nil }}},
			{"orders", guarding{param: "orderID", options: []core.Option{core.Name("orders")}}},
			{"orders", guarding{key: keyfunc.Param("orderID"), options: []core.Option{core.Name("orders")}}},
		} {
			server := h.build(post("/orders/{orderID}", []guarding{c.guard}, ok))
			h.wantStatus(send(server, "POST", "/orders/42?id=7", "X-User-Id", "7"), http.StatusOK)
			o.want(h, fmt.Sprintf("%+v", c.guard), strings.TrimSpace(c.want+"  0"))
		}
	}},
	{"the name of a wrapper counts more than that of its Locker", func(h *harness) {
		o := &observed{kinds: []core.EventKind{core.EventAcquired}}
		core.SetDefault(h.lockerWith(core.Observe(o), core.Name("all")))
		server := h.build(post("/orders/{orderID}", byParam("orderID"), ok))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
		o.want(h, "ByParam", "orderID  0")
		server = h.build(post("/orders/{orderID}", byKey(keyfunc.Param("orderID")), ok))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
		o.want(h, "By", "orderID  0")
		server = h.build(post("/orders/{orderID}", byKey(func(keyfunc.Request) (string, error) { return "x", nil }), ok))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
		o.want(h, "by hand", "all  0")
	}},
	{"Observers hear of a refusal once, with reason and status", func(h *harness) {
		o := h.observe(core.EventRefused)
		server := h.build(post("/orders/{orderID}", byParam("orderID", core.NoWait()), ok))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
		o.want(h, "no refusal")

		k := h.hold("orderID=42")
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusConflict)
		o.want(h, "busy", "orderID no_wait 409")
		patient := h.build(post("/orders/{orderID}", byParam("orderID"), h.never()))
		h.wantStatus(send(patient, "POST", "/orders/42"), http.StatusConflict)
		o.want(h, "the wait is over", "orderID wait_over 409")
		h.unlock(k)

		byHeader := h.build(post("/", []guarding{{header: "X-User-Id"}}, h.never()))
		h.wantStatus(send(byHeader, "POST", "/"), http.StatusBadRequest)
		o.want(h, "no key", "X-User-Id invalid_key 400")
		long := strings.Repeat("x", 2000)
		h.wantStatus(send(server, "POST", "/orders/"+long), http.StatusBadRequest)
		o.want(h, "a long key", "orderID invalid_key 400")

		if err := h.locker.Close(context.Background()); err != nil {
			h.Fatal(err)
		}
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusServiceUnavailable)
		o.want(h, "closed", "orderID closed 503")
	}},
	{"Observers hear once in which form a refused request wanted the lock", func(h *harness) {
		var forms []string
		o := forEvents(func(e core.Event) {
			if e.Kind == core.EventRefused {
				forms = append(forms, fmt.Sprint(e.Name, " ", e.Form, " ", e.Status))
			}
		})
		locker := h.lockerWith(core.Observe(o))
		core.SetDefault(locker)
		k := h.holdOn(locker, "id=7")
		noWait := []core.Option{core.NoWait()}
		asked := 0
		shared := h.build(post("/{id}", []guarding{{config: &config{param: "id", options: noWait, shared: func(r *http.Request) bool {
			asked++
			return r.Header.Get("X-Shared") != ""
		}}}}, h.never()))
		permits := h.build(post("/{id}", []guarding{{config: &config{param: "id", options: noWait, permits: ofHeader}}}, h.never()))
		send(shared, "POST", "/7", "X-Shared", "1")
		send(shared, "POST", "/7")
		send(permits, "POST", "/7", "X-Permits", "3")
		send(permits, "POST", "/7", "X-Permits", "0")
		h.unlock(k)
		if want := []string{"id shared 409", "id exclusive 409", "id permits 429", "id exclusive 500"}; !slices.Equal(forms, want) || asked != 2 {
			h.Errorf("heard %q, want %q; Shared was asked %d times", forms, want, asked)
		}
	}},
	{"Observers hear of a client that has left", func(h *harness) {
		o := h.observe(core.EventRefused)
		k := h.hold("orderID=42")
		server := h.build(post("/orders/{orderID}", byParam("orderID"), h.never()))
		gone, leave := context.WithCancel(context.Background())
		leave()
		sendWith(gone, server, "POST", "/orders/42")
		o.want(h, "the client has left", "orderID canceled 499")
		h.unlock(k)
	}},
	{"the handler's context has what an Observer put there", func(h *harness) {
		h.observe()
		server := h.build(post("/orders/{orderID}", byParam("orderID"), func(w http.ResponseWriter, r *http.Request) {
			if r.Context().Value(observedKey{}) == nil {
				h.Error("it has not")
			}
			w.WriteHeader(http.StatusOK)
		}))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
	}},
}
