package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// handsOver is a handler that parks the lock of its request, and answers with that status and
// the text of why its context has ended.
func (h *harness) handsOver(ticket *string, status *int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		lock, held := core.FromContext(r.Context())
		if !held {
			h.Error("the handler has no lock")
			return
		}
		var err error
		if *ticket, err = lock.Handover(r.Context(), time.Hour); err != nil {
			h.Error(err)
		}
		cause := context.Cause(r.Context())
		if !errors.Is(cause, core.ErrHandedOver) {
			h.Errorf("cause %v", cause)
		}
		w.WriteHeader(*status)
		_, _ = fmt.Fprint(w, cause)
	}
}

var handoverCases = []conformanceCase{
	{"a handler that hands its lock over answers as ever, and the lock is the job's", func(h *harness) {
		var ticket string
		var status int
		server := h.build(post("/orders/{orderID}", byParam("orderID", core.NoWait()), h.handsOver(&ticket, &status)))
		for _, status = range []int{http.StatusAccepted, http.StatusBadRequest, http.StatusInternalServerError} {
			w := send(server, "POST", "/orders/s3cret")
			h.wantStatus(w, status)
			if body := w.Body.String(); !strings.Contains(body, "handed over") || strings.Contains(body, "s3cret") || strings.Contains(body, ticket) {
				h.Errorf("answered %q", body)
			}
			time.Sleep(30 * time.Minute)
			h.wantProblem(send(server, "POST", "/orders/s3cret"), http.StatusConflict, "s3cret", "handed", "job")
			job, err := h.locker.Resume(context.Background(), "orderID=s3cret", ticket)
			if err != nil {
				h.Fatal(err)
			}
			h.wantProblem(send(server, "POST", "/orders/s3cret"), http.StatusConflict)
			h.unlock(job)
		}
		if n := h.log.count("lost"); n > 0 {
			h.Errorf("%d losses in the log", n)
		}
	}},
	{"a handler that panics after it has handed its lock over: the lock is the job's", func(h *harness) {
		var ticket string
		status := http.StatusAccepted
		handsOver := h.handsOver(&ticket, &status)
		server := h.build(post("/orders/{orderID}", byParam("orderID"), func(w http.ResponseWriter, r *http.Request) {
			handsOver(w, r)
			panic("boom")
		}))
		if got := h.panics(func() { send(server, "POST", "/orders/42") }); got != "boom" {
			h.Errorf("panicked with %v", got)
		}
		if h.isFree("orderID=42") {
			h.Error("the lock was released")
		}
		job, err := h.locker.Resume(context.Background(), "orderID=42", ticket)
		if err != nil {
			h.Fatal(err)
		}
		h.unlock(job)
	}},
	{"a request that waits for a lock that is handed over has it when the job is done", func(h *harness) {
		var ticket string
		status := http.StatusAccepted
		server := h.build(
			post("/orders/{orderID}/pay", byParam("orderID"), h.handsOver(&ticket, &status)),
			post("/orders/{orderID}/cancel", byParam("orderID", core.Wait(time.Minute)), ok),
		)
		h.wantStatus(send(server, "POST", "/orders/42/pay"), http.StatusAccepted)
		job, err := h.locker.Resume(context.Background(), "orderID=42", ticket)
		if err != nil {
			h.Fatal(err)
		}
		time.AfterFunc(20*time.Second, func() { h.unlock(job) })
		began := time.Now()
		h.wantStatus(send(server, "POST", "/orders/42/cancel"), http.StatusOK)
		if took := time.Since(began); took < 20*time.Second || took > 22*time.Second {
			h.Errorf("after %v", took)
		}
	}},
	{"the body can be read after the lock was handed over", func(h *harness) {
		var ticket string
		status := http.StatusAccepted
		handsOver := h.handsOver(&ticket, &status)
		server := h.build(post("/orders/{orderID}", byParam("orderID"), func(w http.ResponseWriter, r *http.Request) {
			handsOver(w, r)
			if body, err := io.ReadAll(r.Body); err != nil || string(body) != "all of it" {
				h.Errorf("read %q, %v", body, err)
			}
		}))
		h.wantStatus(sendBody(context.Background(), server, "POST", "/orders/42", strings.NewReader("all of it")), http.StatusAccepted)
	}},
}
