package lockpage

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"io"
	"net/url"

	dom "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"
)

// style is written by dom.Text like everything else, so it must not contain <, >, & and quotes.
//
//go:embed page.css
var style string

// contentPolicy is that of the page's content security.
func contentPolicy() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; " +
		"img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}

// page is a report for people. Texts and attributes are escaped by dom.Text and dom.Attr, whatever
// they are: nothing here calls dom.Raw or dom.NodeFunc, and internal/architecture refuses them. The templates of the
// standard library call methods by names that the linker cannot know. It then keeps each method of
// the whole program, which doubles many.
type page struct{ *report }

func (p page) render(w io.Writer) error {
	return html.Doctype(html.HTML(html.Lang("en"),
		html.Head(
			html.Meta(html.Charset("utf-8")),
			html.Meta(html.Name("viewport"), html.Content("width=device-width, initial-scale=1")),
			html.Meta(html.Name("color-scheme"), html.Content("light dark")),
			dom.If(p.view.refresh, html.Meta(dom.Attr("http-equiv", "refresh"), html.Content("5"))),
			html.TitleEl(dom.Text("Locks"+p.onHost())),
			html.Link(html.Rel("icon"), html.Href("data:,")),
			html.StyleEl(dom.Text(style)),
		),
		html.Body(
			p.header(),
			html.Main(p.lookUpSection(), p.heldSection(), p.waitingSection()),
			html.Footer(soft, dom.Text("Other processes have pages of their own; the look-up sees the locks of all.")),
		),
	)).Render(w)
}

func (p page) header() dom.Node {
	toggle := "Refresh every 5 s"
	if p.view.refresh {
		toggle = "Stop refreshing every 5 s"
	}
	return html.Header(
		html.Div(
			html.H1(dom.Text("Locks")),
			html.P(soft,
				dom.Textf("Process %d%s, in Redis “%s”, up for %s, at ", p.PID, p.onHost(), p.Name, p.age(p.Since)),
				html.Time(html.DateTime(stamp(p.Time)), dom.Text(p.Time.Format("15:04:05 MST"))),
			),
		),
		html.Nav(html.Aria("label", "This page"),
			html.A(html.Href(p.changed(func(*view) {})), dom.Text("Refresh")),
			html.A(html.Href(p.changed(func(v *view) { v.refresh = !v.refresh })), dom.Text(toggle)),
		),
	)
}

func (p page) onHost() string {
	if p.Host == "" {
		return ""
	}
	return " on " + p.Host
}

// changed leads to the same view but for a change. As it begins with "?" it can be of no other scheme.
func (p page) changed(change func(*view)) string {
	v := p.view
	change(&v)
	return v.link()
}

// keyLink leads to the look-up of a key.
func (p page) keyLink(key string) dom.Node {
	to := p.changed(func(v *view) { v.key, v.lookUp = key, true })
	return html.A(html.Class("key"), html.Href(to), shown(key))
}

// forceForm frees the key of the look-up, or evicts one of its holders. Its fields would not carry
// every byte of a key.
func (p page) forceForm(owner, label string) dom.Node {
	to := p.changed(func(*view) {}) + "&" + url.Values{"owner": {owner}}.Encode()
	return html.Form(html.Method("post"), html.Action(to), html.Button(html.Class("danger"), dom.Text(label)))
}

// keep has a form lead to the same order, and to a page that refreshes itself as this one does.
func (p page) keep() dom.Node {
	return dom.Group{
		dom.If(p.view.sort != "", hiddenField("sort", p.view.sort)),
		dom.If(p.view.refresh, hiddenField("refresh", "")),
	}
}

func hiddenField(name, value string) dom.Node {
	return html.Input(html.Type("hidden"), html.Name(name), html.Value(value))
}
