package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"github.com/latchkey-go/latchkey/core"
)

const (
	resultKept   = 10 * time.Second
	stampedeWork = 10 * time.Millisecond
)

// onceRows are those of a result that all calls get, which only one works for.
func onceRows() []row {
	return []row{once("first", 1), once("first", 16), once("again", 1), once("again", 16), stampede(4, 16)}
}

// once is the row of first calls, whose keys are new, or of calls that find a result.
func once(which string, goroutines int) row {
	title := "A result that all get, calls that come " + which + ", " + plural(goroutines, "goroutine")
	r := ofOnce(fmt.Sprintf("once-%s-%d", which, goroutines), title)
	r.columns = []figure{cyclesPerSecond, commandsPer, redisCPU, clientCPU, allocsPer, waitP50, waitP99}
	r.measure = func(ctx context.Context, b *bench, lib library) (figures, error) {
		lib.open = func(addr string, _ settings) (locker, error) {
			o, err := openOnce(lib, addr)
			return &oncer{result: o, fresh: which == "first"}, err
		}
		return b.cycles(ctx, lib, b.server.Addr(), keysOfTheirOwn(goroutines, 1), new(arena))
	}
	return r
}

// stampede is the row of calls for one key that all come when its result has expired. A cycle is one of those.
func stampede(processes, goroutines int) row {
	r := ofOnce(fmt.Sprintf("once-stampede-%dx%d", processes, goroutines),
		fmt.Sprintf("A result of %v expires, and all want it: %d clients of %d goroutines", stampedeWork, processes, goroutines))
	r.columns = []figure{cyclesPerSecond, commandsPer, redisCPU, waitP50, waitP99, waitMax}
	r.measure = func(ctx context.Context, b *bench, lib library) (f figures, err error) {
		var all []result
		for range processes {
			o, err := openOnce(lib, b.server.Addr())
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, o.close()) }()
			all = append(all, o)
		}
		a, t, ended := new(arena), tally{}, make(chan struct{})
		go func() {
			defer close(ended)
			for n := 0; a.phase.Load() != over; n++ {
				t.stampede(ctx, all, goroutines, fmt.Sprint("price:", n), a)
			}
		}()
		sleep(ctx, b.warmUp())
		c, err := b.window(ctx, a, func() {})
		<-ended
		if err != nil {
			return nil, err
		}
		f = summarize([]tally{t}, c.elapsed)
		c.costs(lib, f)
		f[violationCount] = float64(a.violations.Load())
		return f, nil
	}
	return r
}

func (t *tally) stampede(ctx context.Context, all []result, goroutines int, key string, a *arena) {
	var runs atomic.Int64
	var calls sync.WaitGroup
	waits, errs := make([]time.Duration, len(all)*goroutines), make([]error, len(all)*goroutines)
	start := make(chan struct{})
	for i := range waits {
		calls.Go(func() {
			<-start
			asked := time.Now()
			errs[i] = all[i%len(all)].get(ctx, key, func() { runs.Add(1); time.Sleep(stampedeWork) })
			waits[i] = time.Since(asked)
		})
	}
	measured := a.phase.Load() == measuring
	close(start)
	calls.Wait()
	switch err := errors.Join(errs...); {
	case !measured || a.phase.Load() != measuring:
	case err != nil:
		t.failed(err)
	default:
		t.Cycles++
		t.Waits = append(t.Waits, waits...)
		a.violations.Add(runs.Load() - 1)
	}
}

func ofOnce(name, title string) row {
	return row{name: name, title: title, libraries: []string{latchkeyName, handMadeName}, base: handMadeName}
}

// result is one that all calls get.
type result interface {
	get(ctx context.Context, key string, work func()) error
	close() error
}

func openOnce(lib library, addr string) (result, error) {
	if lib.name == handMadeName {
		return &handMade{client: settings{}.client(addr)}, nil
	}
	l, err := openLatchkey(addr)
	return onceOfLatchkey{l}, err
}

// oncer is a result as the rows of locks ask for theirs.
type oncer struct {
	result
	fresh bool
	calls atomic.Int64
}

func (o *oncer) lock(ctx context.Context, key string) (held, error) {
	if o.fresh {
		key = fmt.Sprint(key, ":", o.calls.Add(1))
	}
	return gotten{}, o.get(ctx, key, func() {})
}

func (o *oncer) redisKey(key string) string { return key }

type gotten struct{}

func (gotten) unlock() error { return nil }
func (gotten) lost() bool    { return false }

type onceOfLatchkey struct{ *latchkey }

func (o onceOfLatchkey) get(ctx context.Context, key string, work func()) error {
	_, err := core.Once(ctx, o.locker, key, func(context.Context) (string, error) { work(); return "42", nil }, core.KeepFor(resultKept))
	return err
}

// handMade is what one writes without latchkey: a cache in the process, singleflight before it, and in Redis
// a lock by SETNX beside the result, for which the others poll. It renews nothing, and knows of no failure.
type handMade struct {
	client *redis.Client
	calls  singleflight.Group
	cache  sync.Map // of cached, by key
}

type cached struct {
	text  string
	until time.Time
}

func (b *handMade) get(ctx context.Context, key string, work func()) error {
	if c, ok := b.cache.Load(key); ok && time.Now().Before(c.(cached).until) {
		return nil
	}
	_, err, _ := b.calls.Do(key, func() (any, error) {
		text, err := b.shared(ctx, key, work)
		if err == nil {
			b.cache.Store(key, cached{text, time.Now().Add(resultKept)})
		}
		return text, err
	})
	return err
}

func (b *handMade) shared(ctx context.Context, key string, work func()) (string, error) {
	for ; ; sleep(ctx, pollEvery) {
		text, err := b.client.Get(ctx, "result:"+key).Result()
		if !errors.Is(err, redis.Nil) {
			return text, err
		}
		switch mine, err := b.client.SetNX(ctx, "lock:"+key, "1", 30*time.Second).Result(); {
		case err != nil:
			return "", err
		case !mine:
			continue
		}
		// Another one may have had the lock since.
		if text, err = b.client.Get(ctx, "result:"+key).Result(); errors.Is(err, redis.Nil) {
			work()
			text, err = "42", b.client.Set(ctx, "result:"+key, "42", resultKept).Err()
		}
		return text, errors.Join(err, b.client.Del(ctx, "lock:"+key).Err())
	}
}

func (b *handMade) close() error { return b.client.Close() }
