package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// scene is what the tasks look like.
type scene struct {
	name, title string
	// keys are those of the tasks that are there at the start, in order.
	keys func(scale int) []string
	work time.Duration
	// cold is how often a task with a key of its own comes; 0: never. Such a run ends
	// after a fixed time.
	cold     time.Duration
	sameList bool // the cold ones come into the same queue
	parked   bool // measured when each hot task has been tried
	beside   int  // so many of the tasks at the start have keys of their own, and each its worker for as long
}

const short = 10 * time.Millisecond

var scenes = []scene{
	{name: "hot", title: "One hot key, 100 tasks of 10 ms", keys: repeat(100, 1), work: short},
	{name: "slow", title: "One hot key, 10 tasks of 500 ms", keys: repeat(10, 1), work: 500 * time.Millisecond},
	{name: "blocks", title: "Keys in blocks: 10 keys, 50 tasks of 10 ms each, one key after the other", keys: repeat(50, 10), work: short},
	{name: "mixed", title: "Keys mixed: the same tasks, shuffled", keys: shuffled(repeat(50, 10)), work: short},
	{name: "parked", title: "A hot queue, 10,000 tasks of 10 ms for one key, all tried once, beside a cold one", keys: repeat(10_000, 1), work: short, cold: 50 * time.Millisecond, parked: true},
	{name: "beside", title: "200 tasks of 10 ms for one key beside 200 others, in one queue", keys: repeat(200, 1), work: short, beside: 200},
	{name: "beside50", title: "200 tasks of 50 ms for one key beside 200 others, in one queue", keys: repeat(200, 1), work: 50 * time.Millisecond, beside: 200},
	{name: "trickle", title: "1,000 tasks of 10 ms for one key, all tried once, and cold ones that come into the same queue", keys: repeat(1000, 1), work: short, cold: 50 * time.Millisecond, sameList: true, parked: true},
	{name: "behind", title: "One queue: cold tasks come in behind 1,000 of one key", keys: repeat(1000, 1), work: short, cold: 50 * time.Millisecond, sameList: true},
}

func sceneNames() (names []string) {
	for _, s := range scenes {
		names = append(names, s.name)
	}
	return names
}

// repeat is each tasks for each of so many keys, one key after the other.
func repeat(each, keys int) func(scale int) []string {
	return func(scale int) (all []string) {
		for k := range keys {
			for range max(1, each/scale) {
				all = append(all, strconv.Itoa(k+1))
			}
		}
		return all
	}
}

func shuffled(keys func(int) []string) func(int) []string {
	return func(scale int) []string {
		all := keys(scale)
		r := rand.New(rand.NewPCG(1, 2)) // the same order in each run
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all
	}
}

func (s scene) header() string {
	if s.beside > 0 {
		return "| | key used | hot tasks done after | others done after | commands a task | refusals a task |\n|---|--:|--:|--:|--:|--:|\n"
	}
	if s.cold > 0 {
		return "| | hot tasks a second | refusals a second | commands a second | cold tasks, median | p95 |\n|---|--:|--:|--:|--:|--:|\n"
	}
	return "| | done after | tasks a second | commands a task | refusals a task |\n|---|--:|--:|--:|--:|\n"
}

func (s scene) line(r row, f figures) string {
	seconds := f.took.Seconds()
	used := fmt.Sprintf("%.0f %%", 100*float64(f.done)*s.work.Seconds()/seconds/float64(max(1, r.permits)))
	if s.beside > 0 {
		n := float64(max(1, f.done+s.beside))
		return fmt.Sprintf("| %s | %s | %d in %.2f s | %.2f s | %.0f | %.2f |\n", r.title, used, f.done, seconds, f.others.Seconds(),
			float64(f.commands)/n, float64(f.refused)/n)
	}
	if s.cold > 0 {
		return fmt.Sprintf("| %s | %.0f | %.0f | %.0f | %s | %s |\n", r.title, float64(f.done)/seconds,
			float64(f.refused)/seconds, float64(f.commands)/seconds, delay(f.cold, 0.5), delay(f.cold, 0.95))
	}
	took := fmt.Sprintf("%.1f s", seconds)
	if f.done < f.all {
		took = fmt.Sprintf("%d of %d in %.0f s", f.done, f.all, seconds)
	}
	n := float64(max(1, f.done))
	return fmt.Sprintf("| %s | %s | %.0f | %.0f | %.1f |\n", r.title, took, float64(f.done)/seconds,
		float64(f.commands)/n, float64(f.refused)/n)
}
