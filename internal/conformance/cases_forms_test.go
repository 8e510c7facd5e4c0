package conformance_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// reports are routes to read and to rebuild a report, with one guard.
func (h *harness) reports(cfg *config, read, rebuild http.HandlerFunc) http.Handler {
	guard := []guarding{{config: cfg}}
	var routes []route
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "TRACE"} {
		routes = append(routes, route{method: method, pattern: "/reports/{id}", guards: guard, handle: read})
	}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "PROPFIND"} {
		routes = append(routes, route{method: method, pattern: "/reports/{id}", guards: guard, handle: rebuild})
	}
	return h.build(routes...)
}

var sharedCases = []conformanceCase{
	{"Shared requests go together, and each of the others goes alone", func(h *harness) {
		var readers, writers, all overlap
		both := func(o *overlap) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				o.enter()
				defer o.leave()
				all.slow(time.Second)(w, r)
			}
		}
		server := h.reports(&config{param: "id", safe: true, options: []core.Option{core.Wait(time.Minute)}}, both(&readers), both(&writers))
		var crowd sync.WaitGroup
		for i := range 12 {
			crowd.Go(func() {
				h.wantStatus(send(server, []string{"GET", "GET", "POST"}[i%3], "/reports/7"), http.StatusOK)
			})
		}
		crowd.Wait()
		if readers.max < 2 || readers.runs != 8 {
			h.Errorf("%d of %d readers went together", readers.max, readers.runs)
		}
		if writers.max != 1 || all.max != readers.max {
			h.Errorf("%d of the others at once, %d of all beside %d readers", writers.max, all.max, readers.max)
		}
	}},
	{"SafeMethods are GET, HEAD, OPTIONS and TRACE", func(h *harness) {
		reader := h.hold("id=7", core.Shared())
		defer h.unlock(reader)
		server := h.reports(&config{param: "id", safe: true, options: []core.Option{core.NoWait()}}, ok, ok)
		for method, want := range map[string]int{
			"GET": 200, "HEAD": 200, "OPTIONS": 200, "TRACE": 200,
			"POST": 409, "PUT": 409, "PATCH": 409, "DELETE": 409, "PROPFIND": 409,
		} {
			h.wantStatus(send(server, method, "/reports/7"), want)
		}
	}},
	{"a shared request that is refused is answered 409", func(h *harness) {
		defer h.unlock(h.hold("id=7"))
		server := h.reports(&config{param: "id", safe: true, options: []core.Option{core.NoWait()}}, h.never(), h.never())
		h.wantProblem(send(server, "GET", "/reports/7"), http.StatusConflict)
	}},
	{"Shared, as an option, is for all requests", func(h *harness) {
		var o overlap
		server := h.build(post("/reports/{id}", byParam("id", core.Shared()), o.slow(time.Second)))
		h.sendAll(server, 3, func(int) string { return "/reports/7" }, http.StatusOK)
		if o.max != 3 {
			h.Errorf("%d at once", o.max)
		}
	}},
	{"a guard that wants alone what one outside shares: 500, with the fix in the log only", func(h *harness) {
		var causes []error
		onRefused := func(w http.ResponseWriter, _ *http.Request, err error) { causes = append(causes, err) }
		for _, answer := range []refusing{nil, onRefused} {
			h.log.reset()
			inner := guarding{config: &config{param: "id", failOpen: true, onRefused: answer, status: http.StatusTeapot}}
			outer := guarding{config: &config{param: "id", safe: true}}
			server := h.build(route{method: "GET", pattern: "/reports/{id}", guards: []guarding{outer, inner}, handle: h.never()})
			w := send(server, "GET", "/reports/s3cret")
			h.wantStatus(w, http.StatusInternalServerError)
			if answer == nil {
				h.wantProblem(w, http.StatusInternalServerError, "s3cret", "owner", "shared", "guard", "form")
			}
			if h.log.count("misconfigured") != 1 || h.log.count("let the outer one have the lock alone") != 1 || h.log.count("/reports/") != 1 || h.log.count("s3cret") > 0 {
				h.Error("the log does not say what to do about it, or tells of the key")
			}
		}
		for _, err := range causes {
			if code, text := h.framework.reasonOf(err); code != "internal" || text != err.Error() || !errors.Is(err, core.ErrUpgrade) {
				h.Errorf("%v: %q, %q", err, code, text)
			}
		}
		if len(causes) != 1 || !h.isFree("id=s3cret") {
			h.Errorf("%d refusals; the lock may be held", len(causes))
		}
	}},
	{"a default of the Locker that cannot be combined with Shared: 500, never unlocked", func(h *harness) {
		locker := h.lockerWith(core.KeepFor(time.Minute))
		server := h.reports(&config{locker: locker, param: "id", safe: true, failOpen: true}, h.never(), ok)
		h.wantProblem(send(server, "GET", "/reports/7"), http.StatusInternalServerError)
		if h.log.count("KeepFor") != 1 {
			h.Error("the log does not say why")
		}
		h.wantStatus(send(server, "POST", "/reports/8"), http.StatusOK)
	}},
}

// ofHeader is for Config.Permits, and for Config.Weight.
func ofHeader(r *http.Request) int {
	n, _ := strconv.Atoi(r.Header.Get("X-Permits"))
	return n
}

var permitCases = []conformanceCase{
	{"as many go at once as there are permits, and each of the others gets one in time", func(h *harness) {
		var o overlap
		server := h.build(post("/exports/{tenant}", byParam("tenant", core.Permits(3), core.Wait(time.Minute)), o.slow(time.Second)))
		began := time.Now()
		h.sendAll(server, 9, func(int) string { return "/exports/acme" }, http.StatusOK)
		if took := time.Since(began); o.max != 3 || took > 4*time.Second {
			h.Errorf("%d at once, %v", o.max, took)
		}
	}},
	{"Permits says for each request how many there are", func(h *harness) {
		server := h.build(post("/exports/{tenant}", []guarding{{config: &config{param: "tenant", permits: ofHeader, options: []core.Option{core.NoWait()}}}}, ok))
		first, second := h.hold("tenant=acme", core.Permits(9)), h.hold("tenant=acme", core.Permits(9))
		h.wantStatus(send(server, "POST", "/exports/acme", "X-Permits", "3"), http.StatusOK)
		h.wantProblem(send(server, "POST", "/exports/acme", "X-Permits", "2"), http.StatusTooManyRequests)
		h.unlock(second)
		h.wantStatus(send(server, "POST", "/exports/acme", "X-Permits", "2"), http.StatusOK)
		h.unlock(first)
	}},
	{"no permit: 429 with Retry-After, whoever is in the way and whatever ended the wait", func(h *harness) {
		for name, holder := range map[string][]core.Option{"a permit": {core.Permits(1)}, "somebody alone": nil, "a reader": {core.Shared()}} {
			k := h.hold("tenant=acme", holder...)
			for _, opt := range []core.Option{core.NoWait(), core.Wait(time.Second), core.Wait(time.Hour)} {
				server := h.build(post("/exports/{tenant}", byParam("tenant", core.Permits(1), opt), h.never()))
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				w := sendWith(ctx, server, "POST", "/exports/acme")
				cancel()
				h.wantProblem(w, http.StatusTooManyRequests, "acme")
				if !strings.Contains(w.Body.String(), `"Too many requests for the same resource are being processed."`) {
					h.Errorf("%s: %s", name, w.Body)
				}
			}
			server := h.build(post("/exports/{tenant}", byParam("tenant", core.NoWait()), h.never()))
			h.wantProblem(send(server, "POST", "/exports/acme"), http.StatusConflict)
			h.unlock(k)
		}
	}},
	{"no permit: as Status, OnRefused, StatusOf and ReasonOf have it", func(h *harness) {
		defer h.unlock(h.hold("tenant=acme", core.Permits(2)))
		_, own := h.locker.TryLock(context.Background(), "tenant=acme", core.Permits(1))
		for want, status := range map[int]int{http.StatusTooManyRequests: 0, http.StatusServiceUnavailable: http.StatusServiceUnavailable} {
			refusals := 0
			cfg := &config{param: "tenant", status: status, options: []core.Option{core.NoWait(), core.Permits(1)}}
			cfg.onRefused = func(_ http.ResponseWriter, _ *http.Request, err error) {
				refusals++
				if got, after := h.framework.statusOf(err); got != want || after != time.Second || !errors.Is(err, core.ErrNoPermit) {
					h.Errorf("%d, %v of %v; want %d", got, after, err, want)
				}
			}
			w := send(h.build(post("/exports/{tenant}", []guarding{{config: cfg}}, h.never())), "POST", "/exports/acme")
			if w.Code != want || w.Header().Get("Retry-After") != "1" || refusals != 1 {
				h.Errorf("status %d, Retry-After %q, %d refusals", w.Code, w.Header().Get("Retry-After"), refusals)
			}
		}
		if status, _ := h.framework.statusOf(own); status != http.StatusTooManyRequests {
			h.Errorf("%d of %v", status, own)
		}
		if code, text := h.framework.reasonOf(own); code != "too_many" || text != "Too many requests for the same resource are being processed." {
			h.Errorf("%q, %q of %v", code, text, own)
		}
	}},
	{"a bad number of permits: 500 with the number in the log, never unlocked", func(h *harness) {
		cfg := &config{param: "tenant", permits: ofHeader, failOpen: true}
		for _, n := range []string{"0", "-1", "10001"} {
			h.log.reset()
			server := h.build(post("/exports/{tenant}", []guarding{{config: cfg}}, h.never()))
			h.wantProblem(send(server, "POST", "/exports/acme", "X-Permits", n), http.StatusInternalServerError)
			if h.log.count("Permits("+n+")") != 1 {
				h.Errorf("the log does not tell about %s", n)
			}
		}
	}},
	{"Weight says for each request how many of the permits it takes", func(h *harness) {
		size := func(r *http.Request) int { n, _ := strconv.Atoi(r.URL.Query().Get("size")); return n }
		for name, cfg := range map[string]*config{
			"of an option": {param: "tenant", weight: size, failOpen: true, options: []core.Option{core.NoWait(), core.Permits(5)}},
			"of each":      {param: "tenant", weight: size, failOpen: true, permits: func(*http.Request) int { return 5 }, options: []core.Option{core.NoWait()}},
		} {
			ran := 0
			server := h.build(post("/exports/{tenant}", []guarding{{config: cfg}}, func(http.ResponseWriter, *http.Request) { ran++ }))
			k := h.hold("tenant=acme", core.Permits(5), core.Weight(3))
			h.wantStatus(send(server, "POST", "/exports/acme?size=2"), http.StatusOK)
			h.wantProblem(send(server, "POST", "/exports/acme?size=3"), http.StatusTooManyRequests)
			h.unlock(k)
			h.wantStatus(send(server, "POST", "/exports/acme?size=5"), http.StatusOK)
			for _, size := range []string{"0", "6"} {
				h.log.reset()
				server := h.build(post("/exports/{tenant}", []guarding{{config: cfg}}, h.never()))
				h.wantProblem(send(server, "POST", "/exports/acme?size="+size), http.StatusInternalServerError)
				if h.log.count("Weight") != 1 {
					h.Errorf("%s: the log does not tell about %s", name, size)
				}
			}
			if ran != 2 {
				h.Errorf("%s: %d have run", name, ran)
			}
		}
	}},
	{"PermitsEach has a limit for each tenant below one for all", func(h *harness) {
		keys := func(r keyfunc.Request) ([]string, error) {
			tenant, err := keyfunc.Param("tenant")(r)
			return []string{tenant, "all"}, err
		}
		server := h.build(post("/exports/{tenant}", []guarding{{config: &config{keys: keys, options: []core.Option{core.PermitsEach(1, 2), core.NoWait()}}}}, ok))
		k := h.hold("tenant=acme", core.Permits(1))
		h.wantProblem(send(server, "POST", "/exports/acme"), http.StatusTooManyRequests)
		h.wantStatus(send(server, "POST", "/exports/other"), http.StatusOK)
		all := h.hold("all", core.Permits(2), core.Weight(2))
		h.wantProblem(send(server, "POST", "/exports/other"), http.StatusTooManyRequests)
		h.unlock(k)
		h.unlock(all)
		h.wantStatus(send(server, "POST", "/exports/acme"), http.StatusOK)
		one := h.build(post("/exports/{tenant}", byParam("tenant", core.PermitsEach(1, 2)), h.never()))
		h.wantProblem(send(one, "POST", "/exports/acme"), http.StatusInternalServerError)
	}},
	{"a request inside of another needs no permit of its own", func(h *harness) {
		guard := guarding{config: &config{key: keyfunc.Param("tenant"), permits: func(*http.Request) int { return 1 }}}
		server := h.build(post("/exports/{tenant}", []guarding{guard, guard}, ok))
		h.wantStatus(send(server, "POST", "/exports/acme"), http.StatusOK)
	}},
	{"a client that leaves while it waits for a permit takes none", func(h *harness) {
		k := h.hold("tenant=acme", core.Permits(1))
		server := h.build(post("/exports/{tenant}", byParam("tenant", core.Permits(1), core.Wait(time.Hour)), h.never()))
		ctx, cancel := context.WithCancel(context.Background())
		answer := make(chan *httptest.ResponseRecorder)
		go func() { answer <- sendWith(ctx, server, "POST", "/exports/acme") }()
		synctest.Wait()
		cancel()
		h.wantStatus(<-answer, 499)
		h.unlock(k)
		time.Sleep(time.Second) // its place in the queue is given up in the background
		if !h.isFree("tenant=acme") {
			h.Error("somebody has the permit")
		}
	}},
}
