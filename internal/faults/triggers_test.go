//go:build go1.25

package faults

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/internal/checker"
)

// Triggers of tasks, and what becomes of them.

const (
	shops        = 3
	mostBetween  = 80 * time.Millisecond // two triggers
	judging      = 2 * time.Second       // of a task that comes, in calm rounds
	ranWithin    = time.Minute           // of its trigger, in a long run
	asynqForgets = 31 * time.Second      // asynq gives a task to another worker so long after its lease
)

// tasks are those of a round, as workers tell of them.
type tasks struct {
	mu      sync.Mutex
	sent    int
	byID    map[string]*checker.Job
	runs    map[string]*taskRun
	unsure  map[string]bool // whether they were enqueued
	present map[string]int64
}

type taskRun struct {
	checker.Run
	task   string
	worker int
}

func newTasks() *tasks {
	t := &tasks{}
	t.forget()
	return t
}

func (t *tasks) forget() {
	t.byID, t.runs, t.unsure, t.present = map[string]*checker.Job{}, map[string]*taskRun{}, map[string]bool{}, map[string]int64{}
}

// note enters what a worker tells. A task that comes again was not dropped: asynq has not heard of that.
func (t *tasks) note(worker int, s step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j := t.byID[s.Task]
	if j == nil {
		return
	}
	switch s.Is {
	case "here":
		t.present[s.Task] = max(t.present[s.Task], s.At)
		if j.Came == 0 || s.At < j.Came {
			j.Came = s.At
		}
		if j.Dropped < s.At {
			j.Dropped = 0
		}
	case "dropped":
		if s.At >= t.present[s.Task] {
			j.Dropped = s.At
		}
	case "run":
		t.runs[s.Run] = &taskRun{checker.Run{Began: s.At}, s.Task, worker}
	default:
		r := t.runs[s.Run]
		r.Ended, r.Done = max(s.At, r.Began), s.Is == "done"
	}
}

// runner is a worker that runs a task; -1: none.
func (t *tasks) runner() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.runs {
		if r.Ended == 0 {
			return r.worker
		}
	}
	return -1
}

// killed ends the runs of a worker.
func (t *tasks) killed(worker int, at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.runs {
		if r.worker == worker && r.Ended == 0 {
			r.Ended = max(at, r.Began)
		}
	}
}

// take returns those since the last call.
func (t *tasks) take() (out []checker.Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.runs {
		t.byID[r.task].Runs = append(t.byID[r.task].Runs, r.Run)
	}
	for id, j := range t.byID {
		slices.SortFunc(j.Runs, func(a, b checker.Run) int { return cmp.Compare(a.Began, b.Began) })
		if j.Came != 0 || !t.unsure[id] {
			out = append(out, *j)
		}
	}
	t.forget()
	return out
}

// trigger enqueues a task for a shop.
func (t *tasks) trigger(queue *asynq.Client) {
	t.mu.Lock()
	t.sent++
	id, shop := fmt.Sprint("task-", t.sent), fmt.Sprint("shop ", rand.IntN(shops))
	t.byID[id] = &checker.Job{ID: id, Key: shop, Triggered: now()}
	t.mu.Unlock()
	task := asynq.NewTask(taskType, fmt.Appendf(nil, `{"shop":%q}`, shop))
	if _, err := queue.Enqueue(task, asynq.TaskID(id), asynq.MaxRetry(10_000)); err != nil {
		t.mu.Lock()
		t.unsure[id] = true
		t.mu.Unlock()
	}
}

// roundOfTasks is round where the crew has asynq run tasks.
func (r *run) roundOfTasks(f fault) (res result) {
	tb := r.nemesis.tb
	tb.Helper()
	started := now()
	triggered := r.crew.history.tasks
	client := admin(r.top.servers[0])
	defer client.Close()
	queue := asynq.NewClientFromRedisClient(client)
	fail := order{Do: "fail", Long: failing}
	if f.calm {
		fail.Long = 0
	}
	r.crew.do(fail)
	calls := make(chan struct{})
	var users sync.WaitGroup
	users.Go(func() {
		for {
			select {
			case <-calls:
				return
			case <-time.After(rand.N(mostBetween)):
				triggered.trigger(queue)
			}
		}
	})
	r.nemesis.pause(warmUp)
	res.times = f.inject(r.nemesis)
	r.nemesis.pause(aftermath)
	close(calls)
	users.Wait()
	healed := now()
	if res.times == 0 {
		tb.Errorf("%s: nothing was there to hit", f.name)
	}

	found := r.awaitTasks(client)
	res.stuck = len(found)
	res.recovery = time.Duration(now() - healed)
	r.crew.rest() // so that all that they have told is known
	jobs := triggered.take()
	found = append(found, checker.KeepOne(jobs, atMost(ranWithin))...)
	found = append(found, awaitNone(atMost(lease+time.Second), func() []string { return markers(client) })...)
	owed := checker.Owed(jobs, judging)
	if f.calm {
		res.owed = owed
		if strict() && owed > 2 {
			found = append(found, fmt.Sprintf("%d tasks of a key are owed at once", owed))
		}
	}
	res.violations = len(found)
	res.triggers = len(jobs)
	for _, j := range jobs {
		res.grants += len(j.Runs)
		if j.Dropped != 0 {
			res.dropped++
		}
	}
	tb.Logf("%s: %d times, %d triggers, %d runs, %d dropped, %d owed at once, done after %v", f.name, res.times, res.triggers, res.grants,
		res.dropped, owed, time.Duration(now()-started).Round(time.Millisecond))
	for _, text := range found[:min(len(found), mostShown)] {
		tb.Errorf("%s: %s", f.name, text)
	}
	if len(found) > 0 {
		slices.SortFunc(jobs, func(a, b checker.Job) int { return cmp.Compare(a.Triggered, b.Triggered) })
		tb.Logf("%s: %+v", f.name, jobs)
	}
	return res
}

// awaitTasks waits until asynq has no task any more, and returns what it has. Those of workers that are gone, or whose replies were lost,
// it gives to others.
func (r *run) awaitTasks(client *redis.Client) []string {
	since := time.Now()
	return awaitNone(patience, func() (left []string) {
		tx := client.TxPipeline() // a task may go from one to another
		counts := map[string]*redis.IntCmd{}
		for _, list := range []string{"pending", "active"} {
			counts[list] = tx.LLen(background, "asynq:{default}:"+list)
		}
		for _, set := range []string{"scheduled", "retry", "archived"} {
			counts[set] = tx.ZCard(background, "asynq:{default}:"+set)
		}
		if _, err := tx.Exec(background); err != nil {
			left = append(left, err.Error())
		}
		for state, n := range counts {
			if n.Val() > 0 {
				left = append(left, fmt.Sprintf("%d tasks are %s", n.Val(), state))
			}
		}
		if len(left) > 0 && time.Since(since) > 2*time.Second {
			r.nemesis.giveAgain(client, r.nemesis.random.IntN(workers))
			since = time.Now()
		}
		return left
	})
}

// giveAgain has asynq give all tasks that workers have to others, as it does when a worker has stood still or is gone. A worker that
// starts anew notices that.
func (n *nemesis) giveAgain(client *redis.Client, worker int) (given int) {
	const key = "asynq:{default}:lease"
	at := strconv.FormatInt(time.Now().Add(-asynqForgets).Unix(), 10)
	for _, id := range client.ZRange(background, key, 0, -1).Val() {
		client.Do(background, "ZADD", key, "XX", at, id)
		given++
	}
	p := n.crew.members[worker]
	p.send(order{Do: "serve"})
	p.await(n.tb, "serving")
	return given
}

// markers are those of tasks that wait, although there are none.
func markers(client *redis.Client) (found []string) {
	for _, key := range client.Keys(background, "*KeepOne="+taskType+"*").Val() {
		if client.Type(background, key).Val() == "hash" {
			found = append(found, key+" is left")
		}
	}
	return found
}
