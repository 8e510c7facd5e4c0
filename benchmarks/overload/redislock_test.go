package overload

import (
	"context"
	"errors"

	"github.com/bsm/redislock"
)

var redislockLibrary = library{
	name: "redislock",
	fits: func(r row) bool { return !r.open && !r.quorum },
	open: func(r row, servers []*server, c *counts) (locker, error) {
		clients := newClients(servers, r.carefully)
		return &redislockLocker{row: r, counts: c, locker: redislock.New(clients[0])}, nil
	},
}

type redislockLocker struct {
	row    row
	counts *counts
	locker *redislock.Client
}

func (l *redislockLocker) obtain(ctx context.Context, key string) (*redislock.Lock, error) {
	o := &redislock.Options{}
	if l.row.wait > 0 {
		o.RetryStrategy = redislock.LinearBackoff(pollEvery)
	}
	ctx, cancel := context.WithTimeout(ctx, l.row.deadline())
	defer cancel()
	return l.locker.Obtain(ctx, key, l.row.lease, o)
}

func (l *redislockLocker) lock(ctx context.Context, key string) (unlock func(), err error) {
	k, err := l.obtain(ctx, key)
	if err != nil {
		return nil, err
	}
	return func() {
		ctx, cancel := context.WithTimeout(ctx, l.row.timeout)
		defer cancel()
		_ = k.Release(ctx)
	}, nil
}

func (l *redislockLocker) hold(ctx context.Context, key string) error {
	k, err := l.obtain(ctx, key)
	if err != nil {
		return err
	}
	go l.row.keep(ctx, l.counts, func(ctx context.Context) (isHeld bool, err error) {
		if err = k.Refresh(ctx, l.row.lease, nil); errors.Is(err, redislock.ErrNotObtained) {
			return false, nil
		}
		return true, err
	})
	return nil
}
