package overload

import (
	"context"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

var latchkeyLibrary = library{name: "latchkey", fits: func(row) bool { return true }, open: openLatchkey}

type latchkeyLocker struct {
	row    row
	locker *core.Locker
}

func openLatchkey(r row, servers []*server, c *counts) (locker, error) {
	clients := newClients(servers, func(o *redis.Options) {
		if r.open { // as core.Open does
			o.ContextTimeoutEnabled, o.DialTimeout, o.DialerRetries = true, r.timeout, 1
		}
	})
	options := []core.Option{core.Timeout(r.timeout), core.Lease(r.lease), core.Observe(c), core.Logger(slog.New(slog.DiscardHandler))}
	l := &latchkeyLocker{row: r}
	var err error
	if r.quorum {
		var all []redis.UniversalClient
		for _, c := range clients {
			all = append(all, c)
		}
		l.locker, err = core.NewQuorum(all, options...)
	} else {
		l.locker, err = core.New(clients[0], options...)
	}
	return l, err
}

// Observe counts compensations and lost locks.
func (c *counts) Observe(_ context.Context, e core.Event) context.Context {
	switch e.Kind {
	case core.EventLost:
		c.lost.Add(1)
	case core.EventCompensating:
		c.compensating.Add(1)
	case core.EventCompensated:
		c.compensating.Add(-1)
	}
	return nil
}

func (l *latchkeyLocker) lock(ctx context.Context, key string) (unlock func(), err error) {
	var k *core.Lock
	if l.row.wait > 0 {
		k, err = l.locker.Lock(ctx, key, core.Wait(l.row.wait))
	} else {
		k, err = l.locker.TryLock(ctx, key)
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = k.Unlock(ctx) }, nil
}

func (l *latchkeyLocker) hold(ctx context.Context, key string) error {
	_, err := l.locker.Lock(ctx, key)
	return err
}
