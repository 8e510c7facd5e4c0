package conformance_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
)

var configCases = []conformanceCase{
	{"Skip lets a request through without a lock", func(h *harness) {
		defer h.unlock(h.hold("orderID=42"))
		cfg := &config{key: keyfunc.Param("orderID"), options: []core.Option{core.NoWait()}, skip: func(r *http.Request) bool {
			return r.Header.Get("X-Skip") != ""
		}}
		server := h.build(post("/orders/{orderID}", []guarding{{config: cfg}}, ok))
		h.wantStatus(send(server, "POST", "/orders/42", "X-Skip", "1"), http.StatusOK)
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusConflict)
	}},
	{"Locker, as an option, takes the locks in place of the default one", func(h *harness) {
		own := h.lockerWith()
		server := h.build(post("/orders/{orderID}", byParam("orderID", h.framework.locker(own), core.NoWait()), ok))
		defer h.unlock(h.hold("orderID=42"))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
		defer h.unlock(h.holdOn(own, "orderID=43"))
		h.wantStatus(send(server, "POST", "/orders/43"), http.StatusConflict)
	}},
	{"options of a middleware are refused elsewhere, with a text that says where they belong", func(h *harness) {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
		defer client.Close()
		for name, option := range map[string]core.Option{
			"Locker": h.framework.locker(h.locker), "Strict": h.framework.strict(), "BufferBody": h.framework.bufferBody(1),
			"FailOpen": h.framework.failOpen(), "Status": h.framework.status(418),
		} {
			_, lockErr := h.locker.Lock(context.Background(), "k", option)
			_, newErr := core.New(client, option)
			for _, err := range []error{lockErr, newErr} {
				if err == nil || !strings.Contains(err.Error(), name+" is an option of HTTP middleware") {
					h.Errorf("%s: %v", name, err)
				}
			}
		}
	}},
	{"OnRefused answers instead, and sees the cause", func(h *harness) {
		defer h.unlock(h.hold("orderID=42"))
		cfg := &config{key: keyfunc.Param("orderID"), options: []core.Option{core.NoWait()}, onRefused: func(w http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, core.ErrNotAcquired) {
				h.Errorf("error %v", err)
			}
			w.WriteHeader(http.StatusTeapot)
		}}
		server := h.build(post("/orders/{orderID}", []guarding{{config: cfg}}, h.never()))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusTeapot)
	}},
	{"Status answers a busy lock in place of 409", func(h *harness) {
		defer h.unlock(h.hold("orderID=42"))
		cfg := &config{key: keyfunc.Param("orderID"), options: []core.Option{core.NoWait()}, status: http.StatusTooManyRequests}
		server := h.build(post("/orders/{orderID}", []guarding{{config: cfg}}, h.never()))
		w := send(server, "POST", "/orders/42")
		h.wantStatus(w, http.StatusTooManyRequests)
		if w.Header().Get("Retry-After") == "" {
			h.Error("no Retry-After")
		}
	}},
	{"bad set-up panics with a sentence that names the package", func(h *harness) {
		for name, g := range map[string]guarding{
			"empty parameter":  {},
			"nil key":          {config: &config{}},
			"bad option":       {param: "orderID", options: []core.Option{core.Lease(-1)}},
			"shared owner":     {param: "orderID", options: []core.Option{core.Owner("me")}},
			"option of New":    {param: "orderID", options: []core.Option{core.Prefix("x")}},
			"key and param":    {config: &config{key: keyfunc.Param("x"), param: "x"}},
			"key and keys":     {config: &config{key: keyfunc.Param("x"), keys: keyfunc.All("x", keyfunc.Param("x"))}},
			"keys and param":   {config: &config{keys: keyfunc.All("x", keyfunc.Param("x")), param: "x"}},
			"Strict by a key":  {config: &config{key: keyfunc.Param("x"), strict: true}},
			"Strict in By":     {key: keyfunc.Param("x"), options: []core.Option{h.framework.strict()}},
			"other's option":   {param: "orderID", options: []core.Option{adapter.Option("for another")}},
			"no Locker":        {param: "orderID", options: []core.Option{h.framework.locker(nil)}},
			"no error status":  {config: &config{key: keyfunc.Param("x"), status: 200}},
			"Shared, KeepFor":  {config: &config{param: "x", safe: true, options: []core.Option{core.KeepFor(1e9)}}},
			"Permits, KeepFor": {config: &config{param: "x", permits: ofHeader, options: []core.Option{core.KeepFor(1e9)}}},
			"Shared twice":     {config: &config{param: "x", safe: true, options: []core.Option{core.Shared()}}},
			"Permits twice":    {config: &config{param: "x", permits: ofHeader, options: []core.Option{core.Permits(2)}}},
			"two forms":        {config: &config{param: "x", safe: true, permits: ofHeader}},
			"no permits":       {config: &config{param: "x", weight: ofHeader}},
			"shared, weighing": {config: &config{param: "x", safe: true, weight: ofHeader}},
			"weighing twice":   {config: &config{param: "x", weight: ofHeader, options: []core.Option{core.Permits(3), core.Weight(2)}}},
			"no effect":        {param: "orderID", options: []core.Option{core.BackgroundRelease(), core.NoWait()}},
			"none in a window": {param: "orderID", options: []core.Option{core.BackgroundRelease(), core.KeepFor(1e9)}},
			"none, idempotent": idempotent(keyfunc.Value("user"), core.BackgroundRelease())[0],
			"no permit":        {param: "orderID", options: []core.Option{core.Permits(0)}},
			"options with it":  {param: "orderID", options: []core.Option{core.Shared(), core.KeepFor(1e9)}},
			"bad template":     {template: "order:{param.orderID"},
			"unknown source":   {template: "order:{path.orderID}"},
		} {
			got, _ := h.panics(func() { h.build(post("/orders/{orderID}", []guarding{g}, ok)) }).(string)
			if strings.Contains(got, "core: ") || !strings.HasPrefix(got, h.framework.adapter+": ") && !strings.HasPrefix(got, "keyfunc: ") {
				h.Errorf("%s: panics with %q", name, got)
			}
		}
	}},
	{"OnRefused can read the body, which the key function has read", func(h *harness) {
		const body = `{"id":1,"ID":2}`
		var read []byte
		cfg := &config{key: keyfunc.JSON("id"), onRefused: func(w http.ResponseWriter, r *http.Request, _ error) {
			read, _ = io.ReadAll(r.Body)
			w.WriteHeader(http.StatusTeapot)
		}}
		server := h.build(post("/", []guarding{{config: cfg}}, h.never()))
		h.wantStatus(sendBody(context.Background(), server, "POST", "/", strings.NewReader(body)), http.StatusTeapot)
		if string(read) != body {
			h.Errorf("read %q", read)
		}
	}},
}
