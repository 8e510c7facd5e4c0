package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// rightsInTheFAQ are those that docs/faq.md says an operator needs to look, and besides to unlock.
func rightsInTheFAQ(t *testing.T) (look, unlock []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/faq.md")
	if err != nil {
		t.Fatal(err)
	}
	after := func(begin, end string) []string {
		_, rest, found := strings.Cut(string(text), begin)
		rules, _, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatal("docs/faq.md does not say which rights are needed")
		}
		return strings.Fields(rules)
	}
	return after("ACL SETUSER operator on >secret ", "ACL SETUSER"), after("ACL SETUSER operator &", "```")
}

// Each right is needed, and no other one.
func TestRightsOfAnOperator(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	l := locker(t, admin, core.Lease(10*time.Minute))
	look, unlock := rightsInTheFAQ(t)
	unlock[0] = "&" + unlock[0]
	// works takes each way through the scripts that looks or unlocks, and reports whether nothing was refused.
	works := func(rights []string, unlocks bool) bool {
		t.Helper()
		rules := []any{"acl", "setuser", "operator", "reset", "on", ">secret"}
		for _, r := range rights {
			rules = append(rules, r)
		}
		does := func(commands ...[]any) {
			t.Helper()
			for _, command := range commands {
				if err := admin.Do(t.Context(), command...).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
		does(rules, []any{"acl", "log", "reset"}, []any{"flushall"}, []any{"hset", "lock:redisson", "c0ffee:1", "1"},
			[]any{"set", "lock:string", "theirs"})
		k := take(t, l, "held")
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan struct{})
		go func() {
			defer close(gaveUp)
			_, _ = l.Lock(ctx, "held", core.Shared())
		}()
		defer func() { cancel(); <-gaveUp; _ = k.Unlock(context.Background()) }()
		redistest.Await(t, patience, "a call that waits", func() bool {
			info, err := l.Inspect(t.Context(), "held")
			return err == nil && len(info.Queue) == 1
		})
		take(t, l, "shared", core.Shared(), core.Owner("one"))
		take(t, l, "shared", core.Shared(), core.Owner("two"))
		_ = take(t, l, "window", core.KeepFor(time.Hour)).Unlock(t.Context())
		does([]any{"script", "flush"})

		commands := [][]string{{"ls"}, {"ls", "-waiting"}, {"show", "held"}, {"show", "shared"}, {"show", "string"}}
		if unlocks {
			commands = append(commands, []string{"unlock", "-y", "-owner", "one", "shared"}, []string{"unlock", "-y", "window"},
				[]string{"unlock", "-y", "held"}, []string{"unlock", "-y", "redisson"})
		}
		for _, args := range commands {
			if exit, said := ask(t, "redis://operator:secret@"+server.Addr(), "", args...); exit != 0 {
				t.Log(args, exit, said)
				return false
			}
		}
		refused := admin.Do(t.Context(), "acl", "log").Val().([]any)
		for _, entry := range refused {
			t.Log(entry)
		}
		return len(refused) == 0
	}
	both := append(look[:len(look):len(look)], unlock...)
	if !works(look, false) {
		t.Error("the rights to look do not suffice")
	}
	if !works(both, true) {
		t.Error("the rights to unlock do not suffice")
	}
	for i, right := range both {
		switch right {
		case "+ping", "+hello", "+client", "resetchannels": // of the connection
			continue
		}
		if works(append(both[:i:i], both[i+1:]...), true) {
			t.Errorf("%s is not needed", right)
		}
		if i < len(look) && works(append(look[:i:i], look[i+1:]...), false) {
			t.Errorf("%s is not needed to look", right)
		}
	}
}

// Who looks writes nothing.
func TestLookAtAFullRedis(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	take(t, locker(t, admin), "held")
	if err := admin.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"ls"}, {"show", "held"}, {"unlock", "-y", "held"}} {
		if exit, said := ask(t, server.Addr(), "", args...); exit != 0 || !strings.Contains(said, "held") {
			t.Errorf("%q: %d %s", args, exit, said)
		}
	}
}
