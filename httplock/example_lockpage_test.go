package httplock_test

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/latchkey-go/latchkey/httplock"
)

// The page of what this process holds, for tools and for people, behind your
// authentication.
func ExampleLockPage() {
	locker, stop := newLocker()
	defer stop()

	operatorsOnly := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, password, _ := r.BasicAuth()
			if subtle.ConstantTimeCompare([]byte(password), []byte("secret")) == 0 {
				w.Header().Set("WWW-Authenticate", "Basic")
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/locks", operatorsOnly(httplock.LockPage(locker,
		httplock.AllowForceUnlock(), httplock.AllowedHosts("ops.example.com"))))

	lock, err := locker.Lock(context.Background(), "orderID=42")
	if err != nil {
		panic(err)
	}
	defer lock.Unlock(context.Background())

	var page struct {
		LookUp struct{ Key, State string }
		Held   struct {
			Total int
			Locks []struct{ Key string }
		}
	}
	for _, target := range []string{"/debug/locks?format=json", "/debug/locks?format=json&key=orderID=43"} {
		r := httptest.NewRequest("GET", target, nil)
		r.Host = "ops.example.com"
		r.SetBasicAuth("admin", "secret")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
			panic(err)
		}
	}
	fmt.Println("held here:", page.Held.Total, page.Held.Locks[0].Key)
	fmt.Println(page.LookUp.Key, "is", page.LookUp.State)

	request(mux, "GET", "/debug/locks")
	// Output:
	// held here: 1 orderID=42
	// orderID=43 is free
	// 401
}
