package conformance_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	echo4 "github.com/labstack/echo/v4"
	echo5 "github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/core"
)

var keepforCases = []conformanceCase{
	{"KeepFor: a repeated request never runs, however shortly before the end of the window it comes; one with Wait does", func(h *harness) {
		for want, options := range map[int32][]core.Option{1: nil, 2: {core.Wait(3 * time.Second)}} {
			var runs atomic.Int32
			work := func(http.ResponseWriter, *http.Request) { time.Sleep(2 * time.Second); runs.Add(1) }
			server := h.build(post("/orders/{orderID}", byParam("orderID", append(options, core.KeepFor(10*time.Second))...), work))
			var clicks sync.WaitGroup
			for _, after := range []time.Duration{0, 100, 200, 3000, 8000, 9000, 9990} {
				clicks.Go(func() {
					time.Sleep(after * time.Millisecond)
					began := time.Now()
					w := send(server, "POST", fmt.Sprint("/orders/", want))
					if took := time.Since(began); want == 1 && after > 2000 && (w.Code != http.StatusConflict || took > 0) {
						h.Errorf("a click in the window, after %d ms, was answered with %d after %v", after, w.Code, took)
					}
				})
			}
			clicks.Wait()
			if runs.Load() != want {
				h.Errorf("%d runs, want %d", runs.Load(), want)
			}
		}
	}},
	{"KeepFor: 409 after a success, Retry-After is the rest of the window, rounded up", func(h *harness) {
		var o overlap
		server := h.build(post("/orders/{orderID}", byParam("orderID", core.KeepFor(time.Minute), core.NoWait()), o.slow(10500*time.Millisecond)))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
		w := send(server, "POST", "/orders/42")
		h.wantProblem(w, http.StatusConflict)
		if got := w.Header().Get("Retry-After"); got != "50" {
			h.Errorf("Retry-After %q, want 50", got)
		}
		time.Sleep(51 * time.Second)
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
	}},
	{"KeepFor: a status of 400 or more frees the key at once", func(h *harness) {
		server := h.build(post("/orders/{orderID}", byParam("orderID", core.KeepFor(time.Minute)), status(http.StatusBadRequest)))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusBadRequest)
		if !h.isFree("orderID=42") {
			h.Error("the key is still taken")
		}
	}},
	{"KeepFor: a handler that calls DropWindow frees the key, although it answers 200", func(h *harness) {
		server := h.build(post("/orders/{orderID}", byParam("orderID", core.KeepFor(time.Minute)), func(w http.ResponseWriter, r *http.Request) {
			lock, _ := core.FromContext(r.Context())
			lock.DropWindow()
			ok(w, r)
		}))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
		if !h.isFree("orderID=42") {
			h.Error("the key is still taken")
		}
	}},
	{"KeepFor: an error of the handler frees the key at once", func(h *harness) {
		failing := post("/orders/{orderID}", byParam("orderID", core.KeepFor(time.Minute)), nil)
		failing.work = func(http.ResponseWriter, *http.Request) error { return errors.New("no") }
		send(h.build(failing), "POST", "/orders/42")
		if h.framework.hasErrors && !h.isFree("orderID=42") {
			h.Error("the key is still taken")
		}
	}},
	{"KeepFor: a panic frees the key at once", func(h *harness) {
		server := h.build(post("/orders/{orderID}", byParam("orderID", core.KeepFor(time.Minute)), func(http.ResponseWriter, *http.Request) { panic("boom") }))
		h.panics(func() { send(server, "POST", "/orders/42") })
		if !h.isFree("orderID=42") {
			h.Error("the key is still taken")
		}
	}},
	{"KeepFor: an answer without WriteHeader is a success", func(h *harness) {
		server := h.build(post("/orders/{orderID}", byParam("orderID", core.KeepFor(time.Minute)), func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "paid")
		}))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusOK)
		h.wantWindow("orderID=42", true)
	}},
	{"KeepFor: a redirect is a success", func(h *harness) {
		server := h.build(post("/orders/{orderID}", byParam("orderID", core.KeepFor(time.Minute)), status(http.StatusSeeOther)))
		h.wantStatus(send(server, "POST", "/orders/42"), http.StatusSeeOther)
		h.wantWindow("orderID=42", true)
	}},
	{"KeepFor: what counts is the status that the client has got", func(h *harness) {
		for name, first := range map[string]func(w http.ResponseWriter){
			"written":   func(w http.ResponseWriter) { _, _ = io.WriteString(w, "paid") },
			"read from": func(w http.ResponseWriter) { _, _ = io.Copy(w, strings.NewReader("paid")) },
		} {
			server := h.build(post("/{id}", byParam("id", core.KeepFor(time.Minute)), func(w http.ResponseWriter, _ *http.Request) {
				first(w)
				w.WriteHeader(http.StatusInternalServerError) // too late
			}))
			key := strings.ReplaceAll(name, " ", "")
			h.wantStatus(send(server, "POST", "/"+key), http.StatusOK)
			h.wantWindow("id="+key, true)
		}
	}},
	{"KeepFor: an informational status is not the answer", func(h *harness) {
		for final, want := range map[int]bool{http.StatusOK: true, http.StatusBadRequest: false} {
			server := h.build(post("/{id}", byParam("id", core.KeepFor(time.Minute)), func(w http.ResponseWriter, _ *http.Request) {
				inform(w)
				w.WriteHeader(final)
			}))
			send(server, "POST", fmt.Sprintf("/%d", final)) // the recorder keeps the first status
			h.wantWindow(fmt.Sprintf("id=%d", final), want)
		}
	}},
}

// inform sends 103. The writers of the echos take any status for the answer, so it
// has to be sent behind their backs.
func inform(w http.ResponseWriter) {
	if r, ok := w.(*echo4.Response); ok {
		w = r.Writer
	} else if r, err := echo5.UnwrapResponse(w); err == nil {
		w = r.ResponseWriter
	}
	w.WriteHeader(http.StatusEarlyHints)
}

func (h *harness) wantWindow(key string, want bool) {
	h.Helper()
	if got := !h.isFree(key); got != want {
		h.Errorf("%s: a dedup window is there: %v, want %v", key, got, want)
	}
}
