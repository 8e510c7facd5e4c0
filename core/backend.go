package core

import (
	"context"
	"time"
)

// backend is where locks live: one Redis, or a quorum of several.
type backend interface {
	// ask runs a call and returns when its outcome is decided, ctx ends or the
	// timeout is over.
	ask(ctx context.Context, c *call, timeout time.Duration, s strays) ([]any, error)
	// post puts a call on its way with the next flush.
	post(d *delivery)
	// flush sends what was posted. It does not block.
	flush()
	// members are the Redis it consists of.
	members() []*node
}

// strays says what becomes of outcomes that the caller does not hear of.
type strays struct {
	// undo is called for a node where the script may have run, or may still run,
	// in vain. nil if that does no harm.
	undo func(n *node)
	// late is called for a member of a quorum that granted a lock after the
	// others had decided that it is granted.
	late func(n *node, token string)
	// missed is called for a member of a quorum that failed, now or later,
	// although the others decided that the call succeeded.
	missed func(n *node)
}

// single is a backend of one Redis.
type single struct{ nodes []*node }

func (b single) ask(ctx context.Context, c *call, timeout time.Duration, s strays) ([]any, error) {
	return b.nodes[0].exchange(ctx, c, timeout, s.undo)
}

func (b single) post(d *delivery) { b.nodes[0].outbox.add(d) }
func (b single) flush()           { b.nodes[0].outbox.flush() }
func (b single) members() []*node { return b.nodes }
