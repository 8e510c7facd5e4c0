package conformance_test

import (
	"net/http"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// slowRelease is an Observer that holds up whoever has released a lock.
func slowRelease(e core.Event) {
	if e.Kind == core.EventReleased {
		time.Sleep(time.Second)
	}
}

var backgroundCases = []conformanceCase{
	{"with BackgroundRelease the answer does not wait for the release", func(h *harness) {
		own, all := h.lockerWith(core.Observe(forEvents(slowRelease))), h.lockerWith(core.Observe(forEvents(slowRelease)), core.BackgroundRelease())
		background := core.BackgroundRelease()
		for _, c := range []struct {
			what   string
			locker *core.Locker
			status int
			opts   []core.Option
			took   time.Duration
		}{
			{"without it", own, http.StatusOK, nil, time.Second},
			{"option of the middleware", own, http.StatusOK, []core.Option{background}, 0},
			{"a failure", own, http.StatusInternalServerError, []core.Option{background}, 0},
			{"option of New", all, http.StatusOK, nil, 0},
			{"NoWait", all, http.StatusOK, []core.Option{core.NoWait()}, time.Second},
			{"KeepFor", all, http.StatusInternalServerError, []core.Option{core.KeepFor(time.Hour)}, time.Second},
		} {
			core.SetDefault(c.locker)
			server := h.build(post("/orders/{orderID}", byParam("orderID", c.opts...), status(c.status)))
			started := time.Now()
			h.wantStatus(send(server, "POST", "/orders/42"), c.status)
			if took := time.Since(started); took != c.took {
				h.Errorf("%s: answered after %v, want %v", c.what, took, c.took)
			}
			time.Sleep(2 * time.Second)
			if info, err := c.locker.Inspect(h.Context(), "orderID=42"); err != nil || info.Locked {
				h.Errorf("%s: not released: %+v, %v", c.what, info, err)
			}
		}
	}},
	{"with BackgroundRelease and several keys the answer does not wait either", func(h *harness) {
		core.SetDefault(h.lockerWith(core.Observe(forEvents(slowRelease)), core.BackgroundRelease()))
		server := h.build(post("/from/{from}/to/{to}", byAll(keyfunc.All("account", keyfunc.Param("from"), keyfunc.Param("to"))), ok))
		started := time.Now()
		h.wantStatus(send(server, "POST", "/from/1/to/2"), http.StatusOK)
		if took := time.Since(started); took != 0 {
			h.Errorf("answered after %v", took)
		}
		time.Sleep(3 * time.Second)
	}},
	{"a handler that panics need not wait for its BackgroundRelease", func(h *harness) {
		core.SetDefault(h.lockerWith(core.Observe(forEvents(slowRelease))))
		server := h.build(post("/orders/{orderID}", byParam("orderID", core.BackgroundRelease()), func(http.ResponseWriter, *http.Request) { panic("boom") }))
		started := time.Now()
		h.panics(func() { send(server, "POST", "/orders/42") })
		if took := time.Since(started); took != 0 {
			h.Errorf("it went on after %v", took)
		}
		time.Sleep(2 * time.Second)
	}},
}
