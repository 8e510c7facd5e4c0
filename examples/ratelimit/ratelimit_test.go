package ratelimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"example.com/ratelimit"
)

func ExamplePerMinute() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	userOf := func(r *http.Request) string { return r.Header.Get("User") }
	pay := ratelimit.PerMinute(redis_rate.NewLimiter(client), 2, userOf)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "paid")
	}))
	for _, user := range []string{"ann", "ann", "ann", "bob"} {
		r, w := httptest.NewRequest("POST", "/pay", nil), httptest.NewRecorder()
		r.Header.Set("User", user)
		pay.ServeHTTP(w, r)
		fmt.Printf("%s %d %q\n", user, w.Code, w.Header().Get("Retry-After"))
	}
	// Output:
	// ann 200 ""
	// ann 200 ""
	// ann 429 "30"
	// bob 200 ""
}
