package httplock_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/locktest"
)

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the backend is down") }

// An answer that is copied begins with its first byte: where there is none the handler
// can still say that it has failed.
func TestCopyOfNothingIsNoAnswer(t *testing.T) {
	once := httplock.New(httplock.Config{
		Locker: locktest.New(t), Param: "orderID",
		Options: []core.Option{core.NoWait(), core.KeepFor(time.Minute)},
	})
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{orderID}/pay", once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(w, broken{}); err != nil {
			http.Error(w, "not charged", http.StatusBadGateway)
		}
	})))
	server := httptest.NewServer(mux)
	defer server.Close()
	for i := range 2 {
		resp, err := http.Post(server.URL+"/orders/42/pay", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadGateway {
			t.Errorf("attempt %d: %d, want 502: the one before has failed", i+1, resp.StatusCode)
		}
	}
}
