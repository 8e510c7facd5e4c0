//go:build go1.25

package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/checker"
)

// world is all that a seed makes up.
type world struct {
	seed      uint64
	random    *rand.Rand
	server    *redisServer
	store     *checker.Store
	inspector *core.Locker // which nothing happens to
	processes []*process
	started   int
	buried    sync.WaitGroup // processes that end

	lease   time.Duration // the usual one, and the longest
	timeout time.Duration
	latency time.Duration
	longest time.Duration // how much later a request may arrive
	actors  int
	hearing []hearing     // of the processes
	usual   noise         // at the moment
	faults  []fault       // that happen
	behind  time.Duration // by which the clock of Redis was set back

	serial atomic.Int64
	calm   atomic.Bool

	mu     sync.Mutex
	cycles []*cycle
	story  []string // what the nemesis did, and when
	broken []string
	counts map[string]int
}

// cycle is a time of faults, a time of calm, and a rest.
type cycle struct {
	began, healed, settled, rested int64
	asked                          int64 // for each lock, when nobody worked: one that a clock makes last longer is cut to its length then
	setBack                        bool  // that clock was
	visits                         []visit
	moves                          []move
	lost                           []int64 // when Redis lost its data
}

// move is something after which the promises are less: a step of the clock forwards, or
// a lock that was taken away.
type move struct {
	from, to int64         // while it happened
	by       time.Duration // of the clock
	key      string        // whose lock was taken away; "" for a step
}

// newWorld makes the world of a seed up.
func newWorld(seed uint64) *world {
	random := rand.New(rand.NewPCG(seed, 0))
	w := &world{seed: seed, random: random, store: checker.NewStore(), counts: map[string]int{}}
	w.lease = []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second, 12 * time.Second}[random.IntN(4)]
	w.timeout = min(2*time.Second, w.lease/3)
	w.latency = []time.Duration{100 * time.Microsecond, 500 * time.Microsecond, w.lease / 300}[random.IntN(3)]
	w.longest = 2 * w.lease
	w.actors = 2 + random.IntN(3)
	mixed := random.IntN(3) == 0 && w.lease <= 3*time.Second // whoever polls often takes its time
	for range 2 + random.IntN(3) {
		h := hears
		if mixed && random.IntN(2) == 0 {
			h = hearing(random.IntN(int(hearsKinds)))
		}
		w.hearing = append(w.hearing, h)
	}
	w.faults = faults
	if random.IntN(4) == 0 {
		w.faults = crowds
	}
	return w
}

func (w *world) String() string {
	return fmt.Sprintf("seed %d: leases of %v, a Timeout of %v, messages of %v, %d processes of %d goroutines, hearing %v",
		w.seed, w.lease, w.timeout, w.latency, len(w.hearing), w.actors, w.hearing)
}

func (w *world) nextID() string { return fmt.Sprint(w.serial.Add(1)) }

func (w *world) isCalm() bool { return w.calm.Load() }

// complain notes a broken promise.
func (w *world) complain(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

// tell adds to the story.
func (w *world) tell(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.story = append(w.story, fmt.Sprintf("%12.6f s  %s", time.Duration(now()).Seconds(), fmt.Sprintf(format, args...)))
}

func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// file takes a visit that has ended.
func (w *world) file(v visit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.cycles[len(w.cycles)-1]
	c.visits = append(c.visits, v)
}

// live runs the world in a bubble of its own, and returns how long that was for those
// inside.
func (w *world) live(t *testing.T, cycles int) (lived time.Duration) {
	synctest.Test(t, func(*testing.T) {
		began := time.Now()
		w.server = startServer()
		direct := w.server.client()
		var err error
		if w.inspector, err = core.New(direct, core.Logger(slog.New(slog.DiscardHandler))); err != nil {
			panic(err)
		}
		for i := range w.hearing {
			w.processes = append(w.processes, w.newProcess(i))
		}
		for range cycles {
			w.cycle()
		}
		for _, p := range w.processes {
			p.leave(time.Second)
		}
		w.end()
		_ = w.inspector.Close(context.Background())
		_ = direct.Close()
		w.server.Close()
		lived = time.Since(began)
		synctest.Wait()
		if left := goroutines(); left != "" {
			w.complain("goroutines are left:\n%s", left)
		}
		for _, p := range w.processes {
			w.collect(p)
		}
	})
	return lived
}

// collect adds up what the network of a process has done to it.
func (w *world) collect(p *process) {
	p.network.mu.Lock()
	defer p.network.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, n := range p.network.counts {
		w.counts[name] += n
	}
	clear(p.network.counts)
}

// cycle has the processes work while things go wrong, and then while nothing does, and
// looks at what is left when they rest.
func (w *world) cycle() {
	c := &cycle{began: now()}
	w.mu.Lock()
	w.cycles = append(w.cycles, c)
	w.mu.Unlock()

	s, end := w.shift()
	n := &nemesis{world: w, cycle: c, shift: s}
	w.work(s)
	n.rage()
	c.healed = now()
	w.tell("all is healed")
	// What died or was never confirmed ends with its lease, as Redis counts it.
	time.Sleep(w.lease + w.timeout + 2*time.Second)
	end()
	w.rest()
	w.ask(c)
	time.Sleep(w.lease) // others have prolonged what a dead process has with their owner

	s, end = w.shift()
	c.settled = now()
	w.tell("a calm time begins")
	w.calm.Store(true)
	w.work(s)
	time.Sleep(3*time.Second + w.lease)
	end()
	w.rest()
	w.calm.Store(false)
	c.rested = now()
	w.nothingHeld(c)
}

// ask tries to take each lock.
func (w *world) ask(c *cycle) {
	for _, key := range keys {
		if k, err := w.inspector.TryLock(context.Background(), key); err == nil {
			_ = k.Unlock(context.Background())
		}
	}
	c.asked = now()
}

// shift begins a time of work.
func (w *world) shift() (*shift, context.CancelFunc) {
	ctx, end := context.WithCancel(context.Background())
	return &shift{ctx: ctx, calm: w.isCalm}, end
}

func (w *world) work(s *shift) {
	for _, p := range w.processes {
		p.work(s)
	}
}

// rest returns when nobody works any more.
func (w *world) rest() {
	for _, p := range w.processes {
		p.actors.Wait()
	}
	w.buried.Wait()
}

// nothingHeld looks, shortly after all have unlocked in peace, for locks that nobody
// has.
func (w *world) nothingHeld(*cycle) {
	time.Sleep(w.timeout + time.Second)
	for _, key := range keys {
		info, err := w.inspector.Inspect(context.Background(), key)
		if err != nil {
			w.complain("Inspect: %v", err)
		}
		if mode := w.server.HGet("lock:"+key, "mode"); info.Locked && !strings.HasPrefix(mode, "w") { // no dedup window
			w.complain("%s is held by %s for %v, and nobody has it", key, info.Owner, info.TTL)
		}
	}
}

// forgotten is how long what is beside a lock may outlive it: the marks of calls that
// were given up.
const forgotten = 11 * time.Minute

// end looks at what Redis keeps when all have gone.
func (w *world) end() {
	if left := w.onlyTokens(); len(left) > len(keys) { // a last token for each, at most
		w.complain("%d keys are left: %q", len(left), left)
	}
}

// onlyTokens looks for other keys when all have gone, and returns those that are left.
func (w *world) onlyTokens() []string {
	time.Sleep(forgotten + 3*w.lease + w.behind)
	w.server.tick()
	left := w.server.Keys()
	for _, key := range left {
		if kind := w.server.Type(key); kind != "string" {
			w.complain("%s, a %s, is left", key, kind)
		}
	}
	return left
}

// goroutines returns the stacks of those in this bubble that run the library.
func goroutines() string {
	all := make([]byte, 1<<22)
	all = all[:runtime.Stack(all, true)]
	stacks := strings.Split(string(all), "\n\n")
	_, bubble, _ := strings.Cut(stacks[0], "synctest bubble ")
	bubble, _, _ = strings.Cut(bubble, "]")
	var left []string
	for _, stack := range stacks[1:] {
		first, _, _ := strings.Cut(stack, "\n")
		if strings.Contains(first, "synctest bubble "+bubble+"]") && !strings.Contains(first, "[synctest.Run") &&
			(strings.Contains(stack, "/latchkey/core.") || strings.Contains(stack, "/latchkey/core/internal/") || strings.Contains(stack, "/latchkey/internal/simulation.")) {
			left = append(left, stack)
		}
	}
	return strings.Join(left, "\n\n")
}
