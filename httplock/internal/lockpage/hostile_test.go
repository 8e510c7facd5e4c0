package lockpage_test

import (
	"errors"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/locktest"
)

var hostileKeys = []string{
	`"><script>alert(1)</script>`,
	`'); alert(1); ('`,
	"{{.Host}}",
	"javascript:alert(1)",
	"100%25&filter=x#y?z=+1;2",
	"a\x00b\r\nc\td\x7f",
	"k\u2800\u2800held\u3164\ufe0f",
	"\u0301 \u20e3 a\u0301",
	"\xff\xfe not UTF-8",
	"order\u202e24\u2066:\u200f7",
	"\ufeff \u00a0x\u200b",
	" leading and trailing ",
	"../../etc/passwd",
	"שלום ñ 漢字 👍",
	strings.Repeat("k", 1024),
}

// Each is shown as it is, or with a name for what cannot be seen; its link looks up
// that very key, and its form frees that very lock.
func TestLockPageAndHostileKeys(t *testing.T) {
	for _, key := range hostileKeys {
		pageTest(t, func(t *testing.T, l, _ *core.Locker, page http.Handler, _ *miniredis.Miniredis) {
			k := take(t, t.Context(), l, key, core.Owner(`<b>"&%' `+"\u202e"))
			body := get(page, "/debug/locks?filter="+url.QueryEscape(key)).Body.String()
			link := keyLink.FindStringSubmatch(body)
			if link == nil {
				t.Fatalf("%q is not in the list:\n%s", key, body)
			}
			body = get(page, "/debug/locks"+html.UnescapeString(link[1])).Body.String()
			if strings.Contains(body, "<script") || strings.Contains(body, "<b>") {
				t.Errorf("%q is not escaped:\n%s", key, body)
			}
			for _, r := range body {
				if r != '\n' && r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x2069 || r == 0xfeff || r == 0xfffd {
					t.Errorf("%q: the page has %U", key, r)
				}
			}
			r := readReport(t, get(page, "/debug/locks"+html.UnescapeString(link[1])+"&format=json"), 200)
			if r.LookUp.State != "held" || r.LookUp.Here == nil {
				t.Errorf("%q: the link leads to %+v", key, r.LookUp)
			}
			told := url.QueryEscape(r.LookUp.Key)
			if r.LookUp.Escaped != "" {
				told = r.LookUp.Escaped
			}
			inJSON := get(page, "/debug/locks?format=json&key="+told).Body.String()
			if strings.ContainsAny(inJSON, "\u202e\u2066\u0085\ufeff") || !strings.Contains(inJSON, `"held"`) {
				t.Errorf("%q: the key in JSON leads to %s", key, inJSON)
			}
			form := forceForm.FindStringSubmatch(body)
			if form == nil {
				t.Fatalf("%q: there is no form", key)
			}
			logged(func() {
				w := send(page, "POST", "/debug/locks"+html.UnescapeString(form[1]))
				if w.Code != 303 || !strings.Contains(readable(follow(page, "/debug/locks", w).Body.String()), "The lock was freed.") {
					t.Errorf("%q: %d %s", key, w.Code, w.Header())
				}
			})
			if err := k.Unlock(t.Context()); !errors.Is(err, core.ErrLost) {
				t.Errorf("%q: %v", key, err)
			}
		})
	}
}

func TestLockPageNamesWhatCannotBeSeen(t *testing.T) {
	page := httplock.LockPage(locktest.New(t))
	body := get(page, "/?key="+url.QueryEscape("a\n\u202e\xffb c\u2800\u3164")).Body.String()
	want := `<bdi>a<span class="esc">U+000A</span><span class="esc">U+202E</span><span class="esc">0xFF</span>b c<span class="esc">U+2800</span><span class="esc">U+3164</span></bdi>`
	if !strings.Contains(html.UnescapeString(body), want) {
		t.Errorf("the page lacks %s:\n%s", want, body)
	}
	if strings.Contains(strings.ReplaceAll(body, `value=""`, ""), "value=") {
		t.Error("a key that a field cannot hold is in a field")
	}
	if body := get(page, "/?key=a%25b").Body.String(); !strings.Contains(body, `value="a%b"`) {
		t.Error("the field does not show the key")
	}
}

// Who looks a hot key up sees which processes wait for it, with what they have chosen as it is.
func TestLockPageSaysWhoWaits(t *testing.T) {
	pageTest(t, func(t *testing.T, l, other *core.Locker, page http.Handler, _ *miniredis.Miniredis) {
		if r := readReport(t, get(page, "/?format=json&key=k"), 200); r.LookUp.Queue != nil {
			t.Errorf("nobody waits: %+v", r.LookUp.Queue)
		}
		k := take(t, t.Context(), l, "k")
		const chosen = "<b>import-7"
		go func() {
			if k, err := other.Lock(t.Context(), "k", core.Owner(chosen), core.Shared()); err == nil {
				unlock(t, k)
			}
		}()
		time.Sleep(4 * time.Second)
		r := readReport(t, get(page, "/?format=json&key=k"), 200)
		if len(r.LookUp.Queue) != 1 || r.LookUp.Queue[0].Process == nil {
			t.Fatalf("%+v", r.LookUp)
		}
		waiting := r.LookUp.Queue[0]
		if waiting.Process.Name != "other" || waiting.Owner != chosen || waiting.Form != "shared" || waiting.Waited != 4000 || waiting.Polls {
			t.Errorf("%+v", waiting)
		}
		body := get(page, "/?key=k").Body.String()
		if text := readable(body); !strings.Contains(text, "Processes that wait for it") || !strings.Contains(text, chosen+" 4.0 s shared by message") {
			t.Error(text)
		}
		if strings.Contains(body, "<b>") {
			t.Error("an owner is not escaped")
		}
		unlock(t, k)
	})
}
