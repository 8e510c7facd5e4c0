package main

import (
	"context"
	"errors"
	"math"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// redsync as in its README: one pool on a plain go-redis client, a new Mutex for
// each use, its default expiry of 8 s. Its default wait, 32 tries 50 to 250 ms
// apart, gives up under contention and would be the slowest by far; it gets as
// many tries as it takes, and the 10 ms of the others.
var redsyncLibrary = library{name: redsyncName, sends: []string{"set"}, open: openRedsync}

type redsyncer struct {
	client *redis.Client
	sync   *redsync.Redsync
}

func openRedsync(addr string, s settings) (locker, error) {
	client := s.client(addr)
	return &redsyncer{client, redsync.New(goredis.NewPool(client))}, nil
}

func (l *redsyncer) lock(ctx context.Context, key string) (held, error) {
	m := l.sync.NewMutex(key, redsync.WithTries(math.MaxInt), redsync.WithRetryDelay(pollEvery))
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return redsyncHeld{m}, nil
}

func (l *redsyncer) redisKey(key string) string { return key }
func (l *redsyncer) close() error               { return l.client.Close() }

type redsyncHeld struct{ m *redsync.Mutex }

func (h redsyncHeld) unlock() error {
	ok, err := h.m.Unlock()
	if err == nil && !ok {
		err = errors.New("redsync: the lock was not ours any more")
	}
	return err
}

func (h redsyncHeld) lost() bool { return false }
