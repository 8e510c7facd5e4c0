package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// figures are what one run has shown.
type figures struct {
	took     time.Duration
	all      int // tasks of the scene, without the cold ones
	done     int
	refused  int64
	commands int64 // that Redis has run, scripts' own included
	cold     []time.Duration
	others   time.Duration // after which those were done that stood beside the hot ones
}

// measure runs a scene with a row on a Redis of its own.
func measure(ctx context.Context, p plan, s scene, r row, workers int) (f figures, err error) {
	server, err := redistest.Launch("")
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 2*workers + 20})
	defer client.Close()
	t := &tally{permits: max(1, r.permits), now: map[string]int{}, cold: map[string]time.Time{}}
	if r.name == "none" || r.name == "none20" {
		t.permits = math.MaxInt
	}
	queue := asynq.NewClientFromRedisClient(client)
	scale := p.scale()
	keys := s.keys(scale)
	f.all = len(keys)
	if err := enqueue(ctx, queue, keys, s.beside/scale); err != nil {
		return f, err
	}
	stop := func() {}
	defer func() { stop() }()
	for range max(1, r.processes) {
		end, e := t.serve(server.Addr(), workers, s, r)
		if e != nil {
			return f, e
		}
		others := stop
		stop = func() { end(); others() }
	}
	if s.parked {
		// Those that wait instead have no refusals: there it is a while.
		err = await(ctx, time.Now().Add(p.limit/2), func() bool {
			return t.refused.Load()+t.hot.Load() >= int64(len(keys))
		})
	}
	before, e := t.figures(ctx, client)
	if err = errors.Join(err, e); err == nil && s.cold > 0 {
		f.cold, err = t.feed(ctx, queue, s, p.limit/2)
	} else if err == nil {
		err = await(ctx, before.at.Add(p.limit), func() bool { return t.hot.Load() >= int64(len(keys)) })
	}
	if s.beside > 0 {
		err = errors.Join(err, await(ctx, before.at.Add(p.limit), func() bool { return t.others.Load() >= int64(s.beside/scale) }))
	}
	after, e := t.figures(ctx, client)
	f.took = after.at.Sub(before.at)
	if s.beside > 0 && !after.last.IsZero() {
		f.took, f.others = after.last.Sub(before.at), after.lastOther.Sub(before.at)
	}
	f.done, f.refused, f.commands = int(after.done-before.done), after.refused-before.refused, after.commands-before.commands
	stop()
	stop = func() {}
	t.mu.Lock()
	defer t.mu.Unlock()
	return f, errors.Join(err, e, t.failure)
}

// serve starts a process: its locks, its workers.
func (t *tally) serve(addr string, workers int, s scene, r row) (stop func(), err error) {
	p := process{
		locks:   redis.NewClient(&redis.Options{Addr: addr}),
		queue:   redis.NewClient(&redis.Options{Addr: addr, PoolSize: 2*workers + 20}),
		once:    redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1}),
		workers: workers,
		looks:   r.looks,
	}
	end := func() { _, _, _ = p.locks.Close(), p.queue.Close(), p.once.Close() }
	g, err := r.open(p)
	if err != nil {
		end()
		return nil, err
	}
	jobs := asynq.NewServerFromRedisClient(p.queue, settings(workers, s, r.looks, g, t))
	stop = func() { jobs.Shutdown(); g.close(); end() }
	err = jobs.Start(g.middleware(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		return t.work(task, s.work)
	})))
	if err != nil {
		g.close()
		end()
	}
	return stop, err
}

// settings are those of docs/jobs.md, but for how often asynq looks.
func settings(workers int, s scene, l looks, g guarded, t *tally) asynq.Config {
	queues := map[string]int{hotQueue: 1}
	if s.cold > 0 && !s.sameList {
		queues[coldQueue] = 1
	}
	return asynq.Config{
		Concurrency:              workers,
		Queues:                   queues,
		IsFailure:                g.isFailure,
		RetryDelayFunc:           g.delay,
		DelayedTaskCheckInterval: l.delayed,
		TaskCheckInterval:        l.pending,
		LogLevel:                 asynq.FatalLevel,
		ShutdownTimeout:          time.Millisecond,
		ErrorHandler: asynq.ErrorHandlerFunc(func(_ context.Context, _ *asynq.Task, err error) {
			if g.isFailure(err) {
				t.fail(err)
			} else {
				t.refused.Add(1)
			}
		}),
	}
}

const hotQueue, coldQueue = "hot", "cold"

// tally counts, and sees to it that no two tasks of one key run at once.
type tally struct {
	permits              int // of a key
	hot, others, refused atomic.Int64

	mu              sync.Mutex
	now             map[string]int       // running, by payload
	cold            map[string]time.Time // started, by payload
	last, lastOther time.Time            // when the last of them was done
	failure         error
}

func (t *tally) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !errors.Is(err, context.Canceled) { // at the end of the run
		t.failure = errors.Join(t.failure, err)
	}
}

func (t *tally) enter(payload string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now[payload] += n; t.now[payload] > t.permits {
		t.failure = fmt.Errorf("%d tasks of %s at once", t.now[payload], payload)
	}
}

func (t *tally) work(task *asynq.Task, d time.Duration) error {
	payload := string(task.Payload())
	if task.Type() == "cold" {
		t.mu.Lock()
		t.cold[payload] = time.Now()
		t.mu.Unlock()
	}
	t.enter(payload, 1)
	time.Sleep(d)
	t.enter(payload, -1)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch task.Type() {
	case "hot":
		t.last = time.Now()
		t.hot.Add(1)
	case "other":
		t.lastOther = time.Now()
		t.others.Add(1)
	}
	return nil
}

func task(kind, key string) *asynq.Task {
	return asynq.NewTask(kind, fmt.Appendf(nil, `{"order_id":%q}`, key))
}

// enqueue enqueues a task for each key, and beside the first of them as many with keys of
// their own.
func enqueue(ctx context.Context, queue *asynq.Client, keys []string, beside int) error {
	for i, key := range keys {
		if _, err := queue.EnqueueContext(ctx, task("hot", key), asynq.Queue(hotQueue)); err != nil {
			return err
		}
		if i < beside {
			if _, err := queue.EnqueueContext(ctx, task("other", fmt.Sprint("other ", i)), asynq.Queue(hotQueue)); err != nil {
				return err
			}
		}
	}
	return nil
}

// feed enqueues cold tasks for a while, and returns how long they took to start. One
// that has not started counts with the time so far.
func (t *tally) feed(ctx context.Context, queue *asynq.Client, s scene, d time.Duration) (delays []time.Duration, err error) {
	name := coldQueue
	if s.sameList {
		name = hotQueue
	}
	tick := time.NewTicker(s.cold)
	defer tick.Stop()
	sent := map[string]time.Time{}
	for i := range int(d / s.cold) {
		c := task("cold", fmt.Sprint("cold ", i))
		sent[string(c.Payload())] = time.Now()
		if _, err := queue.EnqueueContext(ctx, c, asynq.Queue(name)); err != nil {
			return nil, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for payload, at := range sent {
		started, ok := t.cold[payload]
		if !ok {
			started = time.Now()
		}
		delays = append(delays, started.Sub(at))
	}
	return delays, nil
}

func await(ctx context.Context, end time.Time, done func() bool) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() && time.Now().Before(end) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// reading is what has happened up to a moment.
type reading struct {
	at                      time.Time
	done, refused, commands int64
	last, lastOther         time.Time
}

func (t *tally) figures(ctx context.Context, client *redis.Client) (reading, error) {
	r := reading{at: time.Now(), done: t.hot.Load(), refused: t.refused.Load()}
	t.mu.Lock()
	r.last, r.lastOther = t.last, t.lastOther
	t.mu.Unlock()
	info, err := client.Info(ctx, "stats").Result()
	if err != nil {
		return r, err
	}
	for _, line := range strings.Split(info, "\r\n") {
		if text, ok := strings.CutPrefix(line, "total_commands_processed:"); ok {
			_, err = fmt.Sscan(text, &r.commands)
			return r, err
		}
	}
	return r, errors.New("INFO has no total_commands_processed")
}

// delay is a quantile, for people.
func delay(all []time.Duration, q float64) string {
	if len(all) == 0 {
		return "none done"
	}
	slices.Sort(all)
	d := all[min(len(all)-1, int(q*float64(len(all))))]
	return d.Round(time.Millisecond).String()
}
