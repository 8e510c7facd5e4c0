package main

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/latchkey-go/latchkey/locktest"
)

// It ends when it is interrupted, whatever is held then and waited for.
func TestRun(t *testing.T) {
	*serve = "127.0.0.1:0"
	ctx, interrupt := context.WithCancel(context.Background())
	interrupt()
	if err := run(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestThePageIsFoundByItsHosts(t *testing.T) {
	mux := newMux(locktest.New(t), "127.0.0.1:8080")
	for target, want := range map[string]int{
		"http://127.0.0.1:8080/":                   302,
		"http://127.0.0.1:8080/debug/locks":        200,
		"http://localhost:8080/debug/locks":        200,
		"http://evil.example.com:8080/debug/locks": 421,
		"http://127.0.0.1:8080/elsewhere":          404,
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		if w.Code != want || want == 302 && w.Header().Get("Location") != "/debug/locks" {
			t.Errorf("%s: %d %s, want %d", target, w.Code, w.Header(), want)
		}
	}
}
