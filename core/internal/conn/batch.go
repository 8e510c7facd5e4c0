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
	again        bool // it has been sent before: now with the text of the script
	redirections int
}

// pack makes batches of commands that go to one server.
func pack(qs []*Queued, answers []answer, merge bool) []*batch {
	var batches []*batch
	for i, q := range qs {
		merges := merge && q.Command.Merges > 0
		var b *batch
		if merges {
			b = roomFor(q.Command, batches)
		}
		if b == nil {
			b = &batch{}
			if merges {
				b.calls = make([]call, 0, min(len(qs)-i, maxBatch))
			}
			batches = append(batches, b)
		}
		b.calls = append(b.calls, call{q, &answers[i]})
	}
	return batches
}

// roomFor finds a batch of such calls that takes one more.
func roomFor(c *Command, batches []*batch) *batch {
	for _, b := range slices.Backward(batches) {
		first := b.calls[0].Command
		if n := first.each(); n*(len(b.calls)+1) <= maxBatch && n == c.each() && first.Script.Merged == c.Script.Merged && first.Merges == c.Merges {
			return b
		}
	}
	return nil
}

// alone makes a batch of one call.
func (b *batch) alone(i int) *batch {
	return &batch{calls: b.calls[i : i+1]}
}

// wrote is called when the command is written.
func (b *batch) wrote() {
	for _, c := range b.calls {
		c.dispatch().wrote()
	}
}

// set makes its command.
func (b *batch) set(ctx context.Context) {
	first := b.calls[0].Command
	if len(b.calls) == 1 {
		b.cmd.set(ctx, first.Script, b.again, b, first.line(b.cmd.room[:]))
		return
	}
	merged, n := first.Script.Merged, first.each()
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
	b.cmd.set(ctx, &merged.Script, b.again, b, words)
}

// divides says that a merged script was refused, perhaps because of one of its keys.
func (b *batch) divides() bool {
	return len(b.calls) > 1 && hasPrefix(b.cmd.Err(), "NOPERM", "CROSSSLOT", "MOVED", "ASK")
}

// named takes the name off a reply. One to another command leaves unknown what became of this.
func (c *Command) named(reply any, err error) (any, error) {
	switch v := reply.(type) {
	case string:
		if text, ours := strings.CutSuffix(v, c.Name); ours {
			return text, err
		}
		return nil, fmt.Errorf("the reply is not to this command: %.64q", v)
	case []any:
		for i := range v {
			v[i], err = c.named(v[i], err)
		}
	}
	return reply, err
}

// read notes the answers to the calls. It returns those that a merged script has left to do.
func (b *batch) read() (left []*batch) {
	reply, err := b.calls[0].Command.named(b.cmd.answer())
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
			left = append(left, b.alone(i))
		default:
			c.answer.value = replies[i]
		}
	}
	return left
}
