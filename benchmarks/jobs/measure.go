package main

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	locks := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer locks.Close()
	g, err := r.open(locks)
	if err != nil {
		return f, err
	}
	defer g.close()

	t := &tally{exclusive: r.name != "none", now: map[string]int{}, cold: map[string]time.Time{}}
	queue := asynq.NewClientFromRedisClient(client)
	scale := 1
	if p.quick {
		scale = 5
	}
	keys := s.keys(scale)
	f.all = len(keys)
	if err := enqueue(ctx, queue, keys); err != nil {
		return f, err
	}
	before, err := commands(ctx, client)
	if err != nil {
		return f, err
	}
	jobs := asynq.NewServerFromRedisClient(client, settings(workers, g, t))
	began := time.Now()
	if err := jobs.Start(g.middleware(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		return t.work(task, s.work)
	}))); err != nil {
		return f, err
	}
	var fed map[string]time.Time
	if s.cold > 0 {
		fed, err = feed(ctx, queue, s, p.limit/2, began)
	} else {
		err = await(ctx, began.Add(p.limit), func() bool { return t.hot.Load() >= int64(len(keys)) })
	}
	f.took = time.Since(began)
	f.cold = t.delays(fed)
	f.done, f.refused = int(t.hot.Load()), t.refused.Load()
	after, e := commands(ctx, client)
	f.commands = after - before
	jobs.Shutdown()
	t.mu.Lock()
	defer t.mu.Unlock()
	return f, errors.Join(err, e, t.failure)
}

// settings are those of docs/jobs.md.
func settings(workers int, g guarded, t *tally) asynq.Config {
	return asynq.Config{
		Concurrency:              workers,
		Queues:                   map[string]int{hotQueue: 1, coldQueue: 1},
		IsFailure:                g.isFailure,
		RetryDelayFunc:           g.delay,
		DelayedTaskCheckInterval: checkInterval,
		TaskCheckInterval:        taskInterval,
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

var checkInterval, taskInterval = interval("CHECK", time.Second), interval("TASK", time.Second)

func interval(n string, d time.Duration) time.Duration {
	if v, err := time.ParseDuration(os.Getenv(n)); err == nil {
		return v
	}
	return d
}

const hotQueue, coldQueue = "hot", "cold"

// tally counts, and sees to it that no two tasks of one key run at once.
type tally struct {
	exclusive    bool
	hot, refused atomic.Int64

	mu      sync.Mutex
	now     map[string]int       // running, by payload
	cold    map[string]time.Time // started, by payload
	failure error
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
	if t.now[payload] += n; t.exclusive && t.now[payload] > 1 {
		t.failure = fmt.Errorf("two tasks of %s at once", payload)
	}
}

func (t *tally) work(task *asynq.Task, d time.Duration) error {
	payload := string(task.Payload())
	if task.Type() == "cold" {
		t.mu.Lock()
		t.cold[payload] = time.Now()
		t.mu.Unlock()
	} else {
		defer t.hot.Add(1)
	}
	t.enter(payload, 1)
	defer t.enter(payload, -1)
	time.Sleep(d)
	return nil
}

func task(kind, key string) *asynq.Task {
	return asynq.NewTask(kind, fmt.Appendf(nil, `{"order_id":%q}`, key))
}

func enqueue(ctx context.Context, queue *asynq.Client, keys []string) error {
	for _, key := range keys {
		if _, err := queue.EnqueueContext(ctx, task("hot", key), asynq.Queue(hotQueue)); err != nil {
			return err
		}
	}
	return nil
}

// feed enqueues cold tasks for a while, and returns when each was sent.
func feed(ctx context.Context, queue *asynq.Client, s scene, d time.Duration, began time.Time) (map[string]time.Time, error) {
	name := coldQueue
	if s.sameList {
		name = hotQueue
	}
	tick := time.NewTicker(s.cold)
	defer tick.Stop()
	sent := map[string]time.Time{}
	for i := 0; time.Since(began) < d; i++ {
		t := task("cold", fmt.Sprint("cold ", i))
		sent[string(t.Payload())] = time.Now()
		if _, err := queue.EnqueueContext(ctx, t, asynq.Queue(name)); err != nil {
			return nil, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return sent, nil
}

// delays are how long the cold tasks took to start. One that has not started counts
// with the time so far.
func (t *tally) delays(sent map[string]time.Time) (all []time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for payload, at := range sent {
		started, ok := t.cold[payload]
		if !ok {
			started = time.Now()
		}
		all = append(all, started.Sub(at))
	}
	return all
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

// commands is how many Redis has run so far.
func commands(ctx context.Context, client *redis.Client) (n int64, err error) {
	info, err := client.Info(ctx, "stats").Result()
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(info, "\r\n") {
		if text, ok := strings.CutPrefix(line, "total_commands_processed:"); ok {
			_, err = fmt.Sscan(text, &n)
			return n, err
		}
	}
	return 0, errors.New("INFO has no total_commands_processed")
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
