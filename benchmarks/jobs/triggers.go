package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/asynqlock"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Triggers are tasks that all ask for the same work, which begins by reading what there is to do: a
// run that has begun does nothing for those that come after that.

// triggered is a way to have one run for many of them.
type triggered struct {
	title   string
	open    func(process) (guarded, error)
	options []asynq.Option
}

const (
	triggerWork = 200 * time.Millisecond
	triggerEach = 10 * time.Millisecond
)

var triggeredRows = []triggered{
	{title: "no lock", open: openNone},
	{title: "no lock, `asynq.Unique`", open: openNone, options: []asynq.Option{asynq.Unique(time.Hour)}},
	{title: "`Drop`", open: latchkeyOnBusy(asynqlock.Drop)},
	{title: "**`KeepOne`**", open: latchkeyOnBusy(asynqlock.KeepOne)},
}

func latchkeyOnBusy(policy asynqlock.BusyPolicy) func(process) (guarded, error) {
	return open(nil, func(process) asynqlock.Config { return asynqlock.Config{OnBusy: policy} })
}

func measureTriggers(ctx context.Context, out io.Writer, triggers, workers int) error {
	fmt.Fprintf(out, "\n%d triggers of one key, one each %v, %d workers; a run takes %v\n\n"+
		"| | runs | at once, at most | triggers that no later run has seen | commands a trigger |\n|---|--:|--:|--:|--:|\n",
		triggers, triggerEach, workers, triggerWork)
	for _, r := range triggeredRows {
		s, err := r.measure(ctx, triggers, workers)
		if err != nil {
			return fmt.Errorf("%s: %w", r.title, err)
		}
		perTask := float64(s.commands) / float64(len(s.triggered))
		fmt.Fprintf(out, "| %s | %d | %d | %d | %.0f |\n", r.title, len(s.began), s.most, s.unseen(), perTask)
	}
	return nil
}

// seen is what has become of triggers.
type seen struct {
	mu        sync.Mutex
	now, most int         // runs
	began     []time.Time // of each run
	triggered []time.Time
	commands  int64
}

// unseen counts the triggers after which no run has begun.
func (s *seen) unseen() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.began[len(s.began)-1]
	for _, at := range s.triggered {
		if at.After(last) {
			n++
		}
	}
	return n
}

func (s *seen) hasJustBegun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.began) > 0 && time.Since(s.began[len(s.began)-1]) < triggerWork/2
}

func (s *seen) count(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now += change
	s.most = max(s.most, s.now)
	if change > 0 {
		s.began = append(s.began, time.Now())
	}
}

func (r triggered) measure(ctx context.Context, triggers, workers int) (s *seen, err error) {
	server, err := redistest.Launch("")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: workers + 20})
	defer client.Close()
	g, err := r.open(process{locks: client, queue: client, workers: workers, looks: quickLooks})
	if err != nil {
		return nil, err
	}
	defer g.close()
	s = &seen{}
	t := &tally{permits: math.MaxInt, now: map[string]int{}}
	jobs := asynq.NewServerFromRedisClient(client, settings(workers, scene{}, quickLooks, g, t))
	if err := jobs.Start(g.middleware(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		s.count(1)
		defer s.count(-1)
		time.Sleep(triggerWork)
		return nil
	}))); err != nil {
		return nil, err
	}
	defer jobs.Shutdown()
	queue := asynq.NewClientFromRedisClient(client)
	before, err := t.figures(ctx, client)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(triggerEach)
	defer tick.Stop()
	for running := false; len(s.triggered) < triggers || !running; { // the last one comes while one runs
		<-tick.C
		running = s.hasJustBegun()
		s.triggered = append(s.triggered, time.Now())
		_, err := queue.EnqueueContext(ctx, task("hot", "1"), append(r.options, asynq.Queue(hotQueue))...)
		if err != nil && !errors.Is(err, asynq.ErrDuplicateTask) {
			return nil, err
		}
	}
	inspector := asynq.NewInspectorFromRedisClient(client)
	asked := 0
	err = await(ctx, time.Now().Add(time.Minute), func() bool {
		if asked++; asked%50 > 0 { // which costs Redis commands, too
			return false
		}
		q, err := inspector.GetQueueInfo(hotQueue)
		return err == nil && q.Size == 0
	})
	after, e := t.figures(ctx, client)
	s.commands = after.commands - before.commands
	return s, errors.Join(err, e, t.failure)
}
