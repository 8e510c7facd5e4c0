//go:build go1.25

package lockpage_test

import (
	"errors"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/locktest"
)

func TestLockPageFreesALock(t *testing.T) {
	pageTest(t, func(t *testing.T, l, other *core.Locker, page http.Handler, _ *miniredis.Miniredis) {
		k := take(t, t.Context(), other, "k")
		if body := get(httplock.LockPage(l), "/?key=k").Body.String(); forceForm.MatchString(body) {
			t.Error("there is a form that leads nowhere")
		}
		form := forceForm.FindStringSubmatch(get(page, "/debug/locks?key=k&filter=x&sort=age").Body.String())
		if form == nil {
			t.Fatal("there is no form")
		}
		target := "/debug/locks" + html.UnescapeString(form[1])
		if w := get(page, target); w.Code != 200 { // a GET frees nothing
			t.Errorf("%d", w.Code)
		}
		var w *httptest.ResponseRecorder
		log := logged(func() { w = send(page, "POST", target, "Sec-Fetch-Site", "same-origin") })
		if want := "?filter=x&key=k&sort=age"; w.Code != 303 || w.Header().Get("Location") != want {
			t.Errorf("%d %s", w.Code, w.Header())
		}
		for _, want := range []string{"a lock was freed from the lock page", "key=k", "owner=" + k.Owner(), "client=192.0.2.1:1234"} {
			if !strings.Contains(log, want) {
				t.Errorf("the log lacks %q: %s", want, log)
			}
		}
		text := readable(follow(page, "/debug/locks", w).Body.String())
		if !strings.Contains(text, "The lock was freed.") || !strings.Contains(text, "k free Nobody holds it.") {
			t.Error(text)
		}
		<-k.Context().Done() // at the next renewal
		if err := k.Unlock(t.Context()); !errors.Is(err, core.ErrLost) {
			t.Error(err)
		}

		// Again, now that it is free.
		w = send(page, "POST", target)
		if w.Code != 303 {
			t.Errorf("%d %s", w.Code, w.Header())
		}
		if text := readable(follow(page, "/", w).Body.String()); !strings.Contains(text, "was free already") {
			t.Error(text)
		}
	})
}

// What the page says that it has done, it has done: no link makes it say so, nor the note of another key, and it says it once.
func TestLockPageClaimsWhatItHasDone(t *testing.T) {
	pageTest(t, func(t *testing.T, l, _ *core.Locker, page http.Handler, _ *miniredis.Miniredis) {
		k := take(t, t.Context(), l, "k")
		claims := regexp.MustCompile("was freed|was evicted|free already|was done|did not confirm")
		for _, outcome := range []string{"freed", "free", "changed", "unsure"} {
			target := "/?key=k&outcome=" + outcome
			if text := readable(get(page, target).Body.String()); claims.MatchString(text) {
				t.Errorf("%s: %s", target, text)
			}
			if r := readReport(t, get(page, target+"&format=json"), 200); r.Outcome != "" {
				t.Errorf("%s: %+v", target, r)
			}
		}
		var w *httptest.ResponseRecorder
		logged(func() { w = send(page, "POST", "/?key=k&owner="+k.Owner()) })
		cookies := w.Result().Cookies()
		if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || cookies[0].MaxAge != 60 {
			t.Fatalf("the note is %v", cookies)
		}
		note := cookies[0].Name + "=" + cookies[0].Value
		if text := readable(get(page, "/?key=other", "Cookie", note).Body.String()); claims.MatchString(text) {
			t.Errorf("of another key: %s", text)
		}
		if text := readable(get(page, "/?key=k", "Cookie", strings.Replace(note, "freed", "unsure", 1)).Body.String()); claims.MatchString(text) {
			t.Errorf("another note: %s", text)
		}
		after := follow(page, "/", w)
		if text := readable(after.Body.String()); !strings.Contains(text, "The lock was freed.") {
			t.Error(text)
		}
		if cookies := after.Result().Cookies(); len(cookies) != 1 || cookies[0].MaxAge >= 0 {
			t.Errorf("the note stays: %v", cookies)
		}
	})
}

func TestLockPageFreesAWindow(t *testing.T) {
	pageTest(t, func(t *testing.T, l, _ *core.Locker, page http.Handler, _ *miniredis.Miniredis) {
		unlock(t, take(t, t.Context(), l, "k", core.KeepFor(time.Hour)))
		var r lockReport
		logged(func() {
			r = readReport(t, send(page, "POST", "/?key=k&owner=", "Accept", "application/json"), 200)
		})
		if r.Outcome != "freed" || r.LookUp.State != "free" {
			t.Errorf("%+v", r)
		}
	})
}

// One of several holders is evicted, and the others stay.
func TestLockPageEvictsAHolder(t *testing.T) {
	pageTest(t, func(t *testing.T, l, other *core.Locker, page http.Handler, _ *miniredis.Miniredis) {
		a := take(t, t.Context(), l, "k", core.Permits(2), core.Owner("a&b"))
		b := take(t, t.Context(), other, "k", core.Permits(2), core.Owner("b"))
		forms := forceForm.FindAllStringSubmatch(get(page, "/?key=k").Body.String(), -1)
		if len(forms) != 2 {
			t.Fatalf("%d forms", len(forms))
		}
		for owner, status := range map[string]int{"": 409, "a": 409} {
			if w := send(page, "POST", "/?key=k&owner="+owner); w.Code != status {
				t.Errorf("owner %q: %d", owner, w.Code)
			}
		}
		var w *httptest.ResponseRecorder
		logged(func() { w = send(page, "POST", "/"+html.UnescapeString(forms[0][1])) })
		text := readable(follow(page, "/", w).Body.String())
		if !strings.Contains(text, "The holder was evicted.") || !strings.Contains(text, "permits in use: 1 Owner b ") {
			t.Error(text)
		}
		<-a.Context().Done()
		unlock(t, b)
	})
}

func TestLockPageFreesAParkedLock(t *testing.T) {
	pageTest(t, func(t *testing.T, l, _ *core.Locker, page http.Handler, server *miniredis.Miniredis) {
		server.HSet("lock:k", "mode", "h7 ab 60000")
		form := forceForm.FindStringSubmatch(get(page, "/?key=k").Body.String())
		if form == nil {
			t.Fatal("there is no form")
		}
		logged(func() {
			if w := send(page, "POST", "/"+html.UnescapeString(form[1])); w.Code != 303 {
				t.Errorf("%d", w.Code)
			}
		})
		if server.Exists("lock:k") {
			t.Error("it is still parked")
		}
	})
}

// Between the look and the click another may have taken the lock.
func TestLockPageSparesANewHolder(t *testing.T) {
	pageTest(t, func(t *testing.T, l, other *core.Locker, page http.Handler, _ *miniredis.Miniredis) {
		k := take(t, t.Context(), l, "k")
		for _, owner := range []string{"", "somebody"} {
			w := send(page, "POST", "/?key=k&owner="+owner)
			text := readable(w.Body.String())
			if w.Code != 409 || !strings.Contains(text, "The lock has changed hands since you looked. Nothing was done. k held by this process Owner "+ownerText("this", k)) {
				t.Errorf("%d %s", w.Code, text)
			}
			if r := readReport(t, send(page, "POST", "/?format=json&key=k&owner="+owner), 409); r.Outcome != "changed" {
				t.Errorf("%+v", r)
			}
		}
		if info, err := other.Inspect(t.Context(), "k"); err != nil || info.Owner != k.Owner() {
			t.Errorf("%+v, %v", info, err)
		}
		unlock(t, k)
	})
}

// Redis fails between the look and the deed.
func TestLockPageIsUnsure(t *testing.T) {
	pageTest(t, func(t *testing.T, l, _ *core.Locker, page http.Handler, redis *miniredis.Miniredis) {
		k := take(t, t.Context(), l, "k")
		redis.Server().SetPreHook(func(c *server.Peer, command string, args ...string) bool {
			deletes := command == "EVAL" && strings.Contains(args[0], "'DEL'")
			if deletes {
				c.WriteError("ERR secret")
			}
			return deletes
		})
		logged(func() {
			text := readable(send(page, "POST", "/?key=k&owner="+k.Owner()).Body.String())
			if !strings.Contains(text, "Redis did not confirm. The lock may have been freed or not. k held by this process") {
				t.Error(text)
			}
			if r := readReport(t, send(page, "POST", "/?format=json&key=k&owner="+k.Owner()), 503); r.Outcome != "unsure" || r.LookUp.State != "held" {
				t.Errorf("%+v", r)
			}
		})
		redis.Server().SetPreHook(nil)
		unlock(t, k)
	})
}

// The holder comes before, between the look and the deed.
func TestLockPageComesTooLate(t *testing.T) {
	pageTest(t, func(t *testing.T, l, _ *core.Locker, page http.Handler, redis *miniredis.Miniredis) {
		k := take(t, t.Context(), l, "k")
		redis.Server().SetPreHook(func(_ *server.Peer, command string, args ...string) bool {
			if command == "EVAL" && strings.Contains(args[0], "'DEL'") {
				redis.Del("lock:k")
			}
			return false
		})
		log := logged(func() {
			if r := readReport(t, send(page, "POST", "/?format=json&key=k&owner="+k.Owner()), 200); r.Outcome != "free" || r.LookUp.State != "free" {
				t.Errorf("%+v", r)
			}
		})
		if log != "" {
			t.Errorf("log: %s", log)
		}
		redis.Server().SetPreHook(nil)
		if err := k.Unlock(t.Context()); !errors.Is(err, core.ErrLost) {
			t.Error(err)
		}
	})
}

// The holder comes before, and another has taken the lock since: between the look and
// the deed.
func TestLockPageSparesASuccessor(t *testing.T) {
	pageTest(t, func(t *testing.T, l, other *core.Locker, page http.Handler, redis *miniredis.Miniredis) {
		seen := take(t, t.Context(), l, "k").Owner()
		redis.Server().SetPreHook(func(_ *server.Peer, command string, args ...string) bool {
			if command == "EVAL" && strings.Contains(args[0], "'DEL'") {
				redis.Del("lock:k")
				redis.HSet("lock:k", "successor", "1")
			}
			return false
		})
		log := logged(func() {
			r := readReport(t, send(page, "POST", "/?format=json&key=k&owner="+seen), 409)
			if r.Outcome != "changed" || r.LookUp.Owner != "successor" {
				t.Errorf("%+v", r)
			}
		})
		if log != "" {
			t.Errorf("log: %s", log)
		}
		redis.Server().SetPreHook(nil)
		if redis.HGet("lock:k", "successor") != "1" {
			t.Error("the successor has lost its lock")
		}
		redis.Del("lock:k")
	})
}

func TestLockPageNeedsKeyAndOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := locktest.New(t)
		page := httplock.LockPage(l, httplock.AllowForceUnlock())
		k := take(t, t.Context(), l, "k")
		for target, body := range map[string]string{
			"/":                              "",
			"/?key=k":                        "",
			"/?owner=" + k.Owner():           "",
			"/?key=k&owner=%zz":              "",
			"/?key=k&owner=" + k.Owner()[1:]: strings.Repeat("x", 1<<20),
		} {
			r := httptest.NewRequest("POST", target, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			page.ServeHTTP(w, r)
			if w.Code != 400 || !strings.Contains(w.Body.String(), "key and owner are required") {
				t.Errorf("%s: %d %s", target, w.Code, w.Body)
			}
		}
		if w := send(page, "POST", "/?key=&owner="); w.Code != 400 {
			t.Errorf("an empty key: %d", w.Code)
		}
		// A form, as curl -d sends it.
		r := httptest.NewRequest("POST", "/", strings.NewReader("key=k&owner="+k.Owner()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		logged(func() { page.ServeHTTP(w, r) })
		if w.Code != 303 || !errors.Is(k.Unlock(t.Context()), core.ErrLost) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
