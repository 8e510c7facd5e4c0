package overload

import (
	"context"
	"errors"
	"math"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
)

var redsyncLibrary = library{
	name: "redsync",
	fits: func(r row) bool { return !r.open },
	open: func(r row, servers []*server, c *counts) (locker, error) {
		clients := newClients(servers, r.carefully)
		var pools []redsyncredis.Pool
		for _, c := range clients {
			pools = append(pools, goredis.NewPool(c))
		}
		return &redsyncLocker{row: r, counts: c, locker: redsync.New(pools...)}, nil
	},
}

type redsyncLocker struct {
	row    row
	counts *counts
	locker *redsync.Redsync
}

func (l *redsyncLocker) obtain(ctx context.Context, key string) (*redsync.Mutex, error) {
	o := []redsync.Option{redsync.WithExpiry(l.row.lease), redsync.WithTries(1)}
	if l.row.wait > 0 {
		o = append(o, redsync.WithTries(math.MaxInt32), redsync.WithRetryDelay(pollEvery))
	}
	ctx, cancel := context.WithTimeout(ctx, l.row.deadline())
	defer cancel()
	m := l.locker.NewMutex(key, o...)
	return m, m.LockContext(ctx)
}

func (l *redsyncLocker) lock(ctx context.Context, key string) (unlock func(), err error) {
	m, err := l.obtain(ctx, key)
	if err != nil {
		return nil, err
	}
	return func() {
		ctx, cancel := context.WithTimeout(ctx, l.row.timeout)
		defer cancel()
		_, _ = m.UnlockContext(ctx)
	}, nil
}

func (l *redsyncLocker) hold(ctx context.Context, key string) error {
	m, err := l.obtain(ctx, key)
	if err != nil {
		return err
	}
	go l.row.keep(ctx, l.counts, func(ctx context.Context) (isHeld bool, err error) {
		if isHeld, err = m.ExtendContext(ctx); errors.Is(err, redsync.ErrExtendFailed) {
			return false, nil
		}
		return isHeld, err
	})
	return nil
}
