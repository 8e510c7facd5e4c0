package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	lookedUpAtOnce = 64
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

// list shows the locks that there are.
func (p *program) list(ctx context.Context, args []string) (int, error) {
	f := p.flags("latchkey ls")
	heldFor := f.Duration("held-for", 0, "only locks that somebody has held for that long, the longest first")
	waiting := f.Bool("waiting", false, "only locks that processes wait for, those with the most first")
	asJSON := f.Bool("json", false, "as JSON")
	if err := p.parse(f, args, 0, 1); err != nil {
		return 0, err
	}
	if *heldFor < 0 {
		return 0, fmt.Errorf("%w: -held-for %v is negative", errUsage, *heldFor)
	}
	locker, disconnect, err := p.connect(ctx, adapter.Looking())
	if err != nil {
		return 0, err
	}
	defer disconnect()
	client := newClient(p.url())
	defer client.Close()
	keys, err := p.scan(ctx, client, f.Arg(0))
	if err != nil {
		return 0, err
	}
	total, filtered := len(keys), *heldFor > 0 || *waiting
	if !filtered {
		keys = keys[:min(total, maxListed)]
	}
	locks, err := lookUp(ctx, locker, keys)
	if err != nil {
		return 0, err
	}
	if filtered {
		locks = slices.DeleteFunc(locks, func(l found) bool {
			return *heldFor > 0 && l.heldFor() < *heldFor || *waiting && len(l.Queue) == 0
		})
		slices.SortStableFunc(locks, func(a, b found) int {
			if !*waiting {
				return cmp.Compare(b.heldFor(), a.heldFor())
			}
			return cmp.Or(len(b.Queue)-len(a.Queue), cmp.Compare(b.heldFor(), a.heldFor()))
		})
		total = len(locks)
		locks = locks[:min(total, maxListed)]
	}
	if *asJSON {
		return 0, p.printJSON(newListJSON(locks, total))
	}
	p.table(locks)
	if total > maxListed {
		fmt.Fprintf(p.stderr, "latchkey: the first %d of %d locks; name a part of their keys to see others\n", maxListed, total)
	}
	return 0, nil
}

// lookUp asks Redis for the locks of keys, in their order, and leaves out what is free by now.
func lookUp(ctx context.Context, locker *core.Locker, keys []string) ([]found, error) {
	all, failures := make([]found, len(keys)), make([]error, len(keys))
	slots := make(chan struct{}, lookedUpAtOnce)
	var asking sync.WaitGroup
	for i, key := range keys {
		slots <- struct{}{}
		asking.Go(func() {
			defer func() { <-slots }()
			info, err := locker.Inspect(ctx, key)
			if !errors.Is(err, core.ErrInvalidKey) { // somebody else's
				all[i], failures[i] = found{key, info}, err
			}
		})
	}
	asking.Wait()
	return slices.DeleteFunc(all, func(l found) bool { return !l.Locked }), cmp.Or(failures...)
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

// scan returns the keys of the locks in Redis that contain a text, in order.
func (p *program) scan(ctx context.Context, client redis.UniversalClient, part string) ([]string, error) {
	var mu sync.Mutex
	var keys []string
	of := func(ctx context.Context, node redis.Cmdable) error {
		escaped := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(p.prefix)
		names := node.ScanType(ctx, 0, escaped+"*", 1000, "hash").Iterator()
		for names.Next(ctx) {
			if key, err := url.PathUnescape(strings.TrimPrefix(names.Val(), p.prefix)); err == nil && strings.Contains(key, part) {
				mu.Lock()
				keys = append(keys, key)
				mu.Unlock()
			}
		}
		return names.Err()
	}
	var err error
	if cluster, ok := client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return of(ctx, node) })
	} else {
		err = of(ctx, client)
	}
	slices.Sort(keys)
	return slices.Compact(keys), err // SCAN may name one twice
}
