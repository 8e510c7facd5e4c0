package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// redislock as in its README: a plain go-redis client, Obtain and Release. Its
// README has no example of waiting; the options' comments offer LinearBackoff,
// and 10 ms is what every polling contestant gets here. The library renews
// nothing: where a row asks for that, it gets the watchdog of its README, a
// goroutine for each lock that calls Refresh every third of the lease.
var redislockLibrary = library{name: redislockName, open: openRedislock}

type redislocker struct {
	client *redis.Client
	locker *redislock.Client
	lease  time.Duration
	renew  bool
}

func openRedislock(addr string, s settings) (locker, error) {
	client := s.client(addr)
	l := &redislocker{client: client, locker: redislock.New(client), lease: 30 * time.Second}
	if s.lease > 0 {
		l.lease, l.renew = s.lease, true
	}
	return l, nil
}

func (l *redislocker) lock(ctx context.Context, key string) (held, error) {
	return l.lockAll(ctx, []string{key})
}

// lockAll is what Obtain calls, too.
func (l *redislocker) lockAll(ctx context.Context, keys []string) (held, error) {
	k, err := l.locker.ObtainMulti(ctx, keys, l.lease, &redislock.Options{RetryStrategy: redislock.LinearBackoff(pollEvery)})
	if err != nil {
		return nil, err
	}
	if l.renew {
		return watchRedislock(k, l.lease), nil
	}
	return redislockHeld{k}, nil
}

func (l *redislocker) redisKey(key string) string { return key }
func (l *redislocker) close() error               { return l.client.Close() }

type redislockHeld struct{ k *redislock.Lock }

func (h redislockHeld) unlock() error { return h.k.Release(context.Background()) }
func (h redislockHeld) lost() bool    { return false }

// watchedRedislock is a lock with the README's watchdog.
type watchedRedislock struct {
	redislockHeld
	cancel context.CancelFunc
	failed atomic.Bool
}

func watchRedislock(k *redislock.Lock, lease time.Duration) *watchedRedislock {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watchedRedislock{redislockHeld: redislockHeld{k}, cancel: cancel}
	go func() {
		t := time.NewTicker(lease / 3)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				if err := k.Refresh(ctx, lease, nil); err != nil {
					w.failed.Store(ctx.Err() == nil)
					cancel()
					return
				}
			}
		}
	}()
	return w
}

func (w *watchedRedislock) unlock() error {
	w.cancel()
	return w.redislockHeld.unlock()
}

func (w *watchedRedislock) lost() bool { return w.failed.Load() }
