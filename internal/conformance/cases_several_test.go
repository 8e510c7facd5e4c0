package conformance_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

var accounts = keyfunc.All("account", keyfunc.Param("from"), keyfunc.JSON("to"))

// wantTaken fails the test when one of the keys is free.
func (h *harness) wantTaken(keys ...string) {
	for _, key := range keys {
		if h.isFree(key) {
			h.Errorf("%s is free", key)
		}
	}
}

var severalCases = []conformanceCase{
	{"transfers that cross one another: one at a time for each account, and nobody is refused", func(h *harness) {
		var mu sync.Mutex
		balance := [4]int{100, 100, 100, 100}
		var busy [4]bool
		server := h.build(post("/transfer/{from}/{to}", byAll(keyfunc.All("account", keyfunc.Param("from"), keyfunc.Param("to"))), func(w http.ResponseWriter, r *http.Request) {
			var from, to int
			_, _ = fmt.Sscanf(r.URL.Path, "/transfer/%d/%d", &from, &to)
			use := func(in bool) {
				mu.Lock()
				defer mu.Unlock()
				for _, account := range []int{from, to} {
					if busy[account] == in {
						h.Errorf("somebody else is at work on account %d", account)
					}
					busy[account] = in
				}
			}
			use(true)
			x, y := balance[from], balance[to]
			time.Sleep(10 * time.Millisecond)
			balance[from], balance[to] = x-1, y+1
			use(false)
			w.WriteHeader(http.StatusOK)
		}))
		h.sendAll(server, 40, func(i int) string { return fmt.Sprintf("/transfer/%d/%d", i%4, (i+1+i%3)%4) }, http.StatusOK)
		if sum := balance[0] + balance[1] + balance[2] + balance[3]; sum != 400 {
			h.Errorf("the accounts have %d in all", sum)
		}
		for account := range balance {
			if !h.isFree(fmt.Sprint("account=", account)) {
				h.Errorf("account %d is still locked", account)
			}
		}
	}},
	{"the keys are those of a lock by one of them", func(h *harness) {
		server := h.build(post("/transfer/{from}", byAll(accounts), func(w http.ResponseWriter, r *http.Request) {
			h.wantTaken("account=1", "account=2")
			ok(w, r)
		}))
		h.wantStatus(sendJSON(server, "/transfer/1", strings.NewReader(`{"to":2}`)), http.StatusOK)
	}},
	{"any of them busy: 409, and the others are free", func(h *harness) {
		defer h.unlock(h.hold("account=2"))
		server := h.build(post("/transfer/{from}", byAll(accounts, core.NoWait()), h.never()))
		h.wantProblem(sendJSON(server, "/transfer/1", strings.NewReader(`{"to":2}`)), http.StatusConflict)
		if !h.isFree("account=1") {
			h.Error("account 1 is locked")
		}
	}},
	{"they wait 3 s in all", func(h *harness) {
		first, second := h.hold("account=1"), h.hold("account=2")
		defer h.unlock(second)
		server := h.build(post("/transfer/{from}", byAll(accounts), h.never()))
		time.AfterFunc(2*time.Second, func() { h.unlock(first) })
		began := time.Now()
		h.wantProblem(sendJSON(server, "/transfer/1", strings.NewReader(`{"to":2}`)), http.StatusConflict)
		if took := time.Since(began); took < 3*time.Second || took > 3100*time.Millisecond {
			h.Errorf("it took %v", took)
		}
	}},
	{"each item of an order, and none of them twice", func(h *harness) {
		server := h.build(post("/orders", byAll(keyfunc.JSONEach("sku", "items", "sku")), func(w http.ResponseWriter, r *http.Request) {
			h.wantTaken("sku=cup", "sku=tea")
			ok(w, r)
		}))
		h.wantStatus(sendJSON(server, "/orders", strings.NewReader(`{"items":[{"sku":"tea"},{"sku":"cup"},{"sku":"tea"}]}`)), http.StatusOK)
	}},
	{"no key, one that can be read in two ways, too many: 400, whatever the others are", func(h *harness) {
		byHand := func(n int) keyfunc.Set[keyfunc.Request] {
			return func(keyfunc.Request) ([]string, error) {
				var keys []string
				for i := range n {
					keys = append(keys, fmt.Sprint(i))
				}
				return keys, nil
			}
		}
		server := h.build(
			post("/transfer/{from}", byAll(accounts), h.never()),
			post("/orders", byAll(keyfunc.JSONEach("sku", "items", "sku")), h.never()),
			post("/none", byAll(byHand(0)), h.never()), post("/many", byAll(byHand(65)), h.never()))
		for path, body := range map[string]string{"/transfer/1": `{}`, "/transfer/2": `{"to":1,"TO":2}`, "/orders": `{"items":[]}`, "/none": `{}`, "/many": `{}`} {
			h.wantProblem(sendJSON(server, path, strings.NewReader(body)), http.StatusBadRequest)
		}
	}},
	{"a dedup window is of all of them, or none", func(h *harness) {
		server := h.build(post("/transfer/{from}", byAll(accounts, core.KeepFor(time.Minute), core.NoWait()), func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Fail") != "" {
				lock, _ := core.FromContext(r.Context())
				lock.DropWindow()
			}
			w.WriteHeader(http.StatusOK)
		}))
		transfer := func(path, body string, header ...string) int {
			return sendBody(h.Context(), server, "POST", path, strings.NewReader(body), append(header, "Content-Type", "application/json")...).Code
		}
		for _, step := range []struct {
			path, body string
			header     []string
			want       int
		}{
			{"/transfer/1", `{"to":2}`, []string{"X-Fail", "1"}, http.StatusOK},
			{"/transfer/1", `{"to":2}`, nil, http.StatusOK},
			{"/transfer/1", `{"to":3}`, nil, http.StatusConflict},
			{"/transfer/3", `{"to":2}`, nil, http.StatusConflict},
			{"/transfer/3", `{"to":4}`, nil, http.StatusOK},
		} {
			if got := transfer(step.path, step.body, step.header...); got != step.want {
				h.Errorf("%s %s: %d; want %d", step.path, step.body, got, step.want)
			}
		}
	}},
	{"a handler that has one of the locks enters it, and one that locks out of order is refused", func(h *harness) {
		var busy error
		server := h.build(post("/transfer/{from}", byAll(accounts), func(w http.ResponseWriter, r *http.Request) {
			if k, err := h.locker.TryLock(r.Context(), "account=1"); err == nil {
				h.unlock(k)
			} else {
				h.Error(err)
			}
			_, busy = h.locker.Lock(r.Context(), "account=0")
		}))
		defer h.unlock(h.hold("account=0"))
		began := time.Now()
		h.wantStatus(sendJSON(server, "/transfer/1", strings.NewReader(`{"to":2}`)), http.StatusOK)
		synctest.Wait()
		if busy == nil || time.Since(began) > time.Second || !strings.Contains(busy.Error(), "LockAll") {
			h.Errorf("%v after %v", busy, time.Since(began))
		}
	}},
}
