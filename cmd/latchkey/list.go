package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/internal/contention"
)

const (
	// maxListed bounds what is shown.
	maxListed = 1000
	// lookedUpAtOnce is how many locks are looked up at the same time.
	lookedUpAtOnce = 16
	lookUpWithin   = 30 * time.Second
	lookAgainAfter = 500 * time.Millisecond
	// inOneStep is how many names Redis is asked for, or about, at a time.
	inOneStep = 1000
	// answerField is in the hash of a lock that has a stored answer.
	answerField = "latchkey:answer"
	// wrongType begins the answer of Redis about what is neither a hash nor, where a string is known, that.
	wrongType = "WRONGTYPE"
)

// found is a lock that was looked up.
type found struct {
	key string
	core.Info
}

// heldFor is how long the lock has been held by who has held it longest.
func (l found) heldFor() time.Duration {
	longest, _ := contention.Longest(l.Info)
	return longest.HeldFor
}

// rank is higher for a lock that nobody has, and nobody has to look after.
func (l found) rank() int {
	return slices.Index([]core.State{core.StateDedupWindow, core.StateAnswered}, l.State) // -1 for all others
}

// list shows the locks that there are: first those that somebody has, or has to look after, then dedup windows and answers.
func (p *program) list(ctx context.Context, args []string) (int, error) {
	f := p.flags("latchkey ls")
	word := f.String("state", "", "only locks in this `state`, such as parked, outcome_unknown or answered")
	heldFor := f.Duration("held-for", 0, "only locks that somebody has held for that long, the longest first")
	waiting := f.Bool("waiting", false, "only locks that processes wait for, those with the most first")
	asJSON := f.Bool("json", false, "as JSON")
	if err := p.parse(f, args, 0, 1); err != nil {
		return 0, err
	}
	state := core.State(strings.ReplaceAll(*word, " ", "_"))
	switch {
	case *heldFor < 0:
		return 0, fmt.Errorf("%w: -held-for %v is negative", errUsage, *heldFor)
	case state != "" && !slices.Contains(contention.States, state):
		all := strings.ReplaceAll(strings.Trim(fmt.Sprint(contention.States), "[]"), " ", ", ")
		return 0, fmt.Errorf("%w: there is no -state %s, only %s", errUsage, plain(string(state)), all)
	}
	locker, disconnect, err := p.connect(ctx, adapter.Looking())
	if err != nil {
		return 0, err
	}
	defer disconnect()
	client := newClient(p.url())
	defer client.Close()
	keys, answered, err := p.scan(ctx, client, f.Arg(0), state == core.StateForeign)
	if err != nil {
		return 0, err
	}
	leftOut := 0
	switch {
	case *heldFor > 0 || *waiting || state != "" && state != core.StateAnswered:
		answered = nil
	case state == core.StateAnswered:
		keys = nil
	case f.Arg(0) == "":
		leftOut, answered = len(answered), nil
	}
	locks, err := lookUp(ctx, locker, keys)
	if err != nil {
		return 0, err
	}
	locks = slices.DeleteFunc(locks, func(l found) bool {
		unasked := state == "" && f.Arg(0) == "" && l.State == core.StateDedupWindow && contention.IsKeepOnes(l.key)
		other := state != "" && contention.State(l.Info) != state
		return unasked || other || *heldFor > 0 && l.heldFor() < *heldFor || *waiting && len(l.Queue) == 0
	})
	slices.SortStableFunc(locks, func(a, b found) int {
		switch {
		case *waiting:
			return cmp.Or(len(b.Queue)-len(a.Queue), cmp.Compare(b.heldFor(), a.heldFor()))
		case *heldFor > 0:
			return cmp.Compare(b.heldFor(), a.heldFor())
		default:
			return a.rank() - b.rank()
		}
	})
	total := len(locks) + len(answered)
	locks = locks[:min(len(locks), maxListed)]
	answers, err := lookUp(ctx, locker, answered[:min(len(answered), maxListed-len(locks))])
	if err != nil {
		return 0, err
	}
	locks = append(locks, answers...)
	if *asJSON {
		return 0, p.printJSON(newListJSON(locks, total, leftOut))
	}
	p.table(locks)
	if total+leftOut == 0 {
		p.sayWhere(ctx, client)
	}
	if leftOut > 0 {
		fmt.Fprintf(p.stderr, "latchkey: stored answers left out: %d; -state answered lists them\n", leftOut)
	}
	if total > maxListed {
		fmt.Fprintf(p.stderr, "latchkey: the first %d of %d locks; name a part of their keys to see others\n", maxListed, total)
	}
	return 0, nil
}

// lookUp asks Redis for the locks of keys, in their order, and leaves out what is free by now.
func lookUp(ctx context.Context, locker *core.Locker, keys []string) ([]found, error) {
	ctx, cancel := context.WithTimeout(ctx, lookUpWithin)
	defer cancel()
	all, failures := make([]found, len(keys)), make([]error, len(keys))
	slots := make(chan struct{}, lookedUpAtOnce)
	var asking sync.WaitGroup
	for i, key := range keys {
		slots <- struct{}{}
		asking.Add(1)
		go func() {
			defer func() { <-slots; asking.Done() }()
			info, err := inspectPatiently(ctx, locker, key)
			if !errors.Is(err, core.ErrInvalidKey) && !redis.HasErrorPrefix(err, wrongType) { // somebody else's, and no lock
				all[i], failures[i] = found{key, info}, err
			}
		}()
	}
	asking.Wait()
	return slices.DeleteFunc(all, func(l found) bool { return !l.Locked }), cmp.Or(failures...)
}

// inspectPatiently asks a Redis again that is asked for more than it can do: whoever looks into that needs the answer.
func inspectPatiently(ctx context.Context, locker *core.Locker, key string) (core.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, lookUpWithin)
	defer cancel()
	for {
		info, err := locker.Inspect(ctx, key)
		if !errors.Is(err, core.ErrOverloaded) {
			return info, err
		}
		select {
		case <-ctx.Done():
			return info, err
		case <-time.After(lookAgainAfter):
		}
	}
}

// table shows locks in lines of 80 columns.
func (p *program) table(locks []found) {
	rows := [][]string{{"KEY", "STATE", "HOLDER", "HELD", "LEFT", "PROCS"}}
	for _, l := range locks {
		holder, held, ttl := "-", "-", l.TTL
		if longest, ok := contention.Longest(l.Info); ok {
			held, ttl = span(longest.HeldFor), longest.TTL
			if holder = contention.Process(longest.Owner); holder == longest.Owner {
				holder = plain(holder)
			}
		}
		if n := len(l.Holders); n > 1 {
			holder, ttl = fmt.Sprintf("%d holders", n), l.TTL
		}
		rows = append(rows, []string{plain(l.key), state(l.Info), holder, held, left(ttl), fmt.Sprint(len(l.Queue))})
	}
	const keys, holders = 0, 2 // columns that are cut
	widths := make([]int, len(rows[0]))
	room := columns
	for i := range widths {
		for _, row := range rows {
			widths[i] = max(widths[i], width(row[i]))
		}
		room -= widths[i] + 2
	}
	room += widths[keys] + widths[holders] + 2
	widths[holders] = min(widths[holders], max(room-widths[keys], room/2))
	widths[keys] = min(widths[keys], room-widths[holders])
	for _, row := range rows {
		row[keys], row[holders] = cut(row[keys], widths[keys]), cut(row[holders], widths[holders])
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell + strings.Repeat(" ", widths[i]-width(cell)+2))
		}
		fmt.Fprintln(p.stdout, strings.TrimRight(line.String(), " "))
	}
}

// scan returns the keys of the locks in Redis that contain a text, in order, and apart from them those of stored answers, of
// which there may be a thousand times as many. A string may be somebody else's lock, but also anything else that has such a name:
// it counts only where a text, or what is foreign, is looked for.
func (p *program) scan(ctx context.Context, client redis.UniversalClient, part string, foreign bool) (keys, answered []string, err error) {
	kind := "hash"
	if foreign || part != "" {
		kind = "" // one pass for both: Redis goes through all of its names in each
	}
	var mu sync.Mutex
	names := map[string]string{} // by keys; SCAN may name one twice
	of := func(ctx context.Context, node redis.Cmdable) error {
		escaped := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(p.prefix)
		all := node.ScanType(ctx, 0, escaped+"*", inOneStep, kind).Iterator()
		for all.Next(ctx) {
			name := strings.TrimPrefix(all.Val(), p.prefix)
			if strings.Contains(name, "{") { // a queue or a clock: in a lock's name it is escaped
				continue
			}
			if key, err := url.PathUnescape(name); err == nil && contention.Matches(key, part) {
				mu.Lock()
				names[key] = all.Val()
				mu.Unlock()
			}
		}
		return all.Err()
	}
	if cluster, ok := client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return of(ctx, node) })
	} else {
		err = of(ctx, client)
	}
	for step := range slices.Chunk(slices.Sorted(maps.Keys(names)), inOneStep) {
		asked, _ := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, key := range step {
				pipe.HExists(ctx, names[key], answerField)
			}
			return nil
		})
		for i, key := range step {
			if asked[i].(*redis.BoolCmd).Val() {
				answered = append(answered, key)
			} else {
				keys = append(keys, key) // also where Redis has not told: it is looked up
			}
		}
	}
	return keys, answered, err
}
