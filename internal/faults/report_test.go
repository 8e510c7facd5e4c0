package faults

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// report is the table of what the faults have come to.
type report struct {
	mu               sync.Mutex
	seed             uint64
	rows             map[string][]row // by topology
	workers          int
	rejected, undone int // stale writes, and writes lost where nobody looks at tokens
	leaks            int
}

type row struct {
	fault string
	result
}

func newReport(seed uint64) *report { return &report{seed: seed, rows: map[string][]row{}} }

// add enters a run that has ended.
func (p *report) add(r *run, results []result, leaks int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range r.top.faults {
		p.rows[r.top.name] = append(p.rows[r.top.name], row{f.name, results[i]})
	}
	rejected, undone := r.crew.store.Damage()
	p.workers += r.crew.started
	p.rejected += rejected
	p.undone += undone
	p.leaks += leaks
}

// String is the table in Markdown.
func (p *report) String() string {
	var b strings.Builder
	var sum result
	fmt.Fprintln(&b, "| topology | fault | times injected | operations | violations | stuck locks | longest recovery |")
	fmt.Fprintln(&b, "|---|---|--:|--:|--:|--:|--:|")
	line := func(topology, fault string, r result) {
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d | %v |\n",
			topology, fault, r.times, r.grants, r.violations, r.stuck, r.recovery.Round(time.Millisecond))
	}
	for _, top := range topologies {
		for _, r := range p.rows[top.name] {
			line(top.name, r.fault, r.result)
			sum.add(r.result)
		}
	}
	line("**all**", "", sum)
	fmt.Fprintf(&b, "\n- worker processes: %d, with %d goroutines each, on %d keys\n", p.workers, actors, len(keys))
	if *beside != "" {
		b.WriteString("- every second worker process was of the older version\n")
	}
	fmt.Fprintf(&b, "- of the operations %d shared their lock, %d had a permit, and %d of these several; %d were downgraded; %d were attempts at requests that count once, whose answers were given again %d times\n",
		sum.shared, sum.permits, sum.heavy, sum.downgraded, sum.attempts, sum.again)
	fmt.Fprintf(&b, "- %d were runs of Once, whose results were given to other calls %d times\n", sum.runs, sum.handed)
	fmt.Fprintf(&b, "- %d tasks were triggered under KeepOne, and %d dropped; at most %d of a key were owed at once, without a fault\n", sum.triggers, sum.dropped, sum.owed)
	fmt.Fprintf(&b, "- stale writes that the fenced store rejected: %d; writes that the store without tokens lost: %d\n", p.rejected, p.undone)
	fmt.Fprintf(&b, "- histories checked for linearizability: %d; not decided within %v: %d\n", sum.decided+sum.undecided, decideWithin, sum.undecided)
	fmt.Fprintf(&b, "- longest time that a running holder believed in a lock after its lease: %v\n", sum.late.Round(time.Millisecond))
	fmt.Fprintf(&b, "- keys, goroutines and connections leaked: %d\n", p.leaks)
	fmt.Fprintf(&b, "- %s, %s, %s, %s, seed %d\n", runtime.Version(), redisVersion(), goRedisVersion(), time.Now().Format(time.DateOnly), p.seed)
	return b.String()
}

func redisVersion() string {
	out, err := exec.Command("redis-server", "--version").Output()
	if err != nil {
		return "Redis"
	}
	for _, word := range strings.Fields(string(out)) {
		if v, ok := strings.CutPrefix(word, "v="); ok {
			return "Redis " + v
		}
	}
	return "Redis"
}

// goRedisVersion reads go.mod: the binary of a test does not know its modules.
func goRedisVersion() string {
	text, _ := os.ReadFile("../../go.mod")
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "github.com/redis/go-redis/v9 "); ok {
			return "go-redis " + v
		}
	}
	return "go-redis"
}
