package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// heldLocks is the row of many locks that one process holds and renews, and does
// nothing else: what that costs for each of them.
func heldLocks(name string, locks int, lease time.Duration, libraries ...string) row {
	return row{
		name:      name,
		title:     fmt.Sprintf("%d locks held, lease %v, renewed every %v", locks, lease, (lease / 3).Round(time.Millisecond)),
		libraries: libraries,
		columns:   []figure{clientCPUMinute, redisCPUMinute, heapPerLock, stackPerLock, goroutinesPer, locksLost},
		maxRounds: 3,
		measure: func(ctx context.Context, b *bench, lib library) (figures, error) {
			o := order{
				Job: "hold", Library: lib.name, Addr: b.server.Addr(),
				Locks: max(locks/b.divide, 1), Lease: lease, Measure: b.holdTime,
			}
			return b.held(ctx, o, func(int32) {})
		},
	}
}

// held has a process of its own hold locks: its heap is the locks. It tells the phase when the
// locks are there, and when they have been watched for as long as they should.
func (b *bench) held(ctx context.Context, o order, tell func(phase int32)) (figures, error) {
	empty, err := b.redis.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	c, err := startChildren([]order{o})
	if err != nil {
		return nil, err
	}
	defer c.unmap()
	before, after, err := b.whileHeld(ctx, c.arena, o, tell)
	results, ending := finish[figures](c)
	if err := firstError(err, ending); err != nil {
		return nil, err
	}
	f := results[0]
	f[redisCPUMinute] = (after.cpu - before.cpu) * perMinute(o.Measure)
	f[redisPerLock] = (before.memory - empty.memory) / float64(o.Locks)
	return f, nil
}

// whileHeld is Redis at the begin and at the end of what the child measures.
func (b *bench) whileHeld(ctx context.Context, a *arena, o order, tell func(phase int32)) (before, after snapshot, err error) {
	taking := patience + time.Duration(o.Locks)*time.Millisecond/2
	ctx, cancel := context.WithTimeout(ctx, taking+o.Measure)
	defer cancel()
	done := func() bool { return a.holder.Load() != 0 }
	until(ctx, 5*time.Millisecond, func() bool { return a.phase.Load() == measuring || done() })
	if before, err = b.redis.snapshot(ctx); err != nil {
		return before, after, err
	}
	tell(measuring)
	until(ctx, 5*time.Millisecond, done)
	tell(warmingUp)
	after, err = b.redis.snapshot(ctx)
	return before, after, err
}

func perMinute(d time.Duration) float64 { return time.Minute.Seconds() / d.Seconds() }

// holders is how many goroutines take the locks.
const holders = 64

// hold is what the process does. It sets the phase to measuring while it
// measures, and the holder when it has done so.
func hold(o order, lib library, a *arena, ready func(), end <-chan struct{}) (any, error) {
	defer a.holder.Store(1)
	l, err := lib.open(o.Addr, settings{lease: o.Lease})
	if err != nil {
		return nil, err
	}
	keys := make([]string, o.Locks)
	for i := range keys {
		keys[i] = fmt.Sprintf("order:%d", i)
	}
	locks := make([]held, len(keys))
	ready()

	// First open the connections, and all else that does not depend on how many
	// locks there are.
	first := min(len(keys), 4*holders)
	if _, err := takeAll(l, keys[:first], locks[:first]); err != nil {
		return nil, err
	}
	for _, h := range locks[:first] {
		if err := h.unlock(); err != nil {
			return nil, err
		}
	}
	clear(locks)
	empty := usageSettled()

	start := time.Now()
	failed, err := takeAll(l, keys, locks)
	if err != nil {
		return nil, err
	}
	taken := time.Since(start)
	full := usageSettled()
	f := figures{
		takenPerSecond: float64(o.Locks) / taken.Seconds(),
		errorCount:     float64(failed),
		heapPerLock:    float64(int64(full.heap)-int64(empty.heap)) / float64(o.Locks),
		stackPerLock:   float64(int64(full.stack)-int64(empty.stack)) / float64(o.Locks),
		goroutinesPer:  float64(full.goroutinesAtHand-empty.goroutinesAtHand) / float64(o.Locks),
	}

	a.phase.Store(measuring)
	before := cpuTime()
	time.Sleep(o.Measure)
	f[clientCPUMinute] = (cpuTime() - before).Seconds() * perMinute(o.Measure)
	a.holder.Store(1)
	<-end

	there, err := exist(o.Addr, l, keys)
	if err != nil {
		return nil, err
	}
	for i, h := range locks {
		if h.lost() || !there[i] {
			f[locksLost]++
		}
	}
	f[locksLost] += 0 // "none" is a figure too
	return f, nil     // the process ends with the locks: releasing them is not measured
}

// takeAll takes the locks of all keys, several at a time, and returns how many calls failed: a
// lock is asked for again, as a million cannot hang on one answer that comes too late.
func takeAll(l locker, keys []string, locks []held) (failed int64, err error) {
	var taking sync.WaitGroup
	var failures atomic.Int64
	errs := make([]error, holders)
	for n := range holders {
		taking.Go(func() {
			for i := n; i < len(keys) && errs[n] == nil; i += holders {
				for range tries {
					if locks[i], errs[n] = l.lock(context.Background(), keys[i]); errs[n] == nil {
						break
					}
					failures.Add(1)
				}
			}
		})
	}
	taking.Wait()
	return failures.Load(), firstError(errs...)
}

// tries is how often a lock is asked for at most.
const tries = 10

// exist asks Redis which locks it has.
func exist(addr string, l locker, keys []string) ([]bool, error) {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	var there []bool
	for chunk := range slices.Chunk(keys, 1000) {
		replies, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, key := range chunk {
				p.Exists(ctx, l.redisKey(key))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		for _, r := range replies {
			there = append(there, r.(*redis.IntCmd).Val() == 1)
		}
	}
	return there, nil
}
