package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// latchkey with its defaults, on a go-redis client with its defaults.
var latchkeyLibrary = library{name: latchkeyName, open: openLatchkey}

type latchkey struct {
	client *redis.Client
	locker *core.Locker
}

func openLatchkey(addr string, s settings) (locker, error) {
	var opts []core.Option
	if s.lease > 0 {
		opts = append(opts, core.Lease(s.lease)) // renewed every third of it
	}
	client := s.client(addr)
	l, err := core.New(client, opts...)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &latchkey{client, l}, nil
}

func (l *latchkey) lock(ctx context.Context, key string) (held, error) {
	return ofLatchkey(l.locker.Lock(ctx, key))
}

func (l *latchkey) lockShared(ctx context.Context, key string) (held, error) {
	return ofLatchkey(l.locker.Lock(ctx, key, core.Shared()))
}

func (l *latchkey) takePermit(ctx context.Context, key string, n int) (held, error) {
	return ofLatchkey(l.locker.Lock(ctx, key, core.Permits(n)))
}

func (l *latchkey) lockAll(ctx context.Context, keys []string) (held, error) {
	m, err := l.locker.LockAll(ctx, keys)
	if err != nil {
		return nil, err
	}
	return latchkeyAllHeld{m}, nil
}

func ofLatchkey(k *core.Lock, err error) (held, error) {
	if err != nil {
		return nil, err
	}
	return latchkeyHeld{k}, nil
}

func (l *latchkey) redisKey(key string) string { return "lock:" + key }

func (l *latchkey) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(l.locker.Close(ctx), l.client.Close())
}

type latchkeyHeld struct{ k *core.Lock }

func (h latchkeyHeld) unlock() error { return h.k.Unlock(context.Background()) }
func (h latchkeyHeld) lost() bool    { return h.k.Context().Err() != nil }

type latchkeyAllHeld struct{ m *core.MultiLock }

func (h latchkeyAllHeld) unlock() error { return h.m.Unlock(context.Background()) }
func (h latchkeyAllHeld) lost() bool    { return h.m.Context().Err() != nil }
