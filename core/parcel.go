package core

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// maxParcel bounds the calls of one command, which Redis does without a break.
const maxParcel = 64

// parcel is a command: one call, or several that one script does at once.
type parcel struct {
	calls      []*delivery
	deliveries []int // their numbers in the batch
	cmd        once
}

// kind is what the calls of one command have in common.
type kind struct {
	script *script
	keys   int // of each
	words  int
}

// pack makes parcels of a batch.
func pack(ds []*delivery, merge bool) []*parcel {
	parcels := make([]*parcel, 0, len(ds))
	open := map[kind]*parcel{} // they take further calls
	for i, d := range ds {
		c := d.call
		k := kind{c.script, c.n, len(c.words)}
		if p := open[k]; p != nil && len(p.calls) < maxParcel {
			p.calls = append(p.calls, d)
			p.deliveries = append(p.deliveries, i)
			continue
		}
		p := &parcel{calls: ds[i : i+1 : i+1], deliveries: []int{i}}
		parcels = append(parcels, p)
		if merge && c.script.merges {
			open[k] = p
		}
	}
	return parcels
}

// wrote is called right before the command is written.
func (p *parcel) wrote() {
	for _, d := range p.calls {
		d.flight.wrote()
	}
}

// write makes the command.
func (p *parcel) write(ctx context.Context, whole bool) {
	c := p.calls[0].call
	if len(p.calls) > 1 {
		c = merged(p.calls)
	}
	p.cmd = once{redis.NewCmd(ctx, c.command(whole)...), p}
}

// merged is a call that does several of one kind.
func merged(ds []*delivery) *call {
	first := ds[0].call
	words := make([]any, 0, len(ds)*len(first.words))
	for _, d := range ds {
		words = append(words, d.call.keys()...)
	}
	words = append(words, first.words[first.n:first.n+first.script.common]...)
	for _, d := range ds {
		words = append(words, d.call.args()...)
	}
	return first.script.call(len(ds)*first.n, words...)
}

// answer is that of one of the calls.
func (p *parcel) answer(i int) answer {
	c := p.calls[i].call
	if len(p.calls) == 1 {
		return read(c, p.cmd.Cmd)
	}
	replies, err := p.cmd.Slice()
	if err == nil && len(replies) != len(p.calls) {
		err = shortReply(len(replies), len(p.calls))
	}
	if err != nil {
		return answer{err: err}
	}
	if failure, ok := replies[i].([]any); ok && len(failure) == 2 && number(failure[0]) == -1 {
		return answer{err: refusalError(text(failure[1]))}
	}
	values, err := c.values(replies[i])
	return answer{values, err}
}

// refusalError is what Redis answered to one call of several.
type refusalError string

func (e refusalError) Error() string { return string(e) }
func (refusalError) RedisError()     {}

// split makes a parcel of each call.
func (p *parcel) split() []*parcel {
	parcels := make([]*parcel, len(p.calls))
	for i := range p.calls {
		parcels[i] = &parcel{calls: p.calls[i : i+1 : i+1], deliveries: p.deliveries[i : i+1]}
	}
	return parcels
}
