//go:build go1.25

package lockservice_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/examples/lockservice"
	"github.com/latchkey-go/latchkey/locktest"
)

func TestALockIsHeldForAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := lockservice.Locks{Locker: locktest.New(t), TTL: time.Minute}.Handler()
		ask := func(method, ticket string, want int) string {
			t.Helper()
			w := httptest.NewRecorder()
			server.ServeHTTP(w, httptest.NewRequest(method, "/locks/run-7", strings.NewReader(ticket)))
			if w.Code != want {
				t.Errorf("%s: %d %s, want %d", method, w.Code, w.Body, want)
			}
			return w.Body.String()
		}
		ticket := ask("POST", "", 201)
		ask("POST", "", 409)
		for range 3 {
			time.Sleep(50 * time.Second)
			ask("PUT", ticket, 200)
		}
		ask("PUT", "another", 410)
		ask("DELETE", "another", 410)
		ask("DELETE", strings.Repeat("long", 100), 410)
		ask("POST", "", 409)
		ask("DELETE", ticket, 200)
		ask("DELETE", ticket, 410)
		lost := ask("POST", "", 201)
		time.Sleep(time.Minute + time.Second)
		next := ask("POST", "", 201)
		ask("PUT", lost, 410)
		ask("DELETE", lost, 410)
		ask("DELETE", next, 200)
	})
}
