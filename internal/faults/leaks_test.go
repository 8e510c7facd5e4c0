package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

var background = context.Background()

// longestKept is how long what is beside a lock may outlive it: tombstones, and the marks
// by which servers are told apart.
const longestKept = time.Minute

// admin is a client for questions to one server, past every proxy. The caller closes
// it.
func admin(s *redistest.Server) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: s.Addr(), PoolSize: 1,
		OnConnect: func(ctx context.Context, c *redis.Conn) error {
			_ = c.ReadOnly(ctx).Err() // replicas of a cluster answer then; others know no such thing
			return nil
		},
	})
}

// leftovers names what is still in Redis although every lock was released: locks,
// and keys that would stay for ever.
func (top *topology) leftovers(tb testing.TB) (found []string) {
	tb.Helper()
	for _, s := range top.servers {
		if s.Running() {
			found = append(found, leftoversOf(tb, s)...)
		}
	}
	return found
}

// leftoversOf names the locks in one server, and the keys that would stay for ever.
func leftoversOf(tb testing.TB, s *redistest.Server) (found []string) {
	tb.Helper()
	client := admin(s)
	defer client.Close()
	keys, err := client.Keys(background, "*").Result()
	if err != nil {
		tb.Fatal(err)
	}
	for _, key := range keys {
		kind, err := client.Type(background, key).Result()
		if err != nil {
			tb.Fatal(err)
		}
		ttl, err := client.PTTL(background, key).Result()
		if err != nil {
			tb.Fatal(err)
		}
		kept := strings.HasSuffix(key, ":queue") || strings.Contains(key, "latchkey:probe:")
		switch {
		case kind == "none": // it has just ended
		case kind == "hash" && isRequest(key) && ttl > 0:
			if left := holderOf(client, key); left > 0 {
				found = append(found, fmt.Sprintf("an attempt at %s is still made, for %v", key, left))
			}
		case kind == "hash":
			found = append(found, fmt.Sprintf("%s is still held, for %v", key, ttl))
		case strings.Contains(key, "latchkey:clock:"): // of the hash slot
		case !kept || ttl < 0 || ttl > longestKept:
			found = append(found, fmt.Sprintf("%s, a %s, stays for %v", key, kind, ttl))
		}
	}
	return found
}

// connections names the workers' connections that are left.
func (top *topology) connections(tb testing.TB) (found []string) {
	tb.Helper()
	if n := top.wires.all().connections(); n > 0 {
		found = append(found, fmt.Sprintf("%d connections through proxies are left", n))
	}
	for _, s := range top.servers {
		client := admin(s)
		list, err := client.ClientList(background).Result()
		_ = client.Close()
		if err != nil {
			tb.Fatal(err)
		}
		for line := range strings.Lines(list) {
			if strings.Contains(line, " name="+connectionName+" ") {
				found = append(found, "a connection is left: "+line)
			}
		}
	}
	return found
}

// awaitNone asks until there is nothing more to be found, and returns what is left
// after d.
func awaitNone(d time.Duration, find func() []string) []string {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(d); ; <-tick.C {
		if found := find(); len(found) == 0 || time.Now().After(end) {
			return found
		}
	}
}
