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

// pack makes parcels of a batch. Calls that somebody may give up stay apart.
func pack(ds []*delivery, merge bool) []*parcel {
	parcels := make([]*parcel, 0, len(ds))
	var open *parcel // takes further calls
	for i, d := range ds {
		mergeable := merge && d.call.script.merges && d.flight == nil
		if mergeable && open != nil {
			open.calls = append(open.calls, d)
			open.deliveries = append(open.deliveries, i)
			if len(open.calls) == maxParcel {
				open = nil
			}
			continue
		}
		p := &parcel{calls: ds[i : i+1 : i+1], deliveries: []int{i}}
		parcels = append(parcels, p)
		if mergeable {
			open = p
		}
	}
	return parcels
}

// post puts the command into a pipeline.
func (p *parcel) post(ctx context.Context, pipe redis.Pipeliner, whole bool) {
	c := p.calls[0].call
	if len(p.calls) > 1 {
		c = merged(p.calls)
	}
	p.cmd = once{redis.NewCmd(ctx, c.command(whole)...), p.calls[0].flight}
	_ = pipe.Process(ctx, p.cmd)
}

// merged is a call that does several of its script, each of which has one key.
func merged(ds []*delivery) *call {
	first := ds[0].call
	keys := make([]any, 0, len(ds)*len(first.cmd))
	for _, d := range ds[1:] {
		keys = append(keys, d.call.word(0))
	}
	for _, d := range ds {
		keys = append(keys, d.call.cmd[4:]...)
	}
	return first.script.call(len(ds), first.lock, keys...)
}

// answer is that of one of the calls.
func (p *parcel) answer(i int) answer {
	c := p.calls[i].call
	if len(p.calls) == 1 {
		return read(c, p.cmd.Cmd)
	}
	values, err := p.cmd.Slice()
	if err == nil && len(values) != len(p.calls) {
		err = shortReply(len(values), len(p.calls))
	}
	if err != nil {
		return answer{err: err}
	}
	values = values[i : i+1]
	return answer{values, c.script.check(values)}
}

// split makes a parcel of each call.
func (p *parcel) split() []*parcel {
	parcels := make([]*parcel, len(p.calls))
	for i := range p.calls {
		parcels[i] = &parcel{calls: p.calls[i : i+1 : i+1], deliveries: p.deliveries[i : i+1]}
	}
	return parcels
}
