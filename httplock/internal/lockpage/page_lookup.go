package lockpage

import (
	"strconv"
	"strings"

	dom "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/contention"
)

const exclusive = "exclusive"

func (p page) lookUpSection() dom.Node {
	content := dom.Group{
		html.Aria("labelledby", "look-up"),
		html.Div(html.Class("title"), html.H2(html.ID("look-up"), dom.Text("Look up a key in Redis"))),
		p.lookUpForm(),
		p.notice(),
	}
	if p.LookUp != nil {
		all := p.changed(func(v *view) { v.key, v.lookUp = "", false })
		content = append(content,
			html.Div(html.Class("result"), p.lookUpTitle(), p.lookUpResult(), p.queueTable()),
			html.P(html.A(html.Href(all), dom.Text("All locks of this process"))),
		)
	}
	return html.Section(content)
}

func (p page) lookUpForm() dom.Node {
	filter := p.view.filter
	return html.Form(html.Class("ask"), html.Method("get"),
		html.Label(html.For("key"), dom.Text("Key")),
		html.Input(html.ID("key"), html.Name("key"), html.Type("text"), html.Required(), asWritten(), html.Aria("describedby", "key-help"),
			dom.If(p.view.lookUp && plain(p.view.key), html.Value(p.view.key))),
		dom.If(filter != "" && plain(filter), hiddenField("filter", filter)),
		p.keep(),
		html.Button(dom.Text("Look up")),
		html.Span(html.ID("key-help"), soft, dom.Text("as the program writes it, without the prefix in Redis")),
	)
}

// notice says what the POST before has done.
func (p page) notice() dom.Node {
	notice := func(kind, role, text string) dom.Node {
		return html.P(html.Class("notice "+kind), html.Role(role), dom.Text(text))
	}
	switch p.Outcome {
	case freed:
		done := "The lock was freed."
		if l := p.LookUp; l != nil && l.Form != "" && l.Form != exclusive {
			done = "The holder was evicted."
		}
		return notice("good", "status", done+" Below is what Redis says now.")
	case free:
		return notice("busy", "status", "The lock was free already. Nothing was done.")
	case changed:
		return notice("bad", "alert", "The lock has changed hands since you looked. Nothing was done.")
	case unsure:
		return notice("bad", "alert", "Redis did not confirm. The lock may have been freed or not.")
	}
	return nil
}

func (p page) lookUpTitle() dom.Node {
	return html.H3(html.Span(html.Class("key"), shown(p.LookUp.Key)), p.stateBadge())
}

func (p page) stateBadge() dom.Node {
	l := p.LookUp
	switch {
	case l.Error != "":
		return badge("bad", "unknown")
	case l.State == core.StateFree && l.Meant != "":
		return badge("busy", "free")
	case l.State == core.StateFree:
		return badge("good", "free")
	case l.Form == exclusive && l.Here != nil:
		return badge("busy", "held by this process")
	case l.Form == exclusive:
		return badge("busy", "held")
	case l.State == core.StateHeld && l.Form == "shared":
		return badge("busy", "shared by "+thousands(len(l.Holders)))
	case l.State == core.StateHeld:
		return badge("busy", "permits in use: "+thousands(l.Weight))
	case l.State == core.StateOutcomeUnknown:
		return badge("bad", "outcome unknown")
	}
	return badge("busy", strings.ReplaceAll(string(l.State), "_", " "))
}

func (p page) lookUpResult() dom.Node {
	l := p.LookUp
	switch {
	case l.Error != "":
		return dom.Group{
			html.P(html.Role("alert"), dom.Text(l.Error)),
			dom.Iff(l.Here != nil, func() dom.Node {
				held := dom.Textf("This process believes that it holds it, for %s, as ", p.age(l.Here.Since))
				return html.P(held, ownerText(l.Here.Owner), dom.Text("."))
			}),
		}
	case l.State == core.StateFree:
		waiting := ""
		if l.Waiters > 0 {
			waiting = " Calls of this process that wait for it: " + thousands(l.Waiters) + "."
		}
		return dom.Group{
			dom.If(l.Meant != "", html.P(html.Role("alert"),
				dom.Text("The key begins with the prefix, which Redis then has twice. Did you mean "), p.keyLink(l.Meant), dom.Text("?"))),
			html.P(dom.Text("Nobody holds it." + waiting)),
		}
	case len(l.Holders) > 1:
		return dom.Group{p.facts(), p.holdersTable()}
	}
	return dom.Group{p.facts(), dom.If(p.forces, p.forceDetails())}
}

func (p page) facts() dom.Node {
	l := p.LookUp
	left := "Left until it is free"
	switch l.State {
	case core.StateHeld:
		left = "Left in Redis unless renewed"
	case core.StateDedupWindow:
		left = "Left of the window"
	}
	ttl := "no end"
	if l.TTL >= 0 {
		ttl = duration(l.TTL)
	}
	facts := dom.Group{fact(left, ttl), fact("Calls waiting here", thousands(l.Waiters))}
	if l.Owner != "" {
		facts = append(dom.Group{
			html.Div(html.Class("wide"), html.Dt(dom.Text("Owner")), html.Dd(
				dom.Iff(l.Process != nil, func() dom.Node { return dom.Group{p.process(l.Process), html.Br()} }),
				ownerText(l.Owner),
			)),
			fact("Holds", l.holds()),
			dom.If(l.Here == nil && l.HeldFor > 0, fact("Held for", duration(l.HeldFor))),
			dom.Iff(l.Here == nil && l.Renewed != nil, func() dom.Node { return fact("Renewed", duration(*l.Renewed)+" ago"+l.stopped()) }),
		}, facts...)
	}
	if h := l.Here; h != nil {
		renewals := thousands(h.Renewals)
		if h.Fixed && h.Renewals == 0 {
			renewals = "none, fixed lease"
		}
		facts = append(facts, fact("Held for", p.age(h.Since)), fact("Renewals", renewals), fact("Fencing token", strconv.FormatInt(h.Token, 10)))
	}
	return html.Dl(facts)
}

func fact(term, text string) dom.Node {
	return html.Div(html.Dt(dom.Text(term)), html.Dd(dom.Text(text)))
}

func (p page) process(of *contention.ProcessJSON) dom.Node {
	return dom.Textf("process %d of “%s”, up for %s", of.PID, of.Name, p.age(of.Since))
}

// queueTable shows which processes wait.
func (p page) queueTable() dom.Node {
	return dom.Iff(len(p.LookUp.Queue) > 0, func() dom.Node {
		return table("Processes that wait for it",
			[]dom.Node{column("Process"), column("Waits for", number), column("Form"), column("Is told")},
			dom.Map(p.LookUp.Queue, func(w contention.WaitingJSON) dom.Node {
				who, told := dom.Text("somebody"), "by message"
				if w.Process != nil {
					who = p.process(w.Process)
				}
				if w.Polls {
					told = "never: it polls"
				}
				return row(
					cell("Process", who, dom.Iff(w.Owner != "", func() dom.Node { return dom.Group{dom.Text(" as "), ownerText(w.Owner)} })),
					cell("Waits for", number, dom.Text(duration(w.Waited))), cell("Form", dom.Text(w.Form)), cell("Is told", dom.Text(told)),
				)
			}),
		)
	})
}

func (h holder) holds() string {
	if h.Weight > 1 {
		return thousands(h.Count) + ", with " + thousands(h.Weight) + " permits"
	}
	return thousands(h.Count)
}

// stopped says that the process is dead or does not run.
func (h holder) stopped() string {
	if h.Stopped {
		return ": it does not renew"
	}
	return ""
}

func (p page) holdersTable() dom.Node {
	columns := []dom.Node{column("Owner"), column("Holds", number), column("Left unless renewed", number)}
	if p.forces {
		columns = append(columns, column("By force"))
	}
	return dom.Group{
		table("Those who hold it", columns, dom.Map(p.LookUp.Holders, p.holderRow)),
		dom.If(p.forces, html.P(html.Class("more"), dom.Text("To put a holder out does not stop it. "+
			"It learns of it at its next renewal, a third of the lease later at most. Until then one more may be at work."))),
	}
}

func (p page) holderRow(h holder) dom.Node {
	var process dom.Node
	switch {
	case h.Here != nil:
		process = dom.Text("this process, for " + p.age(h.Here.Since))
	case h.Process != nil:
		process = p.process(h.Process)
	}
	return row(
		cell("Owner", process, dom.Text(" "), ownerText(h.Owner)),
		cell("Holds", number, dom.Text(h.holds())),
		cell("Left unless renewed", number, dom.Text(duration(h.TTL)+h.stopped())),
		dom.If(p.forces, cell("By force", p.forceForm(h.Owner, "Put it out now"))),
	)
}

// forceDetails says what freeing the lock would entail, and frees it.
func (p page) forceDetails() dom.Node {
	summary, button := "Free this lock by force", "Free it now"
	var entails string
	switch p.LookUp.State {
	case core.StateHeld:
		entails = "This does not stop the holder. It learns that it has lost the lock at its next renewal, " +
			"a third of the lease later at most. Until then two may be at work."
	case core.StateParked:
		entails = "The lock was handed over, and waits for whoever has its ticket. " +
			"Without the lock that one competes like a stranger, and others may come before."
	case core.StateAnswered:
		entails = "The work was done, and those who ask for it again get its result or answer. Without that the next one does it again."
	case core.StateOutcomeUnknown:
		entails = "Nobody knows what the last attempt at the work has done. Without the lock the next one is taken for the first."
	case core.StateForeign:
		entails = "This is no lock of latchkey. Its holder does not learn of it: two may be at work until the holder is done."
	default:
		summary, button = "End this window", "End it now"
		entails = "The work was done, and in this window it is not to be done again. Without the window it can be."
	}
	return html.Details(html.Summary(dom.Text(summary)), html.P(dom.Text(entails)), p.forceForm(p.LookUp.Owner, button))
}
