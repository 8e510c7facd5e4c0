//go:build go1.25

// Dedup answers ten identical requests, sent at once by one user, with one 200 and
// nine 409. Then a client pays, whose connection breaks: it sends the request again, with the
// same Idempotency-Key, until it has the answer, and has paid once (payment.go).
//
//	go run ./examples/dedup                        # on an embedded Redis
//	go run ./examples/dedup -redis localhost:6379  # on a real one
//	go run ./examples/dedup -serve :8080           # serves until interrupted, for curl
//
// It exits with 1 if the answers are others.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/examples/internal/start"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

const window = 2 * time.Second

var (
	redisAddr = flag.String("redis", "", "address of a Redis server; empty: an embedded one")
	serve     = flag.String("serve", "", "address to serve at until interrupted, such as :8080")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal("dedup: ", err)
	}
}

func run(ctx context.Context) error {
	addr, stop, err := start.Redis(ctx, *redisAddr)
	if err != nil {
		return err
	}
	defer stop()
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	defer client.Close()
	locker, err := core.New(client)
	if err != nil {
		return err
	}
	defer locker.Close(context.WithoutCancel(ctx))
	core.SetDefault(locker)

	if *serve != "" {
		return keepServing(ctx, newShop())
	}
	server := httptest.NewServer(newShop())
	defer server.Close()
	return errors.Join(demonstrate(ctx, server.URL), demonstratePayment(ctx, server.URL))
}

func newShop() http.Handler {
	once := httplock.By(
		// Whose request it is comes from the authentication, not from what the client
		// says: or one user could block the orders of another.
		keyfunc.Scope("order", keyfunc.Join(keyfunc.Value(userKey{}), keyfunc.Param("orderID"))),
		core.NoWait(),        // the second of two at once is refused, not run later
		core.KeepFor(window), // and so is one that comes soon after the first was done
	)
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{orderID}", authenticate(once(http.HandlerFunc(placeOrder))))
	mux.Handle("POST /payments", authenticate(httplock.Idempotent(keyfunc.Value(userKey{}))(http.HandlerFunc(pay))))
	return mux
}

type userKey struct{}

// users knows the tokens of a real system's sessions.
var users = map[string]string{"token-of-ann": "ann", "token-of-bob": "bob"}

func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, known := users[r.Header.Get("Authorization")]
		if !known {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

func placeOrder(w http.ResponseWriter, _ *http.Request) {
	time.Sleep(50 * time.Millisecond)
	fmt.Fprintln(w, "ordered")
}

// demonstrate prints a line for each wave of requests, and fails if one was not
// answered as it should be.
func demonstrate(ctx context.Context, url string) error {
	fmt.Printf("%-44s %9s %5s %5s %7s\n", "", "requests", "200", "409", "others")
	order := fmt.Sprintf("%s/orders/%d", url, time.Now().UnixMicro()) // none that an earlier run has left a window for
	var failures []error
	wave := func(what, user string, n, wantOK int) {
		ok, conflict, err := sendAtOnce(ctx, order, "token-of-"+user, n)
		fmt.Printf("%-44s %9d %5d %5d %7d\n", what, n, ok, conflict, n-ok-conflict)
		if err == nil && (ok != wantOK || conflict != n-wantOK) {
			err = fmt.Errorf("%s: %d succeeded, want %d", what, ok, wantOK)
		}
		failures = append(failures, err)
	}
	wave("ann, ten at once", "ann", 10, 1)
	wave("ann, once more within the window", "ann", 1, 0)
	wave("bob, the same order number, not hindered", "bob", 1, 1)
	select {
	case <-time.After(window):
	case <-ctx.Done():
		return ctx.Err()
	}
	wave("ann, after the window", "ann", 1, 1)
	return errors.Join(failures...)
}

func sendAtOnce(ctx context.Context, url, token string, n int) (ok, conflict int, err error) {
	statuses := make([]int, n)
	failures := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { statuses[i], failures[i] = send(ctx, url, token) })
	}
	all.Wait()
	for _, status := range statuses {
		switch status {
		case http.StatusOK:
			ok++
		case http.StatusConflict:
			conflict++
		}
	}
	return ok, conflict, errors.Join(failures...)
}

func send(ctx context.Context, url, token string) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// keepServing serves until interrupted.
func keepServing(ctx context.Context, handler http.Handler) error {
	listener, url, err := start.Listen(*serve)
	if err != nil {
		return err
	}
	fmt.Printf("Serving at %s until interrupted. Try, twice:\n", url)
	fmt.Printf("  curl -i -X POST -H 'Authorization: token-of-ann' %s/orders/42\n", url)
	fmt.Printf("  curl -i -X POST -H 'Authorization: token-of-ann' -H 'Idempotency-Key: 1' -d 'EUR 10' %s/payments\n", url)
	return start.Serve(ctx, listener, handler)
}
