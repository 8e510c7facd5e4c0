package conformance_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

func (b *logBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// ofRequests is a log with the request that the context is of, as handlers for request and trace IDs write it.
type ofRequests struct{ slog.Handler }

type requestKey struct{}

func (h ofRequests) Handle(ctx context.Context, r slog.Record) error {
	if request := ctx.Value(requestKey{}); request != nil && ctx.Err() == nil {
		r.AddAttrs(slog.Any("request", request))
	}
	return h.Handler.Handle(ctx, r)
}

// told are the lines of the guard, and how a request brings each about. Its path is /orders/42.
var told = []struct {
	line string
	has  string
	send func(h *harness, ctx context.Context)
}{
	{"the middleware is misconfigured", "", func(h *harness, ctx context.Context) {
		core.SetDefault(nil)
		sendWith(ctx, h.build(post("/orders/{orderID}", byParam("orderID"), h.never())), "POST", "/orders/42")
	}},
	{"has waited for its lock in vain", "", func(h *harness, ctx context.Context) {
		defer h.unlock(h.hold("orderID=42"))
		sendWith(ctx, h.build(post("/orders/{orderID}", byParam("orderID"), h.never())), "POST", "/orders/42")
	}},
	{"requests are refused", `key="orderID=42" route="POST /orders/`, func(h *harness, ctx context.Context) {
		core.SetDefault(unreachable(h))
		sendWith(ctx, h.build(post("/orders/{orderID}", byParam("orderID"), h.never())), "POST", "/orders/42")
	}},
	{"it has no key", "", func(h *harness, ctx context.Context) {
		sendWith(ctx, h.build(post("/orders/{orderID}", []guarding{{header: "X-Order"}}, h.never())), "POST", "/orders/42")
	}},
	{"(FailOpen)", `key="orderID=42" route="POST /orders/`, func(h *harness, ctx context.Context) {
		cfg := &config{locker: unreachable(h), key: keyfunc.Param("orderID"), failOpen: true}
		sendWith(ctx, h.build(post("/orders/{orderID}", []guarding{{config: cfg}}, ok)), "POST", "/orders/42")
	}},
	{"does not declare the parameter", "", func(h *harness, ctx context.Context) {
		guards := byParam("userID")
		server := h.build(post("/orders/42", guards, ok), post("/users/{userID}", guards, ok))
		send(server, "POST", "/users/7")
		sendWith(ctx, server, "POST", "/orders/42")
	}},
	{"a lock was lost while held", "", func(h *harness, ctx context.Context) {
		lose := func(_ http.ResponseWriter, r *http.Request) { locktest.Lose(h, h.locker, "orderID=42") }
		sendWith(ctx, h.build(post("/orders/{orderID}", byParam("orderID"), lose)), "POST", "/orders/42")
	}},
	{"a release failed after the work was done", "", func(h *harness, ctx context.Context) {
		end := func() {}
		fail := func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			end = locktest.Outage(h, h.locker)
			panic("boom")
		}
		server := h.build(post("/orders/{orderID}", byParam("orderID", core.KeepFor(time.Hour)), fail))
		h.panics(func() { sendWith(ctx, server, "POST", "/orders/42") })
		end()
	}},
	{"an answer was not stored", "", func(h *harness, ctx context.Context) { h.leaveUnknown(ctx, context.Background()) }},
	{"a request is processed again", ` route="POST /orders" attempt=`, func(h *harness, ctx context.Context) { h.leaveUnknown(context.Background(), ctx) }},
	{"a request is refused, because the outcome", ` route="POST /orders"`, func(h *harness, ctx context.Context) {
		h.leaveUnknown(context.Background(), ctx, func(i *guard.Idempotency) { i.RefuseUnknown = true })
	}},
}

// leaveUnknown sends a request twice, in these contexts: the outcome of the first attempt is unknown.
func (h *harness) leaveUnknown(first, second context.Context, more ...func(*guard.Idempotency)) {
	cfg := &guard.Idempotency{}
	for _, set := range more {
		set(cfg)
	}
	hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	server := h.shop(cfg, hangs, core.MaxHold(time.Minute))
	for _, ctx := range []context.Context{first, second} {
		sendBody(ctx, server, "POST", "/orders", strings.NewReader("a"), "X-User", "u7", "Idempotency-Key", "k", "Content-Type", "application/json")
	}
}

var logCases = []conformanceCase{
	{"each line has the context of its request, for handlers that add its ID, its key and its route", func(h *harness) {
		for _, c := range told {
			h.log.reset()
			core.SetDefault(h.locker)
			ctx, leave := context.WithCancel(context.WithValue(context.Background(), requestKey{}, "r42"))
			c.send(h, ctx)
			leave()
			time.Sleep(2 * time.Second) // what was left out comes as well
			found := false
			for line := range strings.Lines(h.log.text()) {
				found = found || strings.Contains(line, c.line) && strings.Contains(line, "request=r42") && strings.Contains(line, c.has)
			}
			if !found {
				h.Errorf("%s: logged\n%s", c.line, h.log.text())
			}
		}
	}},
	{"of many refusals the log has two lines, which say how many there were", func(h *harness) {
		server := h.build(post("/orders/{orderID}", []guarding{{header: "X-Order"}}, h.never()))
		for range 20 {
			h.wantStatus(send(server, "POST", "/orders/42"), http.StatusBadRequest)
		}
		time.Sleep(2 * time.Second)
		if h.log.count("it has no key") != 2 || h.log.count("omitted=18") != 1 {
			h.Errorf("logged\n%s", h.log.text())
		}
	}},
	{"lines go to the Logger of the request's Locker: of With, of an option, or of the default of that moment", func(h *harness) {
		missing := guarding{header: "X-Order"}
		inVain := guarding{param: "orderID"}
		for _, given := range []func(g guarding, own *core.Locker) guarding{
			func(g guarding, own *core.Locker) guarding { g.with = &with{locker: own}; return g },
			func(g guarding, own *core.Locker) guarding {
				g.options = []core.Option{h.framework.locker(own)}
				return g
			},
			func(g guarding, own *core.Locker) guarding { core.SetDefault(own); return g },
		} {
			log := &logBuffer{}
			own := h.lockerWith(core.Logger(slog.New(slog.NewJSONHandler(log, nil))))
			server := h.build(post("/orders/{orderID}", []guarding{given(inVain, own)}, h.never()), post("/pay/{orderID}", []guarding{given(missing, own)}, h.never()))
			k := h.holdOn(own, "orderID=42")
			h.wantStatus(send(server, "POST", "/orders/42"), http.StatusConflict)
			h.wantStatus(send(server, "POST", "/pay/42"), http.StatusBadRequest)
			synctest.Wait()
			h.unlock(k)
			if log.count("in vain") != 1 || log.count(k.Owner()) != 1 || log.count("has no key") != 1 || h.log.text() != "" {
				h.Errorf("its log is\n%s\nand the default log\n%s", log.text(), h.log.text())
			}
		}
	}},
	{"the route of a line has its method: that of net/http's pattern, or a known one", func(h *harness) {
		for method, has := range map[string]bool{"GET": true, "PUT": true, "PATCH": true, "DELETE": true, "ANYTHING": h.framework.name == netHTTPFramework.name} {
			h.log.reset()
			send(h.build(route{method: method, pattern: "/orders/{orderID}", guards: []guarding{{header: "X-Order"}}, handle: h.never()}), method, "/orders/42")
			if h.log.count("it has no key") != 1 || h.log.count(`route="`+method+` /orders/`) == 1 != has || h.log.count(method) == 1 != has {
				h.Errorf("%s: %s", method, h.log.text())
			}
		}
	}},
	{"an Idempotency-Key that is used for another request: a line with the key's name", func(h *harness) {
		server := h.shop(&guard.Idempotency{}, paid)
		server.order("s3cret", "a")
		h.wantDraft(server.order("s3cret", "b"), http.StatusUnprocessableEntity, alreadyUsed)
		line := `msg="latchkey: a request was refused because another one was sent with the same key" key=idempotent:`
		rest := ` route="POST /orders" part=Idempotency-Key compared="method, host, path, query, Content-Type, body"`
		if h.log.count(line) != 1 || h.log.count(rest) != 1 || h.log.count("s3cret") > 0 {
			h.Errorf("the log is %s", h.log.text())
		}
	}},
}
