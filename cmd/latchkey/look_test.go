package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// ask runs a latchkey that only looks, or unlocks, with what somebody types.
func ask(t *testing.T, redis, typed string, args ...string) (exit int, said string) {
	t.Helper()
	t.Setenv("LATCHKEY_REDIS", redis)
	var out bytes.Buffer
	p := &program{stdin: strings.NewReader(typed), stdout: &out, stderr: &out}
	return p.main(args), out.String()
}

// locker returns the Locker of another process.
func locker(t *testing.T, client redis.UniversalClient, opts ...core.Option) *core.Locker {
	t.Helper()
	l, err := core.New(client, append(opts, core.Describe("shop-eu"))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // tests unlock what they want unlocked
		_ = l.Close(ctx)
	})
	return l
}

func take(t *testing.T, l *core.Locker, key string, opts ...core.Option) *core.Lock {
	t.Helper()
	k, err := l.Lock(t.Context(), key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// spaces makes a table comparable.
var spaces = regexp.MustCompile(` {2,}`)

func TestWhatThereIs(t *testing.T) {
	server := miniredis.RunT(t)
	server.SetTime(time.Now()) // which stands still
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { client.Close() })
	l := locker(t, client)
	held := take(t, l, "orderID=7")
	take(t, l, "café {1}\n", core.Owner("job\u202e7"))
	take(t, l, "a  held  root (1)", core.Owner("b  1  30s")) // imitates columns
	take(t, l, "b\u2800held\u3164", core.Owner("\u0301é\ufe0f"))
	if err := take(t, l, "mail", core.KeepFor(time.Hour)).Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	take(t, locker(t, client, core.Prefix("[x]*:")), "theirs")
	take(t, l, "price", core.Shared(), core.Owner("reader-1"))
	take(t, l, "price", core.Shared(), core.Owner("reader-2"), core.FixedLease(time.Minute))
	take(t, l, "tenant", core.Permits(4), core.Weight(2), core.Owner("import"))
	take(t, l, "tenant", core.Permits(4), core.Owner("other"))
	server.HSet("lock:upload", "mode", "h7 ab 60000")
	server.SetTTL("lock:upload", time.Minute)
	server.HSet("lock:java", "c0ffee:1", "2")
	server.HSet("lock:idempotent:a", "mode", "w86400000 ab", "latchkey:answer", "ab {}")
	server.HSet("lock:idempotent:b", "mode", "i1 ab 86400000")
	for _, key := range []string{"a", "b"} {
		server.SetTTL("lock:idempotent:"+key, 24*time.Hour)
	}
	paying := take(t, l, "idempotent:c", adapter.Attempt("0123456789abcdef", time.Hour, false))
	server.Set("lock:a string", "of others")
	server.HSet("lock:{orderID=7}", "of", "others")

	who, _ := core.ProcessOf(held.Owner())
	pid := regexp.MustCompile(`shop-eu \(\d+\)`)
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"ls"}, []string{
			"KEY STATE HOLDER HELD LEFT PROCS",
			`"a held root (1)" held "b 1 30s" - 30s 0`, // spaces are one here
			`"b\u2800held\u3164" held "\u0301é\ufe0f" - 30s 0`,
			`"café {1}\n" held "job\u202e7" - 30s 0`,
			"idempotent:b outcome unknown - - 24h0m0s 0",
			"idempotent:c attempt shop-eu - 30s 0",
			"java held c0ffee:1 - no end 0",
			"orderID=7 held shop-eu - 30s 0",
			"price shared 2 holders - 1m0s 0",
			"tenant permits 2 holders - 30s 0",
			"upload parked - - 1m0s 0",
			"mail dedup window - - 1h0m0s 0",
			"latchkey: stored answers left out: 1; -state answered lists them",
		}},
		{[]string{"ls", "order"}, []string{"KEY STATE HOLDER HELD LEFT PROCS", "orderID=7 held shop-eu - 30s 0"}},
		{[]string{"ls", "-prefix", "[x]*:"}, []string{"KEY STATE HOLDER HELD LEFT PROCS", "theirs held shop-eu - 30s 0"}},
		{[]string{"show", "orderID=7"}, []string{
			"key orderID=7", "state held", "owner " + held.Owner(),
			fmt.Sprintf(`process %d of "shop-eu", since %s`, os.Getpid(), who.Since.Format(time.RFC3339)), "holds 1", "held -", "left 30s",
			"renewed 0s ago, due every 10s",
		}},
		{[]string{"show", "java"}, []string{"key java", "state held", "owner c0ffee:1", "holds 2", "held -", "left no end"}},
		{[]string{"show", "price"}, []string{
			"key price", "state shared", "owner reader-1", "holds 1", "held -", "left 30s", "renewed 0s ago, due every 10s",
			"owner reader-2", "holds 1", "held -", "left 1m0s",
		}},
		{[]string{"show", "tenant"}, []string{
			"key tenant", "state permits", "owner import", "permits 2", "holds 1", "held -", "left 30s", "renewed 0s ago, due every 10s",
			"owner other", "holds 1", "held -", "left 30s", "renewed 0s ago, due every 10s",
		}},
		{[]string{"show", "upload"}, []string{"key upload", "state parked", "ticket SHA-1 ab", "left 1m0s"}},
		{[]string{"show", "mail"}, []string{"key mail", "state dedup window", "left 1h0m0s"}},
		{[]string{"show", "idempotent:b"}, []string{"key idempotent:b", "state outcome unknown", "attempt 1", "left 24h0m0s"}},
		{[]string{"show", "nobody's"}, []string{"key nobody's", "state free", "hint keys of middleware have a name: latchkey ls nobody's finds orderID=nobody's"}},
		{[]string{"show", "lock:orderID=7"}, []string{
			"key lock:orderID=7", "state free", "warning it begins with the prefix: did you mean orderID=7?",
		}},
	} {
		exit, said := ask(t, server.Addr(), "", c.args...)
		said = pid.ReplaceAllString(spaces.ReplaceAllString(said, " "), "shop-eu")
		said, _, _ = strings.Cut(said, "latchkey: looked ") // which has a test of its own
		if want := strings.Join(c.want, "\n") + "\n"; (exit == exitFree) != strings.Contains(want, "state free") || said != want {
			t.Errorf("%q: %d\n%s\nwant\n%s", c.args, exit, said, want)
		}
	}
	for key, want := range map[string]string{"idempotent:a": "does it again", "idempotent:b": "counts as the first"} {
		if exit, said := ask(t, server.Addr(), "n\n", "unlock", key); exit != 1 || !strings.Contains(said, want) {
			t.Errorf("%d: %s; want %q", exit, said, want)
		}
	}
	if err := paying.Abort(t.Context()); err != nil {
		t.Error(err)
	}
	t.Setenv("LATCHKEY_PREFIX", "[x]*:")
	if exit, said := ask(t, server.Addr(), "", "show", "theirs"); exit != 0 || !strings.Contains(said, "held") {
		t.Errorf("%d: %s", exit, said)
	}
}

func TestHelp(t *testing.T) {
	for _, c := range []struct{ args, lists string }{
		{"help", "-redis"}, {"-h", "-redis"}, {"-help", "-prefix"}, {"--help", `"lock:"`},
		{"run -help", "-keep"}, {"help run", "-keep"}, {"unlock -h", "-y"}, {"help ls", "Flags of latchkey ls:"}, {"show -h k", "Flags of latchkey show:"},
	} {
		exit, said := ask(t, "redis://user:secret@localhost", "", strings.Fields(c.args)...)
		if exit != 0 || !strings.Contains(said, c.lists) || !strings.HasPrefix(said, "usage:") || strings.Contains(said, "secret") {
			t.Errorf("%s: %d %s; want %s", c.args, exit, said, c.lists)
		}
	}
}

func TestUnlockAsksFirst(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	l := locker(t, client, core.Lease(time.Hour))
	take(t, l, "k")
	wake := client.Subscribe(t.Context(), "redisson_lock__channel:{lock:k}")
	defer wake.Close()
	if _, err := wake.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, answer := range []string{"", "\n", "n\n", "no\n", "yoo\n"} {
		exit, said := ask(t, server.Addr(), answer, "unlock", "k")
		if exit != 1 || !strings.Contains(said, "This does not stop the holder") || !strings.Contains(said, "nothing was done") {
			t.Errorf("%q: %d %s", answer, exit, said)
		}
	}
	if n := client.Exists(t.Context(), "lock:k").Val(); n != 1 {
		t.Fatal("the lock is gone")
	}
	if exit, said := ask(t, server.Addr(), " Yes\n", "unlock", "k"); exit != 0 || !strings.HasSuffix(said, "freed\n") {
		t.Errorf("%d %s", exit, said)
	}
	if m, err := wake.ReceiveMessage(t.Context()); err != nil || m.Payload != "0" {
		t.Error("who waits is not told: ", m, err)
	}
	if exit, said := ask(t, server.Addr(), "", "unlock", "-y", "k"); exit != 1 || !strings.HasSuffix(said, "\nthe lock is free: nothing to do\n") {
		t.Errorf("%d %s", exit, said)
	}
	if err := take(t, l, "mail", core.KeepFor(time.Hour)).Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exit, said := ask(t, server.Addr(), "y\n", "unlock", "mail"); exit != 0 || !strings.Contains(said, "keeps it from being done again") {
		t.Errorf("%d %s", exit, said)
	}
	if n := client.Exists(t.Context(), "lock:mail").Val(); n != 0 {
		t.Error("the window is still there")
	}
}

// Whoever unlocks an attempt learns that it is not forgotten, and how it would be.
func TestUnlockOfAnAttempt(t *testing.T) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { client.Close() })
	take(t, locker(t, client), "pay", adapter.Attempt("00112233445566778899aabbccddeeff", time.Hour, false))
	if _, said := ask(t, server.Addr(), "n\n", "unlock", "pay"); !strings.Contains(said, "the next attempt is told so, or refused") {
		t.Error(said)
	}
	for _, want := range []string{"unlock again to have the attempt forgotten\n", "Without the lock the next attempt counts as the first", "free: nothing to do\n"} {
		if _, said := ask(t, server.Addr(), "y\n", "unlock", "pay"); !strings.Contains(said, want) {
			t.Errorf("%s; want %s", said, want)
		}
	}
}

func TestUnlockOneOfSeveral(t *testing.T) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { client.Close() })
	l := locker(t, client)
	for _, owner := range []string{"export-1", "export-2", "export-3"} {
		take(t, l, "tenant", core.Permits(3), core.Owner(owner))
	}
	unlocks := func(typed string, exit int, says string, left []string, args ...string) {
		t.Helper()
		got, said := ask(t, server.Addr(), typed, append([]string{"unlock"}, args...)...)
		if got != exit || !strings.Contains(said, says) {
			t.Errorf("%q: %d %s; want %d, %s", args, got, said, exit, says)
		}
		info, err := l.Inspect(t.Context(), "tenant")
		var owners []string
		for _, h := range info.Holders {
			owners = append(owners, h.Owner)
		}
		if err != nil || !slices.Equal(owners, left) {
			t.Errorf("%q: %q hold it, %v; want %q", args, owners, err, left)
		}
	}
	all := []string{"export-1", "export-2", "export-3"}
	unlocks("", 1, "export-9 does not hold the lock", all, "-y", "-owner", "export-9", "tenant")
	unlocks("n\n", 1, "nothing was done", all, "-owner", "export-2", "tenant")
	unlocks("n\n", 1, "Evict export-2?", all, "-owner", "export-2", "tenant")
	unlocks("n\n", 1, "does not stop the holders", all, "tenant")
	unlocks("y\n", 0, "evicted; others have the lock: 2", []string{"export-1", "export-3"}, "-owner", "export-2", "tenant")
	unlocks("y\n", 0, "freed", nil, "tenant")
	server.HSet("lock:tenant", "mode", "h7 ab 60000")
	unlocks("n\n", 1, "a task of asynqlock competes with others, and Resume fails", nil, "tenant")
	unlocks("", 0, "freed", nil, "-y", "tenant")
	server.Set("lock:tenant", "theirs")
	unlocks("n\n", 1, "state  foreign", nil, "tenant")
	unlocks("n\n", 1, "This is no lock of latchkey", nil, "tenant")
	unlocks("", 0, "freed", nil, "-y", "tenant")
	if server.Exists("lock:tenant") {
		t.Error("it is still there")
	}
}
