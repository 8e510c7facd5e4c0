//go:build go1.25

package lockpage_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/alicebob/miniredis/v2"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/locktest"
)

func TestLockPageRefusesOtherSites(t *testing.T) {
	pageTest(t, func(t *testing.T, l, _ *core.Locker, page http.Handler, _ *miniredis.Miniredis) {
		k := take(t, t.Context(), l, "k")
		target := "http://ops.example.com/debug/locks?key=k&owner=" + k.Owner()
		for _, header := range [][]string{
			{"Sec-Fetch-Site", "cross-site"},
			{"Sec-Fetch-Site", "same-site", "Origin", "https://ops.example.com"},
			{"Origin", "https://evil.example.com"},
			{"Origin", "null"},
		} {
			w := send(page, "POST", target, header...)
			if w.Code != 403 || !strings.Contains(w.Body.String(), "comes from another site") {
				t.Errorf("%q: %d %s", header, w.Code, w.Body)
			}
		}
		if info, err := l.Inspect(t.Context(), "k"); err != nil || info.Owner != k.Owner() {
			t.Errorf("%+v, %v", info, err)
		}
		logged(func() {
			if w := send(page, "POST", target, "Origin", "http://ops.example.com"); w.Code != 303 {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
		if err := k.Unlock(t.Context()); !errors.Is(err, core.ErrLost) {
			t.Error(err)
		}
	})
}

// A site whose name stands for the address of the page, all of a sudden, asks for its own
// host, from its own origin.
func TestLockPageAnswersForItsHostsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := locktest.New(t)
		page := httplock.LockPage(l, httplock.AllowForceUnlock(), httplock.AllowedHosts("ops.example.com", "localhost:8080"), httplock.AllowedHosts("127.0.0.1", "[::1]"))
		k := take(t, t.Context(), l, "k")
		ask := func(method, host string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, "/?key=k&owner="+k.Owner(), nil)
			r.Host = host
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			r.Header.Set("Origin", "http://"+host)
			w := httptest.NewRecorder()
			page.ServeHTTP(w, r)
			return w
		}
		for _, host := range []string{"evil.example.com", "evil.example.com:8080", "localhost", "localhost:9090", "x.ops.example.com", "ops.example.com.", "ops.example.com@evil.example.com", "::1", "127.0.0.2", ""} {
			for _, method := range []string{"GET", "POST"} {
				if w := ask(method, host); w.Code != 421 || strings.Contains(w.Body.String(), k.Owner()) {
					t.Errorf("%s for %s: %d %s", method, host, w.Code, w.Body)
				}
			}
		}
		for _, host := range []string{"ops.example.com", "OPS.example.com:443", "localhost:8080", "127.0.0.1", "127.0.0.1:8080", "[::1]:8080", "[::1]"} {
			if w := ask("GET", host); w.Code != 200 {
				t.Errorf("for %s: %d %s", host, w.Code, w.Body)
			}
		}
		logged(func() {
			if w := ask("POST", "ops.example.com"); w.Code != 303 {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
		if err := k.Unlock(t.Context()); !errors.Is(err, core.ErrLost) {
			t.Error(err)
		}
	})
}

func TestAllowedHostsRefusesWhatIsNone(t *testing.T) {
	for _, hosts := range [][]string{nil, {""}, {"ok.example.com", "https://ops.example.com"}, {"ops.example.com/locks"}, {":8080"}, {"user@ops"}, {"::1"}} {
		func() {
			defer func() {
				if p, _ := recover().(string); !strings.HasPrefix(p, "httplock: AllowedHosts") {
					t.Errorf("%q: %v", hosts, p)
				}
			}()
			httplock.AllowedHosts(hosts...)
		}()
	}
}
