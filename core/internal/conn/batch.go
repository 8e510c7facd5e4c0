package conn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

const (
	// maxBatch bounds the calls of one command, which Redis does without a break.
	maxBatch = 64
	// maxRedirections bounds how often one command that replicas must have is sent elsewhere.
	maxRedirections = 3
)

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
		if merge && q.Command.MergedArgs > 0 {
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
		first.Script.Merged == c.Script.Merged && first.MergedArgs == c.MergedArgs
}

func (b *batch) wrote() {
	for _, c := range b.calls {
		c.dispatch.wrote()
	}
}

// script is that of its calls, or does all of them.
func (b *batch) script() *Script {
	s := b.calls[0].Command.Script
	if len(b.calls) > 1 {
		s = s.Merged
	}
	return s
}

func (b *batch) makeCommand(ctx context.Context) {
	first := b.calls[0].Command
	if len(b.calls) == 1 {
		b.cmd.set(ctx, first.Script, b.whole, b, first.line(b.cmd.line[:]))
		return
	}
	merged, n := b.script(), first.calls()
	words := make([]any, 2, 3+len(b.calls)*(n*merged.keys+int(first.MergedArgs)))
	words = append(words, len(b.calls)*n*merged.keys)
	for i := range merged.keys {
		for _, c := range b.calls {
			words = append(words, c.Command.Words[i*n:(i+1)*n]...)
		}
	}
	for _, c := range b.calls {
		args := c.Command.Words[first.Keys:]
		words = append(words, args[:min(int(first.MergedArgs), len(args))]...)
	}
	b.cmd.set(ctx, merged, b.whole, b, words)
}

// divides says that a merged script was refused, perhaps because of one of its keys.
func (b *batch) divides() bool {
	return len(b.calls) > 1 && hasPrefix(b.cmd.Err(), "NOPERM", "CROSSSLOT", "MOVED", "ASK")
}

// withoutTag takes the name off a reply. One to another command leaves unknown what became of this.
func (c *Command) withoutTag(reply any, err error) (any, error) {
	switch v := reply.(type) {
	case string:
		if text, ours := strings.CutSuffix(v, c.Tag); ours {
			return text, err
		}
		return nil, fmt.Errorf("the reply is not to this command: %.64q", v)
	case []any:
		for i := range v {
			v[i], err = c.withoutTag(v[i], err)
		}
	}
	return reply, err
}

// takeReplies notes the answers to the calls. It returns those that a merged script has left to do.
func (b *batch) takeReplies() (left []*batch) {
	reply, err := b.calls[0].Command.withoutTag(b.cmd.reply())
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

func (p *pipeline) roundTrip(ctx context.Context, qs []*Queued) []answer {
	answers := make([]answer, len(qs))
	merges := len(qs) > 1 && slices.ContainsFunc(qs, func(q *Queued) bool { return q.Command.MergedArgs > 0 }) && p.merges()
	p.run(ctx, pack(qs, answers, merges))
	p.server.noteOutcome(answers[0].err)
	return answers
}

// run sends batches. What the server does not do, because its script cache is empty, the slot has moved or
// the node is gone, goes once more, by a way that follows redirections, with the text of the script; what a
// merged script has left goes by itself.
func (p *pipeline) run(ctx context.Context, batches []*batch) {
	way := p
	for len(batches) > 0 {
		wait := way.exec(ctx, batches)
		var next []*batch
		for _, b := range batches {
			err := b.cmd.Err()
			p.noteScript(b.script(), err)
			switch redirected := p.redirected(err); {
			case b.divides():
				for i := range b.calls {
					next = append(next, &batch{calls: b.calls[i : i+1]})
				}
			case redirected && p.replicates() && b.redirections < maxRedirections:
				p.redirect(ctx, b)
			case !b.whole && (isUnknownScript(err) || redirected && !p.replicates()):
				next = append(next, &batch{calls: b.calls, whole: true, redirections: b.redirections})
			default:
				next = append(next, b.takeReplies()...)
				if wait != nil {
					p.server.verifyReplicas(b, wait)
				}
			}
		}
		batches = next
		if !p.replicates() { // WAIT has to go where the scripts go
			way = p.server.pipelineTo(p.server.client)
		}
	}
}

// redirected says that another way may do what the server has not done.
func (p *pipeline) redirected(err error) bool {
	if IsClosed(err) {
		return p.client != p.server.client
	}
	return hasPrefix(err, "MOVED", "ASK")
}

// redirect sends a call, which replicas must have, to the node that has its key by now. A cluster client
// would send WAIT to any.
func (p *pipeline) redirect(ctx context.Context, b *batch) {
	c, err := b.calls[0], b.cmd.Err()
	target := p.server.ClientFor(c.Command.key())
	moved, _ := redis.IsMovedError(err)
	ask, _ := redis.IsAskError(err)
	if addr := cmp.Or(moved, ask); addr != "" {
		node, findErr := p.server.masterAt(ctx, addr)
		if findErr != nil {
			c.answer.err = errors.Join(err, findErr)
			return
		}
		target = node
	}
	p.server.pipelineTo(target).replicated.run(ctx, []*batch{{calls: b.calls, whole: b.whole, redirections: b.redirections + 1}})
}

// exec sends batches in one pipeline of go-redis. Where replicas must have what they write, its result is
// that of WAIT.
func (p *pipeline) exec(ctx context.Context, batches []*batch) (wait *redis.Cmd) {
	for _, b := range batches {
		b.makeCommand(ctx)
	}
	if lone := &batches[0].cmd; len(batches) == 1 && !p.replicates() {
		lone.SetErr(recovered(func() error { return p.client.Process(ctx, lone) }))
		return nil
	}
	pipe, done := p.newPipe()
	defer done()
	for _, b := range batches {
		if b.redirections > 0 {
			pipe.Do(ctx, "asking") // for a slot that is just moving; else it says nothing
		}
		_ = pipe.Process(ctx, &b.cmd)
	}
	if p.replicates() {
		r := p.server.config.Replicas
		wait = pipe.Do(ctx, "wait", r.N, r.Within.Milliseconds()) // tells of the writes on its connection
	}
	err := recovered(func() error { _, err := pipe.Exec(ctx); return err })
	for _, b := range batches {
		if cmd := &b.cmd; err != nil && cmd.Err() == nil && cmd.Val() == nil {
			cmd.SetErr(err) // a hook of the client's has stopped the pipeline, and told nobody
		}
	}
	return wait
}
