package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
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
			c, err := startChildren([]order{o}) // a process of its own: its heap is the locks
			if err != nil {
				return nil, err
			}
			defer c.unmap()
			used, err := b.cpuWhileHeld(ctx, c.arena)
			results, ending := finish[figures](c)
			if err := firstError(err, ending); err != nil {
				return nil, err
			}
			f := results[0]
			f[redisCPUMinute] = used * perMinute(b.holdTime)
			return f, nil
		},
	}
}

// cpuWhileHeld is the processor time that Redis needs while the child measures.
func (b *bench) cpuWhileHeld(ctx context.Context, a *arena) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, b.holdTime+patience)
	defer cancel()
	done := func() bool { return a.holder.Load() != 0 }
	until(ctx, 5*time.Millisecond, func() bool { return a.phase.Load() == measuring || done() })
	before, err := b.redis.snapshot(ctx)
	if err != nil {
		return 0, err
	}
	until(ctx, 5*time.Millisecond, done)
	after, err := b.redis.snapshot(ctx)
	return after.cpu - before.cpu, err
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
	if err := takeAll(l, keys[:first], locks[:first]); err != nil {
		return nil, err
	}
	for _, h := range locks[:first] {
		if err := h.unlock(); err != nil {
			return nil, err
		}
	}
	clear(locks)
	empty := usageSettled()

	if err := takeAll(l, keys, locks); err != nil {
		return nil, err
	}
	full := usageSettled()
	f := figures{
		heapPerLock:   float64(int64(full.heap)-int64(empty.heap)) / float64(o.Locks),
		stackPerLock:  float64(int64(full.stack)-int64(empty.stack)) / float64(o.Locks),
		goroutinesPer: float64(full.goroutinesAtHand-empty.goroutinesAtHand) / float64(o.Locks),
	}

	a.phase.Store(measuring)
	before := cpuTime()
	time.Sleep(o.Measure)
	f[clientCPUMinute] = (cpuTime() - before).Seconds() * perMinute(o.Measure)
	a.holder.Store(1)

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
	<-end
	return f, nil // the process ends with the locks: releasing them is not measured
}

// takeAll takes the locks of all keys, several at a time.
func takeAll(l locker, keys []string, locks []held) error {
	var taking sync.WaitGroup
	errs := make([]error, holders)
	for n := range holders {
		taking.Go(func() {
			for i := n; i < len(keys) && errs[n] == nil; i += holders {
				locks[i], errs[n] = l.lock(context.Background(), keys[i])
			}
		})
	}
	taking.Wait()
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if i >= 0 {
		return errs[i]
	}
	return nil
}

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
