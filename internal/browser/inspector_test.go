package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// launchLockPage runs the example, and returns once its locks are held and waited
// for.
func launchLockPage(t *testing.T) (page string) {
	t.Helper()
	page = launch(t, "examples/lockpage", "-serve", "127.0.0.1:0").url + "/debug/locks"
	looks := time.NewTicker(10 * time.Millisecond)
	defer looks.Stop()
	for end := time.Now().Add(patience); ; <-looks.C {
		order, stock := lookUp(t, page, "orderID=1042"), lookUp(t, page, "stock:sku-1887")
		if order.Count == 2 && order.Waiters == 3 && stock.Waiters == 2 && lookUp(t, page, "inventory:hall-3").State == "held" {
			return page
		}
		if time.Now().After(end) {
			t.Fatalf("not there yet: %+v, %+v", order, stock)
		}
	}
}

type lockState struct {
	State, Owner   string
	Count, Waiters int
}

// lookUp asks the page as a tool does.
func lookUp(t *testing.T, page, key string) lockState {
	t.Helper()
	response, err := http.Get(page + "?" + url.Values{"format": {"json"}, "key": {key}}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var report struct{ LookUp lockState }
	if err := json.NewDecoder(response.Body).Decode(&report); err != nil {
		t.Fatal(err)
	}
	return report.LookUp
}

func TestLockPage(t *testing.T) {
	at := launchLockPage(t)
	if *update {
		time.Sleep(100 * time.Second) // for times as one meets them
	}
	p := open(t, at, prefer("color-scheme", "light"))
	for _, want := range []string{"Held by this process", "import:supplier-7", "fixed lease", "orderID=1042", "2 holds", "Waited for by this process", "stock:sku-1887"} {
		if !strings.Contains(p.visible(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	p.do(size(1200, 300)) // or the page is as high as the window
	p.do(size(1200, eval[int64](p, `document.documentElement.scrollHeight`)))
	p.picture("lockpage.png")
	p.legible()
	p.leads(clicking("orderID=1042"))
	if got := p.text(".result h3"); !strings.Contains(got, "orderID=1042") || !strings.Contains(got, "held by this process") {
		t.Errorf("the look-up says %q", got)
	}
	p.legible()

	p.do(prefer("color-scheme", "dark"))
	if light := eval[bool](p, `luminance(rgb(getComputedStyle(document.body).backgroundColor)) > 0.1`); light {
		t.Error("the page is light for who prefers it dark")
	}
	p.legible()
	for _, width := range []int64{1200, 800, 736, 360, 320} {
		p.do(size(width, 800))
		p.fits()
	}
	p.legible()
	p.do(prefer("color-scheme", "light"))
	p.legible()
}

// A key of a kilobyte, and all that a browser could take for something else.
func TestLockPageAndHostileKeys(t *testing.T) {
	at := launchLockPage(t)
	for _, key := range []string{
		`"><script>document.title = "script"</script><img src=x onerror="document.title = 'image'">`,
		"order\u202e24\x00\n",
		strings.Repeat("W", 1024),
	} {
		p := open(t, at+"?"+url.Values{"key": {key}}.Encode(), size(360, 800))
		p.fits()
		p.do(size(1200, 800))
		p.fits()
		if got := eval[string](p, `document.title`); !strings.HasPrefix(got, "Locks") {
			t.Errorf("the title is %q", got)
		}
		want := strings.NewReplacer("\u202e", "U+202E", "\x00", "U+0000", "\n", "U+000A").Replace(key)
		if got := p.text(".result .key"); got != want {
			t.Errorf("the page shows %q, want %q", got, want)
		}
	}
}

func TestLockPageFreesALock(t *testing.T) {
	at := launchLockPage(t)
	p := open(t, at)
	p.fill("Key", "inventory:hall-3")
	p.leads(clicking("Look up"))
	p.do(clicking("Free this lock by force"))
	p.legible()
	p.leads(clicking("Free it now"))
	if !strings.Contains(p.visible(), "The lock was freed.") {
		t.Error("the page does not say what it did")
	}
	p.legible()
	if got := lookUp(t, at, "inventory:hall-3"); got.State != "free" {
		t.Errorf("the lock is %+v", got)
	}
	// To load the page again is no second POST, which might free what is locked by then.
	p.leads(chromedp.Reload())
	if strings.Contains(p.visible(), "The lock was freed.") {
		t.Error("the page says again what it did")
	}
}

// Another site can neither post to the page in the operator's name, nor show it in
// a frame of its own.
func TestLockPageRefusesOtherSites(t *testing.T) {
	at := launchLockPage(t)
	target := at + "?" + url.Values{"key": {"inventory:hall-3"}, "owner": {lookUp(t, at, "inventory:hall-3").Owner}}.Encode()
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><link rel="icon" href="data:,"><iframe src="%s"></iframe>
			<form method="post" action="%s"><button>Win a prize</button></form>`, html.EscapeString(at), html.EscapeString(target))
	}))
	defer evil.Close()
	p := open(t, strings.Replace(evil.URL, "127.0.0.1", "localhost", 1))
	if status := p.leads(clicking("Win a prize")); status != http.StatusForbidden {
		t.Errorf("%d: %s", status, p.visible())
	}
	if got := lookUp(t, at, "inventory:hall-3"); got.State != "held" {
		t.Errorf("the lock is %+v", got)
	}
	seen := strings.Join(p.errors(), "\n")
	for _, want := range []string{"frame-ancestors", "403"} {
		if !strings.Contains(seen, want) {
			t.Errorf("the console lacks %q: %s", want, seen)
		}
	}
}

func TestLockPageRefreshesItself(t *testing.T) {
	p := open(t, launchLockPage(t)+"?filter=order")
	p.leads(clicking("Refresh every 5 s"))
	before := p.text("header time")
	p.leads() // by itself
	if now := p.text("header time"); now == before {
		t.Errorf("the page is still of %s", now)
	}
	p.leads(clicking("Stop refreshing every 5 s"))
	if eval[bool](p, `!!document.querySelector("meta[http-equiv]")`) {
		t.Error("it has not stopped")
	}
}

// leads does what leads to another page, and returns the status of that one when
// it is there.
func (p *page) leads(steps ...chromedp.Action[chromedp.Void]) (status int64) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	response, err := chromedp.RunResponse(ctx, steps...)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.Status
}

// clicking clicks the link or button with this text.
func clicking(text string) chromedp.Action[chromedp.Void] {
	return chromedp.Click(chromedp.JSPath(fmt.Sprintf(
		`[...document.querySelectorAll("a, button, summary")].find(e => e.innerText.trim() === %q)`, text)))
}

// legible is readable for what is not an element as well: the labels of a table on
// a phone, and the hints in fields. Fields that are not seen need no label.
func (p *page) legible() {
	p.t.Helper()
	for _, problem := range eval[[]string](p, luminance+`(() => {
		const problems = [];
		const check = (what, e, pseudo) => {
			const ratio = contrast(rgb(getComputedStyle(e, pseudo).color), background(e));
			if (ratio < 4.5) problems.push(ratio.toFixed(1) + " to 1: " + what);
		};
		for (const e of document.body.querySelectorAll("*")) {
			if (!e.checkVisibility()) continue;
			const text = [...e.childNodes].filter((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
			if (text.length > 0) check(e.innerText, e);
			if (e.matches("td")) check(e.dataset.label, e, "::before");
			if (e.matches("input")) {
				check(e.placeholder, e, "::placeholder");
				if (e.labels.length === 0) problems.push("no label: " + e.outerHTML);
			}
		}
		return problems;
	})()`) {
		p.t.Error("hard to read, ", problem)
	}
}
