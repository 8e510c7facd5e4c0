package conn

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// maxBatch bounds the calls of one command, which Redis does without a break.
const maxBatch = 64

// call is a command on its way.
type call struct {
	*Queued
	answer *answer // where it goes
}

// batch is a command: one call, or several that a merged script does at once.
type batch struct {
	calls        []call
	cmd          once
	whole        bool // it has been sent before: now with the text of the script
	redirections int
}

// pack makes batches of commands that go to one server.
func pack(qs []*Queued, answers []answer, merge bool) (batches []*batch) {
	for i, q := range qs {
		at, most := -1, 1
		if merge && q.Command.Merges > 0 {
			at = slices.IndexFunc(batches, func(b *batch) bool { return b.takes(q.Command) })
			most = min(len(qs)-i, maxBatch)
		}
		if at < 0 {
			at, batches = len(batches), append(batches, &batch{calls: make([]call, 0, most)})
		}
		batches[at].calls = append(batches[at].calls, call{q, &answers[i]})
	}
	return batches
}

// takes says that the batch is of such calls, and takes one more.
func (b *batch) takes(c *Command) bool {
	first, n := b.calls[0].Command, c.calls()
	return n*(len(b.calls)+1) <= maxBatch && n == first.calls() &&
		first.Script.Merged == c.Script.Merged && first.Merges == c.Merges
}

// wrote is called when the command is written.
func (b *batch) wrote() {
	for _, c := range b.calls {
		c.dispatch().wrote()
	}
}

// makeCommand makes the command of its calls.
func (b *batch) makeCommand(ctx context.Context) {
	first := b.calls[0].Command
	if len(b.calls) == 1 {
		b.cmd.set(ctx, first.Script, b.whole, b, first.line(b.cmd.line[:]))
		return
	}
	merged, n := first.Script.Merged, first.calls()
	words := make([]any, 2, 3+len(b.calls)*(n*merged.keys+int(first.Merges)))
	words = append(words, len(b.calls)*n*merged.keys)
	for i := range merged.keys {
		for _, c := range b.calls {
			words = append(words, c.Command.Words[i*n:(i+1)*n]...)
		}
	}
	for _, c := range b.calls {
		args := c.Command.Words[first.Keys:]
		words = append(words, args[:min(int(first.Merges), len(args))]...)
	}
	b.cmd.set(ctx, &merged.Script, b.whole, b, words)
}

// divides says that a merged script was refused, perhaps because of one of its keys.
func (b *batch) divides() bool {
	return len(b.calls) > 1 && hasPrefix(b.cmd.Err(), "NOPERM", "CROSSSLOT", "MOVED", "ASK")
}

// withoutName takes the name off a reply. One to another command leaves unknown what became of this.
func (c *Command) withoutName(reply any, err error) (any, error) {
	switch v := reply.(type) {
	case string:
		if text, ours := strings.CutSuffix(v, c.Name); ours {
			return text, err
		}
		return nil, fmt.Errorf("the reply is not to this command: %.64q", v)
	case []any:
		for i := range v {
			v[i], err = c.withoutName(v[i], err)
		}
	}
	return reply, err
}

// takeReplies notes the answers to the calls. It returns those that a merged script has left to do.
func (b *batch) takeReplies() (left []*batch) {
	reply, err := b.calls[0].Command.withoutName(b.cmd.reply())
	replies, isList := reply.([]any)
	isList = isList && len(b.calls) > 1
	if isList && len(replies) != len(b.calls) {
		err = fmt.Errorf("%d replies to %d calls", len(replies), len(b.calls))
	}
	for i, c := range b.calls {
		switch {
		case err != nil:
			c.answer.err = err
		case !isList: // it is that to each
			c.answer.value = reply
		case replies[i] == nil && !c.Command.Script.isMerged():
			left = append(left, &batch{calls: b.calls[i : i+1]})
		default:
			c.answer.value = replies[i]
		}
	}
	return left
}
