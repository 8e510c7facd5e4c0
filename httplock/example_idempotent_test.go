package httplock_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// A payment that is sent again is not made again.
func ExampleIdempotent() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	type userID struct{}
	authenticate := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userID{}, "u7")))
		})
	}
	payments := 0
	pay := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payments++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "payment %d", payments)
	})
	mux := http.NewServeMux()
	mux.Handle("POST /payments", authenticate(httplock.Idempotent(keyfunc.Value(userID{}))(pay)))

	for _, payment := range []struct{ key, body string }{{"a", "EUR 10"}, {"a", "EUR 10"}, {"b", "EUR 10"}, {"a", "EUR 20"}} {
		r := httptest.NewRequest("POST", "/payments", strings.NewReader(payment.body))
		r.Header.Set("Idempotency-Key", payment.key)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Printf("%d %q %s\n", w.Code, w.Header().Get("Idempotent-Replayed"), w.Body)
	}
	// Output:
	// 201 "" payment 1
	// 201 "true" payment 1
	// 201 "" payment 2
	// 422 "" {"type":"https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header","title":"Idempotency-Key is already used","status":422,"detail":"Another request was sent with this Idempotency-Key: use a new one.","code":"reused"}
}

// An attempt whose process has died may have done the work: the next one is told.
func ExampleAttempt() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	pay := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		attempt := httplock.Attempt(r.Context())
		if attempt == 1 { // as if the process died here
			lock, _ := core.FromContext(r.Context())
			_ = lock.Unlock(r.Context())
		}
		fmt.Fprintf(w, "attempt %d", attempt)
	})
	mux := http.NewServeMux()
	mux.Handle("POST /payments", httplock.New(httplock.Config{Idempotent: &httplock.Idempotency{
		Scope: keyfunc.Header("X-User"), // of a proxy that authenticates
	}})(pay))

	request(mux, "POST", "/payments", "X-User", "u7", "Idempotency-Key", "a")
	request(mux, "POST", "/payments", "X-User", "u7", "Idempotency-Key", "a")
	request(mux, "POST", "/payments", "X-User", "u7", "Idempotency-Key", "a")
	// Output:
	// 200 attempt 1
	// 200 attempt 2
	// 200 attempt 2
}

// The key that is stored with the work is the one that was guarded, however a client spells it.
func ExampleIdempotencyKey() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	payments := map[string]bool{} // with a unique index on the key, in a database
	pay := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, _ := httplock.IdempotencyKey(r.Context())
		payments[key] = true
		http.Error(w, "later", http.StatusServiceUnavailable) // it is processed again
	})
	mux := http.NewServeMux()
	mux.Handle("POST /payments", httplock.Idempotent(keyfunc.Header("X-User"))(pay))

	for _, key := range []string{`7a1f`, `"7a1f"`} {
		request(mux, "POST", "/payments", "X-User", "u7", "Idempotency-Key", key)
	}
	fmt.Println(payments)
	// Output:
	// 503 later
	// 503 later
	// map[7a1f:true]
}
