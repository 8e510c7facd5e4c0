package httplock_test

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/locktest"
)

// hijackable can be hijacked, but not flushed.
type hijackable struct{ http.ResponseWriter }

func (hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errHijack }

var errHijack = errors.New("hijacked")

// What the writer of middleware outside can do, the handler's can do, too.
func TestWriterThatCannotBeFlushed(t *testing.T) {
	locker := locktest.New(t)
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{orderID}", httplock.New(httplock.Config{
		Locker: locker, Param: "orderID", Options: []core.Option{core.KeepFor(time.Minute)},
	})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hijacker, ok := w.(http.Hijacker)
		if !ok {
			t.Fatal("it cannot be hijacked any more")
		}
		if _, _, err := hijacker.Hijack(); !errors.Is(err, errHijack) {
			t.Errorf("Hijack: %v", err)
		}
		if _, ok := w.(http.Flusher); ok {
			t.Error("it says that it can be flushed")
		}
		if err := http.NewResponseController(w).Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("Flush: %v", err)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})))
	mux.ServeHTTP(hijackable{struct{ http.ResponseWriter }{httptest.NewRecorder()}}, httptest.NewRequest("POST", "/orders/42", nil))
	if info, err := locker.Inspect(t.Context(), "orderID=42"); err != nil || info.Locked {
		t.Errorf("a flush that was not supported has begun the answer: %+v, %v", info, err)
	}
}
