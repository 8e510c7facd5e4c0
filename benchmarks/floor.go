package main

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// The floor is what any lock on Redis costs that is safe to release: a script
// that sets the key if there is none, and one that deletes it if it is still
// ours. go-redis with its defaults, nothing else; under contention it polls.
var floorLibrary = library{name: floorName, open: openFloor}

var (
	floorAcquire = redis.NewScript(`return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])`)
	floorRelease = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
)

type floor struct {
	client *redis.Client
	id     string
	n      atomic.Uint64
}

func openFloor(addr string, s settings) (locker, error) {
	return &floor{
		client: s.client(addr),
		id:     strconv.FormatInt(time.Now().UnixNano(), 36) + ":",
	}, nil
}

func (f *floor) lock(ctx context.Context, key string) (held, error) {
	value := f.id + strconv.FormatUint(f.n.Add(1), 10)
	for {
		err := floorAcquire.Run(ctx, f.client, []string{key}, value, 30000).Err()
		if err == nil {
			return &floorHeld{f.client, key, value}, nil
		}
		if !errors.Is(err, redis.Nil) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

func (f *floor) redisKey(key string) string { return key }
func (f *floor) close() error               { return f.client.Close() }

type floorHeld struct {
	client     *redis.Client
	key, value string
}

func (h *floorHeld) unlock() error {
	n, err := floorRelease.Run(context.Background(), h.client, []string{h.key}, h.value).Int()
	if err == nil && n != 1 {
		err = errors.New("floor: the lock was not ours any more")
	}
	return err
}

func (h *floorHeld) lost() bool { return false }
