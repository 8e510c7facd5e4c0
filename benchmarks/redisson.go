package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// A read-write lock as Redisson's RReadWriteLock has it in Redis, by scripts of our own and
// go-redis alone: a hash with a mode and the holders' counts, a key with a lease for each hold
// of a reader, a channel that hears when the lock is free. Each call is a thread of its own to
// it. Whoever waits subscribes, tries again when something is heard, and at the latest when the
// lock's lease ends.
var redissonLibrary = library{name: redissonName, open: openRedisson}

var (
	// KEYS: lock, ARGV: lease, holder, start of the names of leases. All return nil for success.
	redissonRead = redis.NewScript(`
local lock, lease, me = KEYS[1], tonumber(ARGV[1]), ARGV[2]
local mode = redis.call('HGET', lock, 'mode')
if mode == 'write' and redis.call('HEXISTS', lock, me .. ':write') == 0 then
  return redis.call('PTTL', lock)
end
if not mode then redis.call('HSET', lock, 'mode', 'read') end
local hold = redis.call('HINCRBY', lock, me, 1)
redis.call('SET', ARGV[3] .. me .. ':rwlock_timeout:' .. hold, 1, 'PX', lease)
redis.call('PEXPIRE', lock, math.max(redis.call('PTTL', lock), lease))
return nil`)
	// KEYS: lock, ARGV: lease, holder.
	redissonWrite = redis.NewScript(`
local lock, me = KEYS[1], ARGV[2] .. ':write'
if redis.call('EXISTS', lock) == 1 and redis.call('HEXISTS', lock, me) == 0 then
  return redis.call('PTTL', lock)
end
redis.call('HSET', lock, 'mode', 'write')
redis.call('HINCRBY', lock, me, 1)
redis.call('PEXPIRE', lock, ARGV[1])
return nil`)
	// KEYS: lock, channel; ARGV: as for redissonRead. A lock that others go on sharing lasts as
	// long as the longest of their leases.
	redissonReadEnd = redis.NewScript(`
local lock, me = KEYS[1], ARGV[2]
if redis.call('HEXISTS', lock, me) == 0 then return 0 end
local hold = redis.call('HINCRBY', lock, me, -1)
if hold == 0 then redis.call('HDEL', lock, me) end
redis.call('DEL', ARGV[3] .. me .. ':rwlock_timeout:' .. hold + 1)
local longest = 0
for _, other in ipairs(redis.call('HKEYS', lock)) do
  local count = tonumber(redis.call('HGET', lock, other))
  for n = 1, count or 0 do
    longest = math.max(longest, redis.call('PTTL', ARGV[3] .. other .. ':rwlock_timeout:' .. n))
  end
end
if longest > 0 then
  redis.call('PEXPIRE', lock, longest)
elseif redis.call('HGET', lock, 'mode') == 'read' then
  redis.call('DEL', lock)
  redis.call('PUBLISH', KEYS[2], 0)
end
return nil`)
	// KEYS: lock, channel; ARGV: lease, holder.
	redissonWriteEnd = redis.NewScript(`
local lock, me = KEYS[1], ARGV[2] .. ':write'
if redis.call('HEXISTS', lock, me) == 0 then return 0 end
if redis.call('HINCRBY', lock, me, -1) > 0 then
  redis.call('PEXPIRE', lock, ARGV[1])
  return nil
end
redis.call('HDEL', lock, me)
if redis.call('HLEN', lock) == 1 then
  redis.call('DEL', lock)
else
  redis.call('HSET', lock, 'mode', 'read')
end
redis.call('PUBLISH', KEYS[2], 1)
return nil`)
)

const redissonLease = 30 * time.Second

type redisson struct {
	client  *redis.Client
	process string
	holds   atomic.Uint64

	mu    sync.Mutex
	heard map[string]*heard // by channel
}

func openRedisson(addr string, s settings) (locker, error) {
	return &redisson{client: s.client(addr), process: uuid.NewString(), heard: map[string]*heard{}}, nil
}

func (l *redisson) lock(ctx context.Context, key string) (held, error) {
	return l.take(ctx, key, redissonWrite, redissonWriteEnd)
}

func (l *redisson) lockShared(ctx context.Context, key string) (held, error) {
	return l.take(ctx, key, redissonRead, redissonReadEnd)
}

func (l *redisson) take(ctx context.Context, key string, begin, end *redis.Script) (held, error) {
	h := &redissonHeld{
		locker: l, end: end, keys: []string{key, "redisson_rwlock:{" + key + "}"},
		args: []any{redissonLease.Milliseconds(), fmt.Sprintf("%s:%d", l.process, l.holds.Add(1)), "{" + key + "}:"},
	}
	var next <-chan struct{}
	for {
		ttl, err := begin.Run(ctx, l.client, h.keys[:1], h.args...).Int64()
		switch {
		case errors.Is(err, redis.Nil):
			return h, nil
		case err != nil:
			return nil, err
		case next != nil:
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-next:
			case <-time.After(time.Duration(ttl) * time.Millisecond):
			}
		}
		if next, err = l.listen(ctx, h.keys[1]); err != nil {
			return nil, err
		}
	}
}

// listen returns what is closed with the next message.
func (l *redisson) listen(ctx context.Context, channel string) (<-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.heard[channel]
	if h == nil {
		h = &heard{messages: l.client.Subscribe(ctx, channel), next: make(chan struct{}), done: make(chan struct{})}
		if _, err := h.messages.Receive(ctx); err != nil {
			return nil, errors.Join(err, h.messages.Close())
		}
		l.heard[channel] = h
		go h.run()
	}
	return h.wait(), nil
}

func (l *redisson) redisKey(key string) string { return key }

func (l *redisson) close() error {
	var errs []error
	for _, h := range l.heard {
		errs = append(errs, h.messages.Close())
		<-h.done
	}
	return errors.Join(append(errs, l.client.Close())...)
}

// heard is a channel that this process has subscribed to.
type heard struct {
	messages *redis.PubSub
	done     chan struct{}

	mu   sync.Mutex
	next chan struct{} // closed with the next message
}

func (h *heard) wait() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next
}

// run wakes all that wait. To wake but one with the message of a reader, as Redisson does,
// leaves other readers asleep beside it.
func (h *heard) run() {
	defer close(h.done)
	for range h.messages.Channel() {
		h.mu.Lock()
		close(h.next)
		h.next = make(chan struct{})
		h.mu.Unlock()
	}
}

type redissonHeld struct {
	locker *redisson
	end    *redis.Script
	keys   []string
	args   []any
}

func (h *redissonHeld) unlock() error {
	err := h.end.Run(context.Background(), h.locker.client, h.keys, h.args...).Err()
	switch {
	case errors.Is(err, redis.Nil):
		return nil
	case err == nil:
		err = errors.New("redisson: the lock was not ours any more")
	}
	return err
}

func (h *redissonHeld) lost() bool { return false }
