//go:build go1.25

package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/internal/checker"
)

const (
	keepOneSeeds = 2
	servers      = 4
	shops        = 24
	// runsWithin is how soon a run must begin after a trigger that is done in the end: asynq brings the tasks of a
	// process that died back after two minutes.
	runsWithin = 10 * time.Minute
	judging    = 2 * time.Second // of a task that comes, in calm times
)

// farm is a world whose processes run tasks.
type farm struct {
	*world
	jobs      *jobs
	client    *redis.Client // which nothing happens to
	shutdowns []func()      // of the servers
}

// Whatever becomes of processes and of what is on its way between them and Redis, a run begins
// after each trigger, and never two of a key at once; in calm times two are owed at most.
func TestARunBeginsAfterEachTrigger(t *testing.T) {
	eachSeed(t, keepOneSeeds, func(t *testing.T, seed uint64) {
		w := newWorld(seed)
		synctest.Test(t, func(t *testing.T) { newFarm(w).live(t) })
		w.failOn(t)
	})
}

func newFarm(w *world) *farm {
	w.hearing = slices.Repeat([]hearing{hears}, servers)
	w.server = startServer()
	f := &farm{world: w, client: w.server.client()}
	f.jobs = &jobs{w: w, queue: asynq.NewClientFromRedisClient(f.client), byID: map[string]*checker.Job{}}
	for i := range servers {
		w.processes = append(w.processes, w.newProcess(i))
		f.shutdowns = append(f.shutdowns, f.jobs.serve(w.processes[i]))
	}
	return f
}

func (f *farm) live(t *testing.T) {
	var users sync.WaitGroup
	for i := range shops {
		random := rand.New(rand.NewPCG(f.seed, uint64(5000+i)))
		users.Go(func() { f.use(fmt.Sprint("shop ", i), random) })
	}
	f.rageLossless(40, 15*time.Second, func(i int) {
		if i%5 == 2 {
			f.replace(f.random.IntN(servers), f.random.IntN(3) > 0)
		}
	})
	users.Wait()
	time.Sleep(runsWithin)
	f.judge(t, "storm", runsWithin)

	f.jobs.calm.Store(true)
	for range 40 {
		for i := range 3 {
			f.jobs.trigger(fmt.Sprint("shop ", i))
		}
		time.Sleep(between(f.random, 0, 2*time.Second))
	}
	time.Sleep(time.Minute)
	if owed := f.judge(t, "calm", time.Minute); owed != 2 {
		f.complain("%d are owed at once in calm times, want 2", owed)
	}
	for i := range servers {
		f.shutdowns[i]()
		f.processes[i].leave(time.Second)
	}
	_ = f.client.Close()
	time.Sleep(time.Second) // for what is under way
	f.server.Close()
}

// use triggers tasks for a key, several at a time.
func (f *farm) use(key string, random *rand.Rand) {
	for range 1 + random.IntN(3) {
		time.Sleep(between(random, 0, 2*time.Minute))
		for range 1 + random.IntN(5) {
			f.jobs.trigger(key)
			time.Sleep(between(random, 0, 4*time.Second>>random.IntN(8)))
		}
	}
}

// replace kills a process, or closes it, and starts another one.
func (f *farm) replace(place int, kill bool) {
	p, shutdown := f.processes[place], f.shutdowns[place]
	f.tell("%v goes, killed: %v", p, kill)
	if kill {
		p.kill()
		f.buried.Go(shutdown)
	} else {
		f.buried.Go(func() {
			shutdown()
			p.leave(time.Second)
		})
	}
	f.processes[place] = f.newProcess(place)
	f.shutdowns[place] = f.jobs.serve(f.processes[place])
}

// judge checks the tasks since it was last called, and returns how many were owed at once.
func (f *farm) judge(t *testing.T, when string, within time.Duration) (owed int) {
	all := f.jobs.take()
	for _, text := range checker.KeepOne(all, within) {
		f.complain("%s", text)
	}
	runs, dropped := 0, 0
	for _, j := range all {
		runs += len(j.Runs)
		if j.Dropped != 0 {
			dropped++
		}
	}
	owed = checker.Owed(all, judging)
	t.Logf("%v; %s: %d triggers, %d runs, %d dropped, %d owed at once", f.world, when, len(all), runs, dropped, owed)
	return owed
}
