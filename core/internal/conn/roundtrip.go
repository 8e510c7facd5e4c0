package conn

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"
)

// maxRedirections bounds how often one command that replicas must have is sent elsewhere.
const maxRedirections = 3

// roundTrip sends commands and returns their answers.
func (p *pipeline) roundTrip(ctx context.Context, qs []*Queued) []answer {
	answers := make([]answer, len(qs))
	merges := len(qs) > 1 && slices.ContainsFunc(qs, func(q *Queued) bool { return q.Command.Merges > 0 }) && p.merges()
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
	if len(batches) == 1 && !p.replicates() {
		_ = p.client.Process(ctx, &batches[0].cmd) // which keeps its error
		return nil
	}
	pipe := p.client.Pipeline()
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
	_, err := pipe.Exec(ctx)
	for _, b := range batches {
		if cmd := &b.cmd; err != nil && cmd.Err() == nil && cmd.Val() == nil {
			cmd.SetErr(err) // a hook of the client's has stopped the pipeline, and told nobody
		}
	}
	return wait
}
