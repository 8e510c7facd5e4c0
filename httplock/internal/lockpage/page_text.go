package lockpage

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	dom "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"github.com/latchkey-go/latchkey/internal/visible"
)

var soft = html.Class("soft")

// shown is a text that somebody else has chosen: what is hidden in it is named.
func shown(s string) dom.Node {
	return dom.El("bdi", dom.Map(visible.Parts(s), func(p visible.Part) dom.Node {
		if !p.Hidden {
			return dom.Text(p.Text)
		}
		name := fmt.Sprintf("0x%02X", p.Text[0])
		if utf8.ValidString(p.Text) {
			r, _ := utf8.DecodeRuneInString(p.Text)
			name = fmt.Sprintf("%U", r)
		}
		return html.Span(html.Class("esc"), dom.Text(name))
	}))
}

// plain reports whether a field can hold a text, and shows it as it is.
func plain(s string) bool {
	parts := visible.Parts(s)
	return len(parts) == 0 || len(parts) == 1 && !parts[0].Hidden
}

func ownerText(owner string) dom.Node { return html.Span(html.Class("owner"), shown(owner)) }

// badge is a word beside a key. kind is good, busy, bad or "".
func badge(kind, word string) dom.Node {
	class := "badge"
	if kind != "" {
		class += " " + kind
	}
	return dom.Group{dom.Text(" "), html.Span(html.Class(class), dom.Text(word))}
}

// column is the head of a column; cell is a field below it. On a narrow screen the label stands in
// the field, which needs the roles: it is no table there.
func column(label string, of ...dom.Node) dom.Node {
	return html.Th(html.Role("columnheader"), dom.Attr("scope", "col"), dom.Group(of), dom.Text(label))
}

func cell(label string, content ...dom.Node) dom.Node {
	return html.Td(html.Role("cell"), html.Data("label", label), dom.Group(content))
}

var number = html.Class("number")

// counted is a cell with a number, which stands back where it is none.
func counted(label string, n int) dom.Node {
	if n == 0 {
		return cell(label, html.Class("number zero"), dom.Text("0"))
	}
	return cell(label, number, dom.Text(thousands(n)))
}

func table(caption string, columns []dom.Node, rows dom.Node, of ...dom.Node) dom.Node {
	return html.Table(html.Role("table"), dom.Group(of),
		html.Caption(dom.Text(caption)),
		html.THead(html.Role("rowgroup"), html.Tr(html.Role("row"), dom.Group(columns))),
		html.TBody(html.Role("rowgroup"), rows),
	)
}

func row(cells ...dom.Node) dom.Node { return html.Tr(html.Role("row"), dom.Group(cells)) }

// since is a cell that says how long ago a time was.
func (p page) since(label string, t time.Time) dom.Node {
	return cell(label, number, html.Time(html.DateTime(stamp(t)), html.Title("since "+stamp(t)), dom.Text(p.age(t))))
}

func (p page) age(since time.Time) string { return duration(p.Time.Sub(since).Milliseconds()) }

func stamp(t time.Time) string { return t.Format(time.RFC3339) }

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
