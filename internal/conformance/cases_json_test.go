package conformance_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/keyfunc"
)

var jsonCases = []conformanceCase{
	{"a field of the body: one order at a time, several orders at once", func(h *harness) {
		var o overlap
		server := h.build(post("/pay", byKey(keyfunc.JSON("order.id")), o.slow(10*time.Millisecond)))
		var crowd sync.WaitGroup
		for i := range 20 {
			body := fmt.Sprintf(`{"order":{"id":%d}}`, i%2)
			crowd.Go(func() { h.wantStatus(sendJSON(server, "/pay", strings.NewReader(body)), http.StatusOK) })
		}
		crowd.Wait()
		if o.max != 2 || o.runs != 20 {
			h.Errorf("%d ran, up to %d at once; want 20 and 2", o.runs, o.max)
		}
	}},
	{"the handler reads the body byte for byte, also when its length is unknown", func(h *harness) {
		const body = " {\"order\": {\"id\" : 9007199254740993}, \"note\":\"\u00e9 \\u00e9\"}\r\n "
		for _, reader := range []io.Reader{strings.NewReader(body), io.MultiReader(strings.NewReader(body))} {
			var length int64
			server := h.build(post("/pay", byKey(keyfunc.JSON("order.id")), func(w http.ResponseWriter, r *http.Request) {
				h.wantsHeld("order.id=9007199254740993")(w, r)
				length = r.ContentLength
				if got, err := io.ReadAll(r.Body); string(got) != body || err != nil {
					h.Errorf("read %q, %v", got, err)
				}
			}))
			h.wantStatus(sendJSON(server, "/pay", reader), http.StatusOK)
			want := int64(-1)
			if _, known := reader.(*strings.Reader); known {
				want = int64(len(body))
			}
			if length != want {
				h.Errorf("ContentLength %d, want %d", length, want)
			}
		}
	}},
	{"a body that middleware outside has read: 500 with the cause in the log, also with Optional", func(h *harness) {
		for _, key := range []keyfunc.Func[keyfunc.Request]{keyfunc.JSON("id"), keyfunc.Optional(keyfunc.JSON("id"))} {
			for _, whole := range []bool{true, false} {
				r := post("/orders", byKey(key), h.never())
				r.around = func(next func(), request func() *http.Request) {
					buffer := make([]byte, 4)
					_, _ = request().Body.Read(buffer)
					if whole {
						_, _ = io.Copy(io.Discard, request().Body)
					}
					next()
				}
				header := []string{"Content-Type", "application/json", "Content-Length", "17"}
				w := sendBody(context.Background(), h.build(r), "POST", "/orders", strings.NewReader(`{"id":1,"x":"y"} `), header...)
				h.wantProblem(w, http.StatusInternalServerError)
				if h.log.count("the body was read before") != 1 {
					h.Error("the log does not have the cause")
				}
				h.log.reset()
			}
		}
	}},
	{"a field twice, or in another letter case: 400", func(h *harness) {
		server := h.build(post("/pay", byKey(keyfunc.JSON("id")), h.never()))
		for _, body := range []string{`{"id":"secret1","id":"secret2"}`, `{"id":"secret1","ID":"secret2"}`, `{"Id":"secret1"}`} {
			h.wantProblem(sendJSON(server, "/pay", strings.NewReader(body)), http.StatusBadRequest, "secret")
		}
	}},
	{"no body, no field, not JSON, or JSON by another name: 400", func(h *harness) {
		server := h.build(post("/pay", byKey(keyfunc.JSON("id")), h.never()))
		for _, body := range []string{"", "{}", `{"id":null}`, `{"id":"secret"`, `{"id":"secret"}{}`, "id=secret"} {
			h.wantProblem(sendJSON(server, "/pay", strings.NewReader(body)), http.StatusBadRequest, "secret")
		}
		w := sendBody(context.Background(), server, "POST", "/pay", strings.NewReader(`{"id":"secret"}`), "Content-Type", "text/plain")
		h.wantProblem(w, http.StatusBadRequest, "secret")
	}},
	{"a body over the limit: 413, of known or unknown length", func(h *harness) {
		server := h.build(
			post("/small", byKey(keyfunc.JSON("id", keyfunc.MaxBytes(32))), h.never()),
			post("/pay", byKey(keyfunc.JSON("id")), h.never()))
		for path, limit := range map[string]int{"/small": 32, "/pay": 1 << 20} {
			body := `{"id":"secret"` + strings.Repeat(" ", limit) + "}"
			h.wantProblem(sendJSON(server, path, strings.NewReader(body)), http.StatusRequestEntityTooLarge, "secret")
			h.wantProblem(sendJSON(server, path, io.MultiReader(strings.NewReader(body))), http.StatusRequestEntityTooLarge, "secret")
		}
	}},
	{"http.MaxBytesHandler outside: 413 where it says so", func(h *harness) {
		server := http.MaxBytesHandler(h.build(post("/pay", byKey(keyfunc.JSON("id")), h.never())), 32)
		body := `{"id":"secret"` + strings.Repeat(" ", 32) + "}"
		h.wantProblem(sendJSON(server, "/pay", io.MultiReader(strings.NewReader(body))), http.StatusRequestEntityTooLarge, "secret")
	}},
	{"a client that leaves while it sends the body: nothing runs, nothing is answered", func(h *harness) {
		server := h.build(post("/pay", byKey(keyfunc.JSON("id")), h.never()))
		ctx, leave := context.WithCancel(context.Background())
		left := readerFunc(func([]byte) (int, error) {
			leave()
			return 0, io.ErrUnexpectedEOF
		})
		if w := sendBody(ctx, server, "POST", "/pay", io.MultiReader(strings.NewReader(`{"id":`), left), "Content-Type", "application/json"); w.Body.Len() > 0 {
			h.Errorf("answered %q", w.Body)
		}
	}},
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func sendJSON(handler http.Handler, target string, body io.Reader) *httptest.ResponseRecorder {
	return sendBody(context.Background(), handler, "POST", target, body, "Content-Type", "application/json")
}
