package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Without this the other tests could pass because they see nothing.
func TestErrorsOnTheConsoleAreSeen(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,"><script>console.log("harmless"); console.error("said"); 
			fetch("/gone").then(() => { setTimeout(() => document.title = "done"); throw Error("thrown") })</script>`)
	}))
	defer server.Close()
	p := open(t, server.URL)
	p.await("the last error", `document.title === "done"`)
	seen := strings.Join(p.errors(), "\n")
	for _, want := range []string{"said", "404", "thrown"} {
		if !strings.Contains(seen, want) {
			t.Errorf("%q is missing in %q", want, seen)
		}
	}
	if strings.Contains(seen, "harmless") {
		t.Error("a message is taken for an error")
	}
}
