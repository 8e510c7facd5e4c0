//go:build go1.25

package lockpage_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v4"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/locktest"
)

func TestLockPageAnswersInJSONOrHTML(t *testing.T) {
	page := httplock.LockPage(locktest.New(t))
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, c := range []struct {
		target string
		accept []string
		json   bool
	}{
		{"/", nil, false},
		{"/", []string{browser}, false},
		{"/", []string{"*/*"}, false},
		{"/", []string{"application/json"}, true},
		{"/", []string{"Application/JSON; charset=utf-8"}, true},
		{"/", []string{"application/json, text/plain, */*"}, true},
		{"/", []string{"text/plain", "application/json"}, true},
		{"/", []string{"application/json;q=0.5, text/html"}, false},
		{"/", []string{"application/json, text/html;q=0.5"}, true},
		{"/", []string{"application/json;q=0"}, false},
		{"/?format=json", []string{browser}, true},
		{"/?format=html", []string{"application/json"}, false},
	} {
		var header []string
		for _, a := range c.accept {
			header = append(header, "Accept", a)
		}
		w := get(page, c.target, header...)
		want := "text/html; charset=utf-8"
		if c.json {
			want = "application/json"
		}
		if got := w.Header().Get("Content-Type"); w.Code != 200 || got != want || w.Header().Get("Vary") != "Accept" {
			t.Errorf("%s with %q: %d %s", c.target, c.accept, w.Code, w.Header())
		}
	}
}

func TestLockPageRefusesOtherMethods(t *testing.T) {
	l := locktest.New(t)
	for _, c := range []struct {
		page    http.Handler
		allow   string
		refused []string
	}{
		{httplock.LockPage(l), "GET, HEAD", []string{"POST", "PUT", "DELETE", "OPTIONS"}},
		{httplock.LockPage(l, httplock.AllowForceUnlock()), "GET, HEAD, POST", []string{"PUT", "DELETE", "OPTIONS"}},
	} {
		for _, method := range c.refused {
			w := send(c.page, method, "/?key=k&owner=")
			if w.Code != 405 || w.Header().Get("Allow") != c.allow || w.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s: %d %s %s", method, w.Code, w.Header(), w.Body)
			}
		}
		if w := send(c.page, "HEAD", "/"); w.Code != 200 {
			t.Errorf("HEAD: %d", w.Code)
		}
	}
}

// The browser runs no script, takes nothing from elsewhere, shows the page in no
// frame, and keeps no copy.
func TestLockPageIsStrict(t *testing.T) {
	w := get(httplock.LockPage(locktest.New(t), httplock.AllowForceUnlock()), "/debug/locks?key=k")
	body := w.Body.String()
	_, style, _ := strings.Cut(body, "<style>")
	style, _, found := strings.Cut(style, "</style>")
	sum := sha256.Sum256([]byte(style))
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	if got := w.Header().Get("Content-Security-Policy"); !found || got != want {
		t.Errorf("policy %s\nwant %s", got, want)
	}
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, never := range []string{"<script", " style=", " on", "src=", "@import", "url("} {
		if strings.Contains(style+attributes(body), never) {
			t.Errorf("the page has %q", never)
		}
	}
	links := reference.FindAllStringSubmatch(body, -1)
	if len(links) < 3 {
		t.Errorf("links: %q", links)
	}
	for _, link := range links {
		if to := link[1]; !strings.HasPrefix(to, "?") && to != "data:," {
			t.Errorf("a link leads to %s", to)
		}
	}
}

var (
	tags      = regexp.MustCompile(`<[a-z][^>]*>`)
	reference = regexp.MustCompile(`(?:href|action)="([^"]*)"`)
)

// attributes are the tags of a page.
func attributes(page string) string { return strings.Join(tags.FindAllString(page, -1), "\n") }

var (
	keyLink   = regexp.MustCompile(`<a class="key" href="([^"]*)"`)
	forceForm = regexp.MustCompile(`<form method="post" action="([^"]*)"`)
)

// What the reader has chosen stays when he follows a link.
func TestLockPageLinksKeepTheView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := locktest.New(t)
		page := httplock.LockPage(l)
		k := take(t, t.Context(), l, "order:1")
		body := get(page, "/?filter=order&sort=age&key=x%25y&refresh=1").Body.String()
		for _, want := range []string{
			`<a href="?filter=order&amp;key=x%25y&amp;refresh=&amp;sort=age">Refresh</a>`,
			`<a href="?filter=order&amp;key=x%25y&amp;sort=age">Stop refreshing every 5 s</a>`,
			`<a href="?filter=order&amp;refresh=&amp;sort=age">All locks of this process</a>`,
			`<meta http-equiv="refresh" content="5">`,
			`<input type="hidden" name="filter" value="order">`,
		} {
			if !strings.Contains(body, want) {
				t.Errorf("the look-up lacks %s", want)
			}
		}
		body = get(page, "/?filter=order&sort=age&refresh=1").Body.String()
		for _, want := range []string{
			`<a href="?refresh=&amp;sort=age">Show all</a>`,
			`<a href="?filter=order&amp;refresh=">key</a>`,
			`<a href="?filter=order&amp;refresh=&amp;sort=age" aria-current="true">longest held</a>`,
			`<a class="key" href="?filter=order&amp;key=order%3A1&amp;refresh=&amp;sort=age">`,
			`<input type="hidden" name="filter" value="order">`,
		} {
			if !strings.Contains(body, want) {
				t.Errorf("the lists lack %s", want)
			}
		}
		if n := strings.Count(body, `name="sort" value="age"`); n != 2 {
			t.Errorf("%d forms keep the order", n)
		}
		body = get(page, "/").Body.String()
		if strings.Contains(body, "http-equiv") || !strings.Contains(body, `<a href="?refresh=">Refresh every 5 s</a>`) {
			t.Error("the page refreshes itself unasked")
		}
		unlock(t, k)
	})
}

func TestLockPageWritesTimesForPeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := locktest.New(t)
		page := httplock.LockPage(l)
		k := take(t, t.Context(), l, "k", core.FixedLease(24*time.Hour))
		start := time.Now()
		for _, c := range []struct {
			after time.Duration
			want  string
		}{
			{0, "0.0 s 23 h 59 min"},
			{9990 * time.Millisecond, "9.9 s 23 h 59 min"},
			{10 * time.Second, "10 s 23 h 59 min"},
			{63 * time.Second, "1 min 03 s 23 h 58 min"},
			{5*time.Hour + 61*time.Second, "5 h 01 min 18 h 58 min"},
			{24*time.Hour - time.Minute, "23 h 59 min 59 s"},
			{24*time.Hour - 1510*time.Millisecond, "23 h 59 min 1.5 s"},
		} {
			time.Sleep(c.after - time.Since(start))
			text := readable(get(page, "/").Body.String())
			if want := "k fixed lease " + c.want; !strings.Contains(text, want) {
				t.Errorf("after %v the page lacks %q:\n%s", c.after, want, text)
			}
		}
		unlock(t, k)
	})
}

// Links and redirects stay at the path where the page is mounted.
func TestLockPageWorksAnywhere(t *testing.T) {
	l := locktest.New(t)
	page := httplock.LockPage(l, httplock.AllowForceUnlock())
	mux := http.NewServeMux()
	mux.Handle("/debug/locks", page)
	mux.Handle("/debug/locks/", page)
	mux.Handle("/admin/", http.StripPrefix("/admin", mux))
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.Any("/debug/locks", gin.WrapH(page))
	e := echo.New()
	e.Any("/debug/locks", echo.WrapHandler(page))
	for name, c := range map[string]struct {
		handler http.Handler
		path    string
	}{
		"ServeMux": {mux, "/debug/locks"},
		"subtree":  {mux, "/debug/locks/"},
		"prefix":   {mux, "/admin/debug/locks"},
		"gin":      {router, "/debug/locks"},
		"echo":     {e, "/debug/locks"},
	} {
		t.Run(name, func(t *testing.T) {
			k := take(t, t.Context(), l, "k")
			server := httptest.NewServer(c.handler)
			defer server.Close()
			jar, err := cookiejar.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			server.Client().Jar = jar
			visit := func(method, reference string) string {
				t.Helper()
				request, err := http.NewRequest(method, server.URL+c.path+reference, nil)
				if err != nil {
					t.Fatal(err)
				}
				response, err := server.Client().Do(request)
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				body, err := io.ReadAll(response.Body)
				if err != nil || response.StatusCode != 200 || response.Request.URL.Path != c.path {
					t.Fatalf("%s %s: %s at %s, %v", method, reference, response.Status, response.Request.URL, err)
				}
				return string(body)
			}
			link := keyLink.FindStringSubmatch(visit("GET", ""))
			form := forceForm.FindStringSubmatch(visit("GET", html.UnescapeString(link[1])))
			if text := readable(visit("POST", html.UnescapeString(form[1]))); !strings.Contains(text, "The lock was freed.") {
				t.Error(text)
			}
			if err := k.Unlock(t.Context()); !errors.Is(err, core.ErrLost) {
				t.Error(err)
			}
		})
	}
}
