package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// latchkey with its defaults: as its README recommends it, with the client that core.Open makes,
// and on a client of go-redis with that one's defaults.
var (
	latchkeyLibrary = library{name: latchkeyName, open: func(addr string, s settings) (locker, error) { return openLatchkey(addr, s.options()...) }}
	plainLibrary    = library{name: plainName, open: func(addr string, s settings) (locker, error) { return openPlain(addr, s.options()...) }}
)

func (s settings) options() []core.Option {
	if s.lease == 0 {
		return nil
	}
	return []core.Option{core.Lease(s.lease)} // renewed every third of it
}

type latchkey struct {
	locker *core.Locker
	client *redis.Client // unless the Locker has its own
}

func openLatchkey(addr string, opts ...core.Option) (*latchkey, error) {
	l, err := core.Open(context.Background(), "redis://"+addr, opts...)
	if err != nil {
		return nil, err
	}
	return &latchkey{locker: l}, nil
}

func openPlain(addr string, opts ...core.Option) (*latchkey, error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	l, err := core.New(client, opts...)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &latchkey{l, client}, nil
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
	err := l.locker.Close(ctx)
	if l.client != nil {
		err = errors.Join(err, l.client.Close())
	}
	return err
}

type latchkeyHeld struct{ k *core.Lock }

func (h latchkeyHeld) unlock() error { return h.k.Unlock(context.Background()) }
func (h latchkeyHeld) lost() bool    { return h.k.Context().Err() != nil }

type latchkeyAllHeld struct{ m *core.MultiLock }

func (h latchkeyAllHeld) unlock() error { return h.m.Unlock(context.Background()) }
func (h latchkeyAllHeld) lost() bool    { return h.m.Context().Err() != nil }
