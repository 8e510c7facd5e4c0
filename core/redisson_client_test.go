package core_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// A redisson does on the wire what the RLock of one Redisson 4.x client (one JVM)
// does. It is written from the documented behaviour; no line of it is shared with
// core, and it takes names of Redis, not keys of ours.
type redisson struct {
	rdb     redis.UniversalClient
	id      string
	sharded bool // as a cluster with shardedSubscriptionMode AUTO or ON
	publish string

	waiting atomic.Int32 // threads that sleep until a message or the end of a lease
	heard   atomic.Int32 // messages
	mu      sync.Mutex
	entries map[string]*redissonEntry // by lock name
}

// A redissonEntry is the one subscription that all threads share which wait for a
// lock. A message wakes one of them.
type redissonEntry struct {
	sub     *redis.PubSub
	threads int
	latch   chan struct{}
}

// A javaThread locks in the name of <client uuid>:<thread>.
type javaThread struct {
	*redisson
	owner string
	lease time.Duration // leaseTime, or the watchdog's time-out where there is none
}

// patience is for a loaded machine. It is shorter than Java's sleep, which lasts as
// long as the lease that it saw, 30 s: what ends within it was woken.
const patience = 20 * time.Second

var (
	errNotOwner = errors.New("the thread does not hold the lock") // an IllegalMonitorStateException
	errFree     = errors.New("there is nothing to free")
)

func newRedisson(rdb redis.UniversalClient, sharded bool) *redisson {
	r := &redisson{rdb: rdb, id: uuid.NewString(), sharded: sharded, publish: "PUBLISH", entries: map[string]*redissonEntry{}}
	if sharded {
		r.publish = "SPUBLISH"
	}
	return r
}

// thread has the default time-out of Redisson's watchdog.
func (r *redisson) thread(n int) *javaThread {
	return &javaThread{r, fmt.Sprintf("%s:%d", r.id, n), 30 * time.Second}
}

func (j *javaThread) leasing(d time.Duration) *javaThread {
	return &javaThread{j.redisson, j.owner, d}
}

var (
	redissonTry = redis.NewScript(`
		local mine = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
		if not mine and redis.call('EXISTS', KEYS[1]) == 1 then
			return redis.call('PTTL', KEYS[1])
		end
		redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
		redis.call('PEXPIRE', KEYS[1], ARGV[2])
		return nil`)
	// KEYS[3] remembers what became of the request, should it arrive again.
	redissonUnlock = redis.NewScript(`
		local before = redis.call('GET', KEYS[3])
		if before then
			return tonumber(before)
		end
		if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
			return nil
		end
		local free = 0
		if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then
			redis.call('PEXPIRE', KEYS[1], ARGV[2])
		else
			redis.call('DEL', KEYS[1])
			redis.call(ARGV[3], KEYS[2], '0')
			free = 1
		end
		redis.call('SET', KEYS[3], free, 'PX', 10000)
		return free`)
	redissonForce = redis.NewScript(`
		local n = redis.call('DEL', KEYS[1])
		if n == 1 then
			redis.call(ARGV[1], KEYS[2], '0')
		end
		return n`)
	redissonRenew = redis.NewScript(`
		local n = redis.call('HEXISTS', KEYS[1], ARGV[1])
		if n == 1 then
			redis.call('PEXPIRE', KEYS[1], ARGV[2])
		end
		return n`)
)

// prefixed is how Redisson names what belongs to a lock. Our names have no braces,
// for which it has another rule.
func prefixed(prefix, name string) string { return prefix + ":{" + name + "}" }

func channelIn(name string) string { return prefixed("redisson_lock__channel", name) }

// tryLock returns how long the lock lasts that another has.
func (j *javaThread) tryLock(name string) (bool, time.Duration, error) {
	ttl, err := redissonTry.Run(background, j.rdb, []string{name}, j.owner, j.lease.Milliseconds()).Int64()
	if errors.Is(err, redis.Nil) {
		return true, 0, nil
	}
	return false, time.Duration(ttl) * time.Millisecond, err
}

// tries is tryLock with the wanted outcome. It returns how long another has it.
func (j *javaThread) tries(tb testing.TB, name string, want bool) time.Duration {
	tb.Helper()
	ok, ttl, err := j.tryLock(name)
	if ok != want || err != nil {
		tb.Fatalf("tryLock of %s: %v, %v; want %v", name, ok, err, want)
	}
	return ttl
}

// lock never polls, but sleeps until a message comes or the lease ends that it last
// saw. The test interrupts it by ctx.
func (j *javaThread) lock(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience) // a test is to fail, not to hang
	defer cancel()
	if ctx.Err() != nil {
		return ctx.Err() // a thread without rivals never sleeps
	}
	if ok, _, err := j.tryLock(name); ok || err != nil {
		return err
	}
	e, err := j.subscribe(name)
	if err != nil {
		return err
	}
	defer j.unsubscribe(name, e)
	for {
		ok, ttl, err := j.tryLock(name)
		if ok || err != nil {
			return err
		}
		if err := j.sleep(ctx, e, ttl); err != nil {
			return err
		}
	}
}

// waits locks, and unlocks at once, in another goroutine. It returns when the
// thread sleeps.
func (j *javaThread) waits(tb testing.TB, name string) <-chan error {
	tb.Helper()
	got := make(chan error, 1)
	go func() {
		err := j.lock(background, name)
		got <- err
		if err == nil {
			_ = j.unlock(name)
		}
	}()
	redistest.Await(tb, patience, "Java to wait", func() bool { return j.waiting.Load() == 1 })
	return got
}

func (j *javaThread) sleep(ctx context.Context, e *redissonEntry, ttl time.Duration) error {
	j.waiting.Add(1)
	defer j.waiting.Add(-1)
	select {
	case <-e.latch:
	case <-time.After(ttl):
	case <-ctx.Done():
	}
	return ctx.Err()
}

func (r *redisson) subscribe(name string) (*redissonEntry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[name]; e != nil {
		e.threads++
		return e, nil
	}
	subscribe := r.rdb.Subscribe
	if r.sharded {
		subscribe = r.rdb.SSubscribe
	}
	e := &redissonEntry{sub: subscribe(background, channelIn(name)), threads: 1, latch: make(chan struct{}, 100)}
	if _, err := e.sub.Receive(background); err != nil { // the confirmation
		return nil, errors.Join(err, e.sub.Close())
	}
	go func() {
		for m := range e.sub.Channel() {
			r.heard.Add(1)
			if n, err := strconv.ParseInt(m.Payload, 10, 64); err == nil && n == 0 { // it is read as a Long
				select {
				case e.latch <- struct{}{}:
				default: // enough for all threads
				}
			}
		}
	}()
	r.entries[name] = e
	return e, nil
}

func (r *redisson) unsubscribe(name string, e *redissonEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.threads--; e.threads == 0 {
		delete(r.entries, name)
		_ = e.sub.Close()
	}
}

// unlock frees the lock when it ends the last hold. The memory of the request goes
// when its answer has come.
func (j *javaThread) unlock(name string) error {
	latch := prefixed("redisson_unlock_latch", name) + ":" + uuid.NewString()
	keys := []string{name, channelIn(name), latch}
	err := redissonUnlock.Run(background, j.rdb, keys, j.owner, j.lease.Milliseconds(), j.publish).Err()
	if errors.Is(err, redis.Nil) {
		return errNotOwner
	}
	return errors.Join(err, j.rdb.Del(background, latch).Err())
}

// renew is one round of the watchdog.
func (j *javaThread) renew(name string) error {
	held, err := redissonRenew.Run(background, j.rdb, []string{name}, j.owner, j.lease.Milliseconds()).Bool()
	return unless(held, err, errNotOwner)
}

func (r *redisson) forceUnlock(name string) error {
	freed, err := redissonForce.Run(background, r.rdb, []string{name, channelIn(name)}, r.publish).Bool()
	return unless(freed, err, errFree)
}

func unless(done bool, err, otherwise error) error {
	if err == nil && !done {
		return otherwise
	}
	return err
}

// holdCount is getHoldCount; isHeldByThread looks at the same field.
func (j *javaThread) holdCount(tb testing.TB, name string) int {
	tb.Helper()
	n, err := j.rdb.HGet(background, name, j.owner).Int()
	if !errors.Is(err, redis.Nil) {
		succeed(tb, err)
	}
	return n
}

// remaining is remainTimeToLive.
func (r *redisson) remaining(tb testing.TB, name string) time.Duration {
	tb.Helper()
	d, err := r.rdb.PTTL(background, name).Result()
	succeed(tb, err)
	return d
}

func succeed(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// soon is what comes in time.
func soon(tb testing.TB, got <-chan error) error {
	tb.Helper()
	select {
	case err := <-got:
		return err
	case <-time.After(patience):
		return errors.New("nobody woke the waiting call")
	}
}
