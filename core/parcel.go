package core

import (
	"context"
	"slices"

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

// pack makes parcels of a batch.
func pack(ds []*delivery, merge bool) []*parcel {
	var parcels []*parcel
	for i, d := range ds {
		merges := merge && d.call.script.merges
		var p *parcel
		if merges {
			p = roomFor(d.call, parcels)
		}
		if p == nil {
			p = &parcel{}
			if merges {
				most := min(len(ds)-i, maxParcel)
				p.calls, p.deliveries = make([]*delivery, 0, most), make([]int, 0, most)
			}
			parcels = append(parcels, p)
		}
		p.calls = append(p.calls, d)
		p.deliveries = append(p.deliveries, i)
	}
	return parcels
}

// roomFor finds a parcel of such calls that takes one more.
func roomFor(c *call, parcels []*parcel) *parcel {
	for _, p := range slices.Backward(parcels) {
		other := p.calls[0].call
		if other.script == c.script && other.n == c.n && len(other.words) == len(c.words) && len(p.calls) < maxParcel {
			return p
		}
	}
	return nil
}

// fail notes why nothing came back where the command does not know: when a hook of the
// client's has stopped the pipeline.
func (p *parcel) fail(err error) {
	if err != nil && p.cmd.Err() == nil && p.cmd.Val() == nil {
		p.cmd.SetErr(err)
	}
}

// wrote is called right before the command is written.
func (p *parcel) wrote() {
	for _, d := range p.calls {
		d.flight.wrote()
	}
}

// write makes the command.
func (p *parcel) write(ctx context.Context, whole bool) {
	var command []any
	if len(p.calls) == 1 {
		command = p.calls[0].call.command(whole)
	} else {
		command = merged(p.calls)
	}
	p.cmd = once{redis.NewCmd(ctx, command...), p}
}

// merged is an EVALSHA that does several calls of one kind.
func merged(ds []*delivery) []any {
	first := ds[0].call
	command := make([]any, 0, 3+len(ds)*len(first.words))
	command = append(command, evalsha, first.script.sha, len(ds)*first.n)
	for _, d := range ds {
		command = append(command, d.call.keys()...)
	}
	command = append(command, first.words[first.n:first.n+first.script.common]...)
	for _, d := range ds {
		command = append(command, d.call.args()...)
	}
	return command
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
	return answer{values: values, err: err}
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
