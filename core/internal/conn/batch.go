package conn

import (
	"fmt"
	"slices"
)

// maxBatch bounds the calls of one command, which Redis does without a break.
const maxBatch = 64

// batch is a command: one call, or several that one script does at once.
type batch struct {
	calls  []*Queued
	places []int // of their answers
	cmd    once
}

// pack makes batches of commands that go to one server.
func pack(qs []*Queued, merge bool) []*batch {
	var batches []*batch
	for i, q := range qs {
		merges := merge && q.Command.Script.merges
		var b *batch
		if merges {
			b = roomFor(q.Command, batches)
		}
		if b == nil {
			b = &batch{}
			if merges {
				most := min(len(qs)-i, maxBatch)
				b.calls, b.places = make([]*Queued, 0, most), make([]int, 0, most)
			}
			batches = append(batches, b)
		}
		b.calls = append(b.calls, q)
		b.places = append(b.places, i)
	}
	return batches
}

// roomFor finds a batch of such calls that takes one more.
func roomFor(c *Command, batches []*batch) *batch {
	for _, b := range slices.Backward(batches) {
		if len(b.calls) < maxBatch && b.calls[0].Command.goesWith(c) {
			return b
		}
	}
	return nil
}

// split makes a batch of each call.
func (b *batch) split() []*batch {
	batches := make([]*batch, len(b.calls))
	for i := range b.calls {
		batches[i] = &batch{calls: b.calls[i : i+1], places: b.places[i : i+1]}
	}
	return batches
}

// wrote is called right before the command is written.
func (b *batch) wrote() {
	for _, q := range b.calls {
		q.dispatch.wrote()
	}
}

// line is the command: of several calls an EVALSHA.
func (b *batch) line(whole bool) []any {
	first := b.calls[0].Command
	if len(b.calls) == 1 {
		return first.line(b.cmd.room[:], whole)
	}
	keys := first.Keys
	words := make([]any, 0, 3+len(b.calls)*len(first.Words))
	words = append(words, evalsha, first.Script.sha, len(b.calls)*keys)
	for i := range keys {
		for _, q := range b.calls {
			words = append(words, q.Command.Words[i])
		}
	}
	for _, q := range b.calls {
		words = append(words, q.Command.Words[keys:]...)
	}
	return words
}

// read puts the answers to the calls where they belong.
func (b *batch) read(answers []answer) {
	if len(b.calls) == 1 {
		a := &answers[b.places[0]]
		a.value, a.err = b.cmd.Result()
		return
	}
	reply, err := b.cmd.Result()
	replies, isList := reply.([]any)
	if err == nil && isList && len(replies) != len(b.calls) {
		err = fmt.Errorf("%d replies to %d calls", len(replies), len(b.calls))
	}
	for i, place := range b.places {
		a := &answers[place]
		switch {
		case err != nil:
			a.err = err
		case !isList: // it is that to each
			a.value = reply
		default:
			if text, ok := refusalIn(replies[i]); ok {
				a.err = refusalError(text)
			} else {
				a.value = replies[i]
			}
		}
	}
}

// refusalIn finds an error as batch.lua returns it, which is {-1, error}.
func refusalIn(reply any) (text string, ok bool) {
	pair, _ := reply.([]any)
	if len(pair) != 2 || pair[0] != any(int64(-1)) {
		return "", false
	}
	text, _ = pair[1].(string)
	return text, true
}

// refusalError is what Redis answered to one call of several.
type refusalError string

func (e refusalError) Error() string { return string(e) }
func (refusalError) RedisError()     {}
