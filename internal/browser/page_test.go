package browser

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "take the pictures under docs anew")

// page is a tab with a page, as a user has it before them. Its methods end the
// test when they cannot do what they are told to.
type page struct {
	t       *testing.T
	ctx     context.Context
	close   context.CancelFunc
	console func(func(chromedp.ConsoleMessage, error) bool)
}

// open opens url in a tab of its own, 1,200 pixels wide. What the page writes to
// the console as an error, until it is closed at the end of the test, fails the
// test.
func open(t *testing.T, url string, as ...chromedp.Action[chromedp.Void]) *page {
	t.Helper()
	browser, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	p := &page{t: t}
	p.ctx, p.close = chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(func() {
		if t.Failed() && p.ctx.Err() == nil {
			t.Logf("the page:\n%s", p.visible())
		}
		for _, message := range p.errors() {
			t.Errorf("console: %s", message)
		}
		p.close()
	})
	if err := chromedp.Do(p.ctx, size(1200, 900)); err != nil {
		t.Fatal(err)
	}
	p.console = chromedp.Console(p.ctx)
	p.do(append(as, chromedp.Navigate(url))...)
	return p
}

// size is the size of the window in pixels.
func size(width, height int64, options ...chromedp.EmulateViewportOption) chromedp.Action[chromedp.Void] {
	return chromedp.EmulateViewport(width, height, options...)
}

// prefer is what the user prefers: prefer("color-scheme", "dark").
func prefer(feature, value string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-" + feature, Value: value}},
		})
		return err
	})
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// eval returns the value of a JavaScript expression.
func eval[T any](p *page, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// await returns as soon as a JavaScript expression is true.
func (p *page) await(what, expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.Poll[bool](expression,
		chromedp.WithPollingInterval(10*time.Millisecond), chromedp.WithPollingTimeout(0)))
	if err != nil {
		p.t.Fatalf("still waiting for %s: %v", what, err)
	}
}

// click clicks the button with this label.
func (p *page) click(label string) {
	p.t.Helper()
	p.do(chromedp.Click(chromedp.JSPath(fmt.Sprintf(
		`[...document.querySelectorAll("button")].find(b => b.innerText.trim() === %q)`, label))))
}

// fill types a value into the field whose label begins so, over what is there.
func (p *page) fill(label, value string) {
	p.t.Helper()
	field := fmt.Sprintf(`[...document.querySelectorAll("label")].find(l => l.innerText.startsWith(%q)).control`, label)
	eval[chromedp.Void](p, field+`.select()`)
	p.do(chromedp.SendKeys(chromedp.JSPath(field), value))
}

// text returns the text of the first element that a CSS selector fits, as it is
// seen.
func (p *page) text(selector string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf(`document.querySelector(%q).innerText`, selector))
}

// visible returns all text of the page that is seen.
func (p *page) visible() string {
	p.t.Helper()
	return eval[string](p, `document.body.innerText`)
}

// errors returns the errors that the page has written to the console so far, and
// ends the listening.
func (p *page) errors() []string {
	if p.console == nil || p.ctx.Err() != nil {
		return nil
	}
	const end = "latchkey: the console has been read to here"
	eval[chromedp.Void](p, fmt.Sprintf(`console.info(%q)`, end))
	console := p.console
	p.console = nil // it can be read once
	var out []string
	for message, err := range console {
		switch {
		case err != nil:
			return append(out, err.Error())
		case message.Text == end:
			return out
		case message.Type == chromedp.ConsoleError, message.Type == chromedp.ConsoleException:
			out = append(out, fmt.Sprintf("%s (%s:%d)", message, message.URL, message.Line+1))
		}
	}
	return out
}

// fits fails the test when the page is wider than the window.
func (p *page) fits() {
	p.t.Helper()
	wide := eval[int](p, `document.documentElement.scrollWidth`)
	if window := eval[int](p, `window.innerWidth`); wide > window {
		p.t.Errorf("the page is %d pixels wide in a window of %d", wide, window)
	}
}

// picture takes a picture of the window and, with -update, puts it under docs.
func (p *page) picture(name string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	if most := 300 << 10; len(png) > most {
		p.t.Errorf("%s has %d bytes, more than %d", name, len(png), most)
	}
	if *update {
		if err := os.WriteFile(filepath.Join("..", "..", "docs", name), png, 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
}
