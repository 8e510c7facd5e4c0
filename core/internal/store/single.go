package store

import (
	"context"
	"time"
)

// single is a Store on one Redis.
type single struct{ *Store }

func (s single) acquire(ctx context.Context, c *Claim) (Grant, error) {
	a, sent, err := do(ctx, s.servers[0], &c.command, s.config.Timeout, c.decode)
	return a.at(sent, err)
}

func (s single) release(ctx context.Context, r Release, timeout time.Duration) (Released, error) {
	released, sent, err := do(ctx, s.servers[0], r.command(s.Store, false), timeout, decodeRelease)
	released.Clock.Sent = sent
	return released, err
}

func (s single) renew(r *renewal) { s.servers[0].Queue(&r.queued) }
