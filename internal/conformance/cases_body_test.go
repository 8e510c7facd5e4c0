package conformance_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// bodyCases are about clients that keep back what the handler needs.
var bodyCases = []conformanceCase{
	{"BufferBody: the lock is free while the client keeps its body back", func(h *harness) {
		const body = "everything that the handler needs"
		cfg := &config{param: "id", bufferBody: 1000, options: []core.Option{core.NoWait()}}
		server := h.build(post("/{id}", []guarding{{config: cfg}}, func(w http.ResponseWriter, r *http.Request) {
			h.wantsHeld("id=1")(w, r)
			if got, err := io.ReadAll(r.Body); string(got) != body || err != nil {
				h.Errorf("read %q, %v", got, err)
			}
		}))
		held, slow := heldBack(body[:10], body[10:])
		var sending sync.WaitGroup
		sending.Go(func() { h.wantStatus(sendBody(context.Background(), server, "POST", "/1", slow), http.StatusOK) })
		synctest.Wait()
		h.wantStatus(sendBody(context.Background(), server, "POST", "/1", strings.NewReader(body)), http.StatusOK)
		close(held)
		sending.Wait()
	}},
	{"a body of up to 64 KiB is read before the lock, as far as its length is known", func(h *harness) {
		const limit = 64 << 10
		for _, c := range []struct {
			length  int64
			buffer  int64
			waiting bool // for the rest of the body, not for the lock
		}{
			{limit, 0, true}, {limit + 1, 0, false}, {-1, 0, false}, {2, -1, false}, {-1, 10, true},
		} {
			for _, option := range []bool{false, true} {
				cfg := &config{param: "id", bufferBody: c.buffer, options: []core.Option{core.NoWait()}}
				guards := []guarding{{config: cfg}}
				if option {
					guards = byParam("id", core.NoWait(), h.framework.bufferBody(c.buffer))
				}
				server := h.build(post("/{id}", guards, ok))
				k := h.hold("id=1")
				r := httptest.NewRequest("POST", "/1", nil)
				held, body := heldBack("x", "x")
				r.Body, r.ContentLength = io.NopCloser(body), c.length
				w := httptest.NewRecorder()
				answered := false
				var sending sync.WaitGroup
				sending.Go(func() {
					server.ServeHTTP(w, r)
					answered = true
				})
				synctest.Wait()
				if answered == c.waiting {
					h.Errorf("%+v: answered %v", c, answered)
				}
				h.unlock(k)
				close(held)
				sending.Wait()
				h.wantStatus(w, map[bool]int{true: http.StatusOK, false: http.StatusConflict}[c.waiting])
			}
		}
	}},
	{"a body that turns out longer than it said reaches the handler, if no limit is set", func(h *harness) {
		sent := strings.Repeat("x", 100<<10)
		server := h.build(post("/{id}", byParam("id"), func(_ http.ResponseWriter, r *http.Request) {
			if got, err := io.ReadAll(r.Body); string(got) != sent || err != nil {
				h.Errorf("read %d bytes, %v", len(got), err)
			}
		}))
		r := httptest.NewRequest("POST", "/1", strings.NewReader(sent))
		r.ContentLength = 10 // as sent, before middleware has unzipped it
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		h.wantStatus(w, http.StatusOK)
	}},
	{"BufferBody: a body over the limit is 413, of known or unknown length", func(h *harness) {
		cfg := &config{param: "id", bufferBody: 10}
		server := h.build(post("/{id}", []guarding{{config: cfg}}, func(w http.ResponseWriter, r *http.Request) {
			if got, err := io.ReadAll(r.Body); len(got) != 10 || err != nil {
				h.Errorf("read %q, %v", got, err)
			}
		}))
		for _, unknown := range []bool{false, true} {
			for n, want := range map[int]int{10: http.StatusOK, 11: http.StatusRequestEntityTooLarge} {
				var body io.Reader = strings.NewReader(strings.Repeat("x", n))
				if unknown {
					body = io.MultiReader(body)
				}
				w := sendBody(context.Background(), server, "POST", "/1", body)
				if want == http.StatusOK {
					h.wantStatus(w, want)
				} else {
					h.wantProblem(w, want)
				}
			}
		}
		h.wantProblem(sendBody(context.Background(), http.MaxBytesHandler(server, 5), "POST", "/1", strings.NewReader("123456")),
			http.StatusRequestEntityTooLarge)
	}},
	{"BufferBody: a body that cannot be read is 400, and nothing runs", func(h *harness) {
		cfg := &config{param: "id", bufferBody: 10}
		server := h.build(post("/{id}", []guarding{{config: cfg}}, h.never()))
		broken := readerFunc(func([]byte) (int, error) { return 0, errors.New("secret") })
		h.wantProblem(sendBody(context.Background(), server, "POST", "/1", broken), http.StatusBadRequest, "secret")
	}},
	{"BufferBody: no body is no matter; a route without the parameter is not read", func(h *harness) {
		guards := []guarding{{config: &config{param: "id", bufferBody: 10}}}
		read := false
		server := h.build(
			post("/{id}/pay", guards, h.wantsHeld("id=1")),
			post("/health", guards, func(http.ResponseWriter, *http.Request) {
				if read {
					h.Error("the body was read")
				}
			}))
		h.wantStatus(send(server, "POST", "/1/pay"), http.StatusOK)
		h.wantStatus(sendBody(context.Background(), server, "POST", "/health", readerFunc(func([]byte) (int, error) {
			read = true
			return 0, io.EOF
		})), http.StatusOK)
	}},
	{"BufferBody: together with a key from the body", func(h *harness) {
		const body = `{"id":42}`
		cfg := &config{key: keyfunc.JSON("id"), bufferBody: 10}
		server := h.build(post("/", []guarding{{config: cfg}}, func(w http.ResponseWriter, r *http.Request) {
			if got, err := io.ReadAll(r.Body); string(got) != body || err != nil {
				h.Errorf("read %q, %v", got, err)
			}
		}))
		h.wantStatus(sendJSON(server, "/", strings.NewReader(body)), http.StatusOK)
		h.wantProblem(sendJSON(server, "/", strings.NewReader(body+"  ")), http.StatusRequestEntityTooLarge)
	}},
	{"MaxHold and a body that is kept back: the handler does not begin beside the next holder", func(h *harness) {
		var o overlap
		server := h.build(post("/{id}", byParam("id", core.MaxHold(time.Minute), core.Wait(time.Hour)), func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				if !errors.Is(err, core.ErrMaxHold) || strings.Contains(err.Error(), "id=1") {
					h.Errorf("the body ends with %v", err)
				}
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			o.enter()
			defer o.leave()
			time.Sleep(time.Second)
		}))
		held, slow := heldBack("half", "the other half")
		var first, second *httptest.ResponseRecorder
		var sending sync.WaitGroup
		sending.Go(func() { first = sendBody(context.Background(), server, "POST", "/1", slow) })
		synctest.Wait()
		sending.Go(func() { second = sendBody(context.Background(), server, "POST", "/1", strings.NewReader("x")) })
		for running := false; !running; { // until the lease of the first is over
			time.Sleep(time.Millisecond)
			o.mu.Lock()
			running = o.inside > 0
			o.mu.Unlock()
		}
		close(held)
		sending.Wait()
		h.wantStatus(second, http.StatusOK)
		h.wantStatus(first, http.StatusBadRequest)
		if o.runs != 1 || o.max != 1 {
			h.Errorf("%d ran, up to %d at once; want 1", o.runs, o.max)
		}
	}},
	{"what the handler leaves unread can be read outside, after the lock", func(h *harness) {
		r := post("/{id}", byParam("id"), ok)
		r.around = func(next func(), request func() *http.Request) {
			next()
			if got, err := io.ReadAll(request().Body); string(got) != "unread" || err != nil {
				h.Errorf("read %q, %v", got, err)
			}
		}
		h.wantStatus(sendBody(context.Background(), h.build(r), "POST", "/1", strings.NewReader("unread")), http.StatusOK)
	}},
}

// heldBack is a body of which the rest comes when the channel is closed, to who waits
// for it.
func heldBack(first, rest string) (held chan struct{}, body io.Reader) {
	held = make(chan struct{})
	wait := readerFunc(func(p []byte) (int, error) {
		<-held
		return copy(p, rest), io.EOF
	})
	return held, io.MultiReader(strings.NewReader(first), wait)
}
