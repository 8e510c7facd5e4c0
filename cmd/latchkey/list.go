package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

// maxListed bounds what is looked up, and shown.
const maxListed = 1000

// list shows the locks that there are.
func (p *program) list(ctx context.Context, args []string) (int, error) {
	f := p.flags("latchkey ls")
	if err := p.parse(f, args, 0, 1); err != nil {
		return 0, err
	}
	locker, disconnect, err := p.connect(ctx)
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
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprint(w, "KEY\tSTATE\tOWNER\tHOLDS\tLEFT\n")
	for _, key := range keys[:min(len(keys), maxListed)] {
		info, err := locker.Inspect(ctx, key)
		switch {
		case errors.Is(err, core.ErrInvalidKey): // somebody else's
			continue
		case err != nil:
			return 0, err
		case info.Locked: // it may have ended meanwhile
			ttl := info.TTL
			if len(info.Holders) == 1 {
				ttl = info.Holders[0].TTL // what is known of an attempt outlasts it
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", plain(key), state(info), owner(info), info.Count, left(ttl))
		}
	}
	if len(keys) > maxListed {
		fmt.Fprintf(p.stderr, "latchkey: the first %d of %d locks; name a part of their keys to see others\n", maxListed, len(keys))
	}
	return 0, nil
}

func owner(info core.Info) string {
	if who, ok := core.ProcessOf(info.Owner); ok {
		return fmt.Sprintf("%s (%d)", who.Name, who.PID)
	}
	switch len(info.Holders) {
	case 0:
		return "-"
	case 1:
		return plain(info.Owner)
	default:
		return fmt.Sprintf("%d holders", len(info.Holders))
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
