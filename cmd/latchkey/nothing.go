package main

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// lookedAround bounds the search for what else there is, where nothing was found.
const lookedAround = time.Second

// sayWhere says where nothing was found: most often the locks are somewhere else. What Redis does not tell is left out.
func (p *program) sayWhere(ctx context.Context, client redis.UniversalClient) {
	ctx, cancel := context.WithTimeout(ctx, lookedAround)
	defer cancel()
	fmt.Fprintf(p.stderr, "latchkey: looked %s, for names that begin with %s\n", p.where(client), plain(p.prefix))
	node, isOne := client.(*redis.Client)
	if !isOne {
		return
	}
	if role, err := node.Do(ctx, "ROLE").Slice(); err == nil && len(role) > 0 && role[0] == "slave" {
		fmt.Fprintln(p.stderr, "latchkey: this is a replica, which may lag behind its master")
	}
	if others := p.otherPrefixes(ctx, node); len(others) > 0 {
		fmt.Fprintf(p.stderr, "latchkey: there have been locks with another -prefix: %s\n", strings.Join(others, ", "))
	}
	for line := range strings.Lines(node.Info(ctx, "keyspace").Val()) {
		if db, _, has := strings.Cut(line, ":keys="); has && db != fmt.Sprintf("db%d", node.Options().DB) {
			fmt.Fprintf(p.stderr, "latchkey: database %s has keys, too\n", strings.TrimPrefix(db, "db"))
		}
	}
}

// where names the server and database of a client, without a password.
func (p *program) where(client redis.UniversalClient) string {
	u, _ := url.Parse(p.url())
	switch c := client.(type) {
	case *redis.ClusterClient:
		return "in the cluster of " + plain(strings.Join(c.Options().Addrs, ", "))
	case *redis.Client:
		at := "at " + plain(c.Options().Addr)
		if master := u.Query().Get("master_name"); master != "" {
			at = "at the master " + plain(master)
		}
		return fmt.Sprintf("%s, database %d", at, c.Options().DB)
	}
	return ""
}

// otherPrefixes are those under which there have been locks lately, as their clocks tell.
func (p *program) otherPrefixes(ctx context.Context, node *redis.Client) []string {
	found := map[string]bool{}
	clocks := node.ScanType(ctx, 0, "*latchkey:clock:{*", inOneStep, "string").Iterator()
	for clocks.Next(ctx) {
		if prefix, _, _ := strings.Cut(clocks.Val(), "latchkey:clock:{"); prefix != p.prefix {
			found[plain(prefix)] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
