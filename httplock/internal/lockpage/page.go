package lockpage

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/internal/visible"
)

//go:embed page.html
var pageHTML string

// page renders reports for people.
type page struct {
	template *template.Template
	policy   string // of its content's security
}

// newPage does not make a global variable: html/template keeps the linker from
// leaving unused methods out, which nearly doubles a small program. Only those with
// the page shall pay for it.
func newPage() *page {
	_, style, _ := strings.Cut(pageHTML, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	sum := sha256.Sum256([]byte(style))
	return &page{
		template: template.Must(template.New("page").Funcs(template.FuncMap{
			"duration": duration,
			"number":   thousands,
			"pieces":   pieces,
			"plain":    func(s string) bool { p := pieces(s); return len(p) == 0 || len(p) == 1 && !p[0].Escaped },
			"time":     func(t time.Time) string { return t.Format(time.RFC3339) },
			"clock":    func(t time.Time) string { return t.Format("15:04:05 MST") },
		}).Parse(pageHTML)),
		policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; " +
			"img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	}
}

func (p *page) render(w io.Writer, r *report) error { return p.template.Execute(w, pageData{r}) }

// pageData is a report with what only people need.
type pageData struct{ *report }

func (d pageData) Filter() string { return d.view.filter }
func (d pageData) Sort() string   { return d.view.sort }
func (d pageData) Refresh() bool  { return d.view.refresh }
func (d pageData) Forces() bool   { return d.forces }

// Again leads to the same view.
func (d pageData) Again() string { return d.changed(func(*view) {}) }

// Toggle leads to the same view, that refreshes itself or does not any more.
func (d pageData) Toggle() string { return d.changed(func(v *view) { v.refresh = !v.refresh }) }

// SortedBy leads to the same view in another order.
func (d pageData) SortedBy(order string) string { return d.changed(func(v *view) { v.sort = order }) }

// Unfiltered leads to the same view of all locks.
func (d pageData) Unfiltered() string { return d.changed(func(v *view) { v.filter = "" }) }

// All leads from a look-up to the lists.
func (d pageData) All() string {
	return d.changed(func(v *view) { v.key, v.lookUp = "", false })
}

// To leads to the look-up of a key.
func (d pageData) To(key string) string {
	return d.changed(func(v *view) { v.key, v.lookUp = key, true })
}

// ForceUnlock is where the form posts to that frees the key of the look-up, or ends one of its
// holders. Form fields would not carry every byte of a key.
func (d pageData) ForceUnlock(owner string) string {
	return d.Again() + "&" + url.Values{"owner": {owner}}.Encode()
}

func (d pageData) changed(change func(*view)) string {
	v := d.view
	change(&v)
	return v.link()
}

// Age is how long ago a time was.
func (d pageData) Age(since time.Time) string { return duration(d.Time.Sub(since).Milliseconds()) }

// duration writes milliseconds for people.
func duration(ms int64) string {
	d := time.Duration(max(ms, 0)) * time.Millisecond
	hours, minutes, seconds := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", seconds)
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", minutes, seconds)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %02d min", hours, minutes)
	default:
		return fmt.Sprintf("%d d %d h", hours/24, hours%24)
	}
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// piece is a part of a text that somebody else has chosen.
type piece struct {
	Text    string
	Escaped bool // Text names a character that cannot be seen, or changes how others are
}

// pieces makes a text safe to look at: what is hidden in it is named.
func pieces(s string) []piece {
	var out []piece
	for _, p := range visible.Parts(s) {
		if p.Hidden {
			name := fmt.Sprintf("0x%02X", p.Text[0])
			if utf8.ValidString(p.Text) {
				r, _ := utf8.DecodeRuneInString(p.Text)
				name = fmt.Sprintf("%U", r)
			}
			p.Text = name
		}
		out = append(out, piece{p.Text, p.Hidden})
	}
	return out
}
