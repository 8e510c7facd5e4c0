package httplock_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// newLocker is a Locker on an embedded Redis. Yours is on a real one.
func newLocker() (locker *core.Locker, stop func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	locker, err = core.New(client)
	if err != nil {
		panic(err)
	}
	return locker, func() { _ = client.Close(); server.Close() }
}

func request(server http.Handler, method, target string, header ...string) {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
}

func ExampleByParam() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	pay := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock, _ := core.FromContext(r.Context())
		fmt.Fprintf(w, "paid under the lock %q", lock.Key())
	})
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{orderID}/pay", httplock.ByParam("orderID")(pay))

	request(mux, "POST", "/orders/42/pay")
	// Output: 200 paid under the lock "orderID=42"
}

// A request that comes twice is answered once: the key stays taken for ten
// minutes after a success. ByHeader needs no route, so it may be around the whole
// mux.
func ExampleByHeader() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	mux := http.NewServeMux()
	mux.HandleFunc("POST /payments", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "paid") })
	server := httplock.ByHeader("Idempotency-Key", core.NoWait(), core.KeepFor(10*time.Minute))(mux)

	request(server, "POST", "/payments", "Idempotency-Key", "abc")
	request(server, "POST", "/payments", "Idempotency-Key", "abc")
	request(server, "POST", "/payments")
	// Output:
	// 200 paid
	// 409 {"type":"about:blank","title":"Conflict","status":409,"detail":"A request for the same resource was processed just now.","code":"done"}
	// 400 {"type":"about:blank","title":"Bad Request","status":400,"detail":"A required part of the request is missing.","code":"missing","part":"Idempotency-Key"}
}

func ExampleByTemplate() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	pay := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock, _ := core.FromContext(r.Context())
		_, _ = io.WriteString(w, lock.Key())
	})
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{orderID}", httplock.ByTemplate("order:{param.orderID}:user:{header.X-User-ID}")(pay))

	request(mux, "POST", "/orders/42", "X-User-ID", "u7")
	// Output: 200 order:42:user:u7
}

// A key of several parts: per user and item, with the item in one form.
func ExampleBy() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	type userID struct{}
	authenticate := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userID{}, "u7")))
		})
	}
	lock := httplock.By(keyfunc.Join(
		keyfunc.Const[keyfunc.Request]("cart"),
		keyfunc.Value(userID{}),
		keyfunc.Int(keyfunc.Query("item")),
	))
	add := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock, _ := core.FromContext(r.Context())
		_, _ = io.WriteString(w, lock.Key())
	})

	request(authenticate(lock(add)), "POST", "/cart?item=042")
	// Output: 200 cart:value.httplock_test.userID=u7:item=42
}

// New has what the By functions leave out.
func ExampleNew() {
	locker, stop := newLocker()
	defer stop()

	lock := httplock.New(httplock.Config{
		Locker: locker,
		Key:    keyfunc.Param("orderID"),
		Skip:   func(r *http.Request) bool { return r.Method == http.MethodGet },
		OnRefused: func(w http.ResponseWriter, r *http.Request, err error) {
			http.Error(w, "busy, come back later", http.StatusLocked)
		},
		Options: []core.Option{core.NoWait(), core.KeepFor(time.Minute)},
	})
	mux := http.NewServeMux()
	mux.Handle("/orders/{orderID}", lock(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "done")
	})))

	request(mux, "POST", "/orders/42")
	request(mux, "POST", "/orders/42")
	request(mux, "GET", "/orders/42")
	// Output:
	// 200 done
	// 423 busy, come back later
	// 200 done
}

// A transfer has the locks of both accounts, in whatever order a request names them.
func ExampleByAll() {
	locker, stop := newLocker()
	defer stop()
	core.SetDefault(locker)

	mux := http.NewServeMux()
	lock := httplock.ByAll(keyfunc.All("account", keyfunc.Param("from"), keyfunc.Param("to")), core.NoWait())
	mux.Handle("POST /transfer/{from}/{to}", lock(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("from") == "1" { // the way back comes before the way there is done
			request(mux, "POST", "/transfer/2/1")
		}
		_, _ = io.WriteString(w, "from "+r.PathValue("from")+" to "+r.PathValue("to"))
	})))

	request(mux, "POST", "/transfer/1/2")
	request(mux, "POST", "/transfer/2/1")
	// Output:
	// 409 {"type":"about:blank","title":"Conflict","status":409,"detail":"Another request for the same resource is being processed.","code":"busy"}
	// 200 from 1 to 2
	// 200 from 2 to 1
}
