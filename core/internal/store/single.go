package store

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// single is one Redis.
type single struct{ server *conn.Server }

func (o single) acquire(ctx context.Context, c *Claim) (Grant, error) {
	a, sent, err := do(ctx, o.server, &c.command, c.store.config.Timeout, c.decode)
	return a.at(sent, err)
}

func (o single) release(ctx context.Context, s *Store, r Release, timeout time.Duration) (Released, error) {
	released, sent, err := do(ctx, o.server, r.command(s, false), timeout, decodeRelease)
	released.Clock.Sent = sent
	return released, err
}

func (o single) renew(r *renewal) { o.server.Queue(&r.queued) }
