package lockpage

import (
	dom "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"
)

func (p page) heldSection() dom.Node {
	if p.Held == nil {
		return nil
	}
	return html.Section(html.Aria("labelledby", "held"),
		html.Div(html.Class("title"),
			html.H2(html.ID("held"), dom.Text("Held by this process "), p.count(p.Held.Matching, p.Held.Total)),
			p.filterForm(),
		),
		p.heldTable(),
	)
}

func (p page) count(matching, total int) dom.Node {
	text := thousands(total)
	if p.view.filter != "" {
		text = thousands(matching) + " of " + text
	}
	return html.Span(html.Class("count"), dom.Text(text))
}

func (p page) filterForm() dom.Node {
	filter := p.view.filter
	return html.Form(html.Class("ask"), html.Method("get"), html.Role("search"),
		html.Label(html.For("filter"), dom.Text("Filter")),
		html.Input(html.ID("filter"), html.Name("filter"), html.Type("search"), asWritten(),
			html.Placeholder("part of a key or owner"), dom.If(plain(filter), html.Value(filter))),
		p.keep(),
		html.Button(html.Class("plain"), dom.Text("Filter")),
		dom.If(filter != "", html.A(html.Href(p.changed(func(v *view) { v.filter = "" })), dom.Text("Show all"))),
	)
}

// asWritten has a browser change nothing of what is typed.
func asWritten() dom.Node {
	return dom.Group{html.AutoComplete("off"), dom.Attr("autocapitalize", "off"), dom.Attr("spellcheck", "false")}
}

func (p page) heldTable() dom.Node {
	switch {
	case p.Held.Total == 0:
		return html.P(soft, dom.Text("This process holds no lock."))
	case p.Held.Matching == 0:
		return html.P(soft, dom.Text("No lock that is held fits the filter."))
	}
	return dom.Group{
		html.Nav(html.Class("sort"), html.Aria("label", "Order"),
			html.Span(dom.Text("Order:")),
			p.sortLink("", "key"), p.sortLink("age", "longest held"), p.sortLink("waiters", "most waiting"),
		),
		table("Locks that this process holds",
			[]dom.Node{
				column("Key"), column("Held for", number), column("Lease left", number), column("Renewals", number), column("Waiting", number),
			},
			dom.Map(p.Held.Locks, p.heldRow),
		),
		rest(len(p.Held.Locks), p.Held.Matching),
	}
}

func (p page) sortLink(order, label string) dom.Node {
	return html.A(html.Href(p.changed(func(v *view) { v.sort = order })),
		dom.If(p.view.sort == order, html.Aria("current", "true")), dom.Text(label))
}

func (p page) heldRow(held heldLock) dom.Node {
	return row(
		cell("Key", p.keyLink(held.Key),
			dom.If(held.Form != "exclusive", badge("", held.Form)),
			dom.If(held.Count > 1, badge("", thousands(held.Count)+" holds")),
			dom.If(held.Fixed, badge("", "fixed lease")),
			dom.If(held.Overdue, badge("bad", "over MaxHold")),
			dom.If(held.Chosen, dom.Group{dom.Text(" "), html.Span(html.Class("owner"), dom.Text("as "), shown(held.Owner))}),
		),
		p.since("Held for", held.Since),
		cell("Lease left", number, dom.Text(duration(held.TTL))),
		counted("Renewals", held.Renewals),
		counted("Waiting", held.Waiters),
	)
}

func (p page) waitingSection() dom.Node {
	if p.Waiting == nil {
		return nil
	}
	return html.Section(html.Aria("labelledby", "waiting"),
		html.Div(html.Class("title"),
			html.H2(html.ID("waiting"), dom.Text("Waited for by this process "), p.count(p.Waiting.Matching, p.Waiting.Total)),
		),
		p.waitingTable(),
	)
}

func (p page) waitingTable() dom.Node {
	switch {
	case p.Waiting.Total == 0:
		return html.P(soft, dom.Text("No call of this process waits."))
	case p.Waiting.Matching == 0:
		return html.P(soft, dom.Text("No lock that is waited for fits the filter."))
	}
	return dom.Group{
		table("Locks that calls of this process wait for",
			[]dom.Node{column("Key"), column("Longest wait", number), column("Calls waiting", number)},
			dom.Map(p.Waiting.Locks, func(w waitingLock) dom.Node {
				calls := cell("Calls waiting", number, dom.Text(thousands(w.Waiters)))
				return row(cell("Key", p.keyLink(w.Key)), p.since("Longest wait", w.Since), calls)
			}),
			html.Class("narrow"),
		),
		rest(len(p.Waiting.Locks), p.Waiting.Matching),
	}
}

// rest says that a list shows some of its locks only.
func rest(listed, matching int) dom.Node {
	return dom.If(listed < matching, html.P(html.Class("more"),
		dom.Textf("The first %s of %s are shown. Filter the list to see others.", thousands(listed), thousands(matching))))
}
