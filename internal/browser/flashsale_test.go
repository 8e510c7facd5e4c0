package browser

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

const flashSale = "examples/flashsale"

// news is what a screen reader says when a sale begins or ends.
const news = `document.querySelector("[role=status]").innerText`

// figure is a number of one of the panels, #guarded or #unguarded, by what stands
// beside it.
func figure(panel, label string) string {
	return fmt.Sprintf(`Number([...document.querySelectorAll("%s dt")].find(dt => dt.innerText === %q)
		.nextElementSibling.innerText.replaceAll(",", ""))`, panel, label)
}

func TestFlashSale(t *testing.T) {
	program := launch(t, flashSale, "-serve", "127.0.0.1:0")
	p := open(t, program.url, size(1200, 690, chromedp.EmulateScale(1.5)))
	p.await("the page to be ready", `document.body.innerText.includes("Not started")`)
	eval[chromedp.Void](p, `{
		window.most = 0;
		const look = () => { most = Math.max(most, `+figure("#guarded", "Sold")+`) };
		new MutationObserver(look).observe(document.querySelector("#guarded"), {subtree: true, childList: true});
	}`)
	p.fill("Buyers", "400")
	p.click("Start")
	for _, panel := range []string{"#unguarded", "#guarded"} {
		p.await(panel+" to sell", figure(panel, "Sold")+` > 0`)
		p.await("the stock of "+panel+" to fall", figure(panel, "In stock")+` < 100`)
	}
	p.await("oversell", figure("#unguarded", "Oversold")+` > 0`)
	p.await("the end of the sale", news+`.startsWith("The sale is over.")`)
	p.picture("flashsale.png")

	without, with := p.text("#unguarded"), p.text("#guarded")
	sold := eval[int](p, figure("#unguarded", "Sold"))
	for _, want := range []string{fmt.Sprintf("%d customers must be let down", sold-100), fmt.Sprintf("100 pieces, %d sold.", sold)} {
		if sold <= 100 || !strings.Contains(without, want) {
			t.Errorf("without the lock: no %q in\n%s", want, without)
		}
	}
	for _, want := range []string{"No piece was sold twice", "100 pieces, 100 sold."} {
		if !strings.Contains(with, want) {
			t.Errorf("with the lock: no %q in\n%s", want, with)
		}
	}
	if said := eval[string](p, news); !strings.Contains(said, "100 pieces, 100 sold. No piece was sold twice.") {
		t.Errorf("a screen reader says %q", said)
	}
	for _, f := range []struct {
		panel, label string
		want         int
	}{
		{"#guarded", "Sold", 100}, {"#guarded", "In stock", 0}, {"#guarded", "Oversold", 0},
		{"#guarded", "Turned away", 300}, {"#guarded", "Orders at once, at most", 1},
		{"#unguarded", "Oversold", sold - 100}, {"#unguarded", "Turned away", 400 - sold},
	} {
		if got := eval[int](p, figure(f.panel, f.label)); got != f.want {
			t.Errorf("%s: %s %d, want %d", f.panel, f.label, got, f.want)
		}
	}
	if n := eval[int](p, figure("#unguarded", "Orders at once, at most")); n < 2 {
		t.Errorf("without the lock at most %d at once", n)
	}
	if eval[bool](p, `new Set([...document.querySelectorAll(".axis")].map((axis) => axis.innerText)).size !== 1`) {
		t.Error("the timelines show different times")
	}
	if most := eval[int](p, `most`); most != 100 {
		t.Errorf("with the lock up to %d were shown as sold", most)
	}
	if eval[bool](p, `getComputedStyle(document.querySelector("#unguarded [data-of=oversold]")).color ===
		getComputedStyle(document.querySelector("#guarded [data-of=oversold]")).color`) {
		t.Error("oversell is not in red")
	}
	for panel, clash := range map[string]bool{"#unguarded": true, "#guarded": false} {
		drawn := func(class string) bool {
			return eval[float64](p, fmt.Sprintf(`document.querySelector("%s path.%s").getBBox().width`, panel, class)) > 0
		}
		servers := 0
		for n := range 3 {
			if drawn(fmt.Sprintf("server-%d", n)) {
				servers++
			}
		}
		if servers < 2 || drawn("clash") != clash {
			t.Errorf("the timeline of %s shows %d servers; orders at once: %v", panel, servers, drawn("clash"))
		}
	}

	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			p := open(t, program.url, prefer("color-scheme", scheme))
			p.await("the end of the sale", news+` !== ""`)
			if dark := eval[float64](p, luminance+`luminance(background(document.body))`) < 0.1; dark != (scheme == "dark") {
				t.Errorf("dark: %v", dark)
			}
			p.readable()
		})
	}
	for _, width := range []int64{320, 390, 800} {
		t.Run(fmt.Sprint(width, " pixels"), func(t *testing.T) {
			p := open(t, program.url, size(width, 700))
			p.await("the end of the sale", news+` !== ""`)
			p.fits()
		})
	}
}

func TestFlashSaleStopped(t *testing.T) {
	p := open(t, launch(t, flashSale, "-serve", "127.0.0.1:0", "-stock", "10000", "-buyers", "450").url)
	p.await("the proposed number of buyers", `document.querySelector("input").value === "450"`)
	p.fill("Buyers", "5000\r") // Enter is as good as Start
	p.await("orders", figure("#guarded", "Sold")+` > 5`)
	p.click("Stop")
	p.await("the end", news+`.startsWith("The sale is stopped.")`)

	left, sold := eval[int](p, figure("#guarded", "In stock")), eval[int](p, figure("#guarded", "Sold"))
	if left+sold != 10_000 || eval[int](p, figure("#guarded", "In line")) != 0 {
		t.Errorf("stopped with %d sold, %d in stock:\n%s", sold, left, p.text("#guarded"))
	}
	before := p.text("main")
	p.do(chromedp.Reload()) // who comes late sees the same
	p.await("the end", news+`.startsWith("The sale is stopped.")`)
	if after := p.text("main"); after != before {
		t.Errorf("it went on: before\n%s\nafterwards\n%s", before, after)
	}
	p.click("Start")
	p.await("a new sale", news+` === "The sale has begun."`)
}

func TestFlashSaleRefusesBadNumbers(t *testing.T) {
	p := open(t, launch(t, flashSale, "-serve", "127.0.0.1:0").url)
	p.await("the page to be ready", `document.body.innerText.includes("Not started")`)
	for _, buyers := range []string{"0", "-5", "abc", "1e9", "2.5"} {
		p.fill("Buyers", buyers)
		p.click("Start")
		if said := p.text("[role=alert]"); said != "Buyers: a whole number from 1 to 1,000,000." {
			t.Errorf("%s buyers: %q", buyers, said)
		}
	}
	if !strings.Contains(p.text("#guarded"), "Not started") {
		t.Error("a sale began")
	}
	p.fill("Buyers", "7")
	p.click("Start")
	p.await("the complaint to go", `document.querySelector("[role=alert]").innerText === ""`)
}

// Ctrl-C in the middle of a sale, with the page open: launch checks that the
// program ends, and in order.
func TestFlashSaleInterrupted(t *testing.T) {
	program := launch(t, flashSale, "-serve", "127.0.0.1:0")
	response, err := http.Post(program.url+"/items/flash/buy", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if answer, err := io.ReadAll(response.Body); string(answer) != "yours; 99 left\n" {
		t.Errorf("bought by hand: %s %q %v", response.Status, answer, err)
	}

	p := open(t, program.url)
	p.await("the proposed number of buyers", `document.querySelector("input").value === "500"`)
	p.click("Start")
	p.await("orders", figure("#guarded", "Sold")+` > 5`)
	program.interrupt()
	p.await("a word about it", `document.querySelector("[role=alert]").innerText.startsWith("The connection is lost.")`)
	// The browser calls a connection that was refused an error, and nothing else was one.
	if errors := slices.DeleteFunc(p.errors(), func(s string) bool { return strings.Contains(s, "net::ERR_") }); len(errors) > 0 {
		t.Errorf("console: %q", errors)
	}
}
