package redisson

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// The name in Java is the prefix and the key, with some bytes percent-encoded, and so
// is its channel.
func TestNames(t *testing.T) {
	p := singlePair(t, core.Prefix("billing:"))
	for key, name := range map[string]string{
		"order:42": "order:42", "with space/ü": "with space/ü", "{tag}": "%7Btag%7D", "50%": "50%25", "a\nb": "a%0Ab", "\xff": "%FF",
	} {
		lock := "billing:" + name
		p.java.do(t, "lock", lock)
		wantBusy(t, p.l, key)
		got := take(background, p.l, key)
		p.awaitWaiting(t, lock, 1)
		p.java.do(t, "unlock", lock)
		k := taken(t, got).lock
		p.java.gives(t, true, "isLocked", lock)
		succeed(t, k.Unlock(background))
	}
}

// The rights that docs/migrating.md names are enough for both sides.
func TestRights(t *testing.T) {
	text, err := os.ReadFile("../../docs/migrating.md")
	succeed(t, err)
	_, rest, found := strings.Cut(string(text), "ACL SETUSER shop on >secret ")
	rules, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("docs/migrating.md does not say which rights are needed")
	}
	server := startRedis(t)
	admin := server.Client(t)
	args := []any{"ACL", "SETUSER", "shop", "on", ">secret"}
	for _, rule := range strings.Fields(rules) {
		args = append(args, rule)
	}
	succeed(t, admin.Do(background, args...).Err())
	client := server.Client(t, func(o *redis.Options) { o.Username, o.Password = "shop", "secret" })
	java := startJava(t, "address=redis://"+server.Addr(), "user=shop", "password=secret", "watchdog="+inMillis(lease)).thread(1)
	p := pair{java, onRedis(t, client, core.Lease(lease)), admin, []*redis.Client{admin}}
	p.wakes(t, 5)
	p.java.do(t, "lock", "lock:k")
	wantBusy(t, p.l, "k")
	before := p.java.ttl(t, "lock:k")
	redistest.Await(t, inTheEnd, "Java to renew", func() bool {
		now := p.java.ttl(t, "lock:k")
		renewed := now > before
		before = now
		return renewed
	})
	k := mustLock(t, p.l, "held here")
	redistest.Await(t, inTheEnd, "Go to renew", func() bool { return p.l.Snapshot("held here").Held[0].Renewals > 0 })
	succeed(t, k.Unlock(background))
	p.java.gives(t, 1, "count", "lock:k")
	p.java.gives(t, true, "isLocked", "lock:k")
	p.java.gives(t, true, "forceUnlock", "lock:k")
	for _, entry := range admin.Do(background, "ACL", "LOG").Val().([]any) {
		if refused := fmt.Sprint(entry); !strings.Contains(refused, "object:test1 ") { // which Redisson tries to read when it starts
			t.Error("refused:", refused)
		}
	}
}
