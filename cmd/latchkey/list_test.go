package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestListOfACluster(t *testing.T) {
	cluster := redistest.StartCluster(t, 3, 0)
	l := locker(t, cluster.Client(t))
	want := "KEY"
	for _, key := range []string{"a", "b", "c", "d", "e"} { // in several slots
		take(t, l, key)
		want += " " + key
	}
	addresses := cluster.Addrs()
	exit, said := ask(t, "redis://"+addresses[0]+"?addr="+addresses[1], "", "ls")
	var keys []string
	for line := range strings.Lines(said) {
		keys = append(keys, strings.Fields(line)[0])
	}
	if got := strings.Join(keys, " "); exit != 0 || got != want {
		t.Errorf("%d: %s, want %q", exit, said, want)
	}
	if exit, said := ask(t, "redis://"+addresses[0]+"?addr="+addresses[1], "", "unlock", "-y", "c"); exit != 0 || !strings.HasSuffix(said, "freed\n") {
		t.Errorf("%d: %s", exit, said)
	}
}

// While services move from SET NX, strings are locks as well. Redis also has strings and sets that are none.
func TestListOfSomebodyElsesLocks(t *testing.T) {
	server, cluster := redistest.Start(t), redistest.StartCluster(t, 3, 0)
	addresses := cluster.Addrs()
	for where, redis := range map[string]struct {
		address string
		client  redis.UniversalClient
	}{
		"one server": {server.Addr(), server.Client(t)},
		"a cluster":  {"redis://" + addresses[0] + "?addr=" + addresses[1], cluster.Client(t)},
	} {
		take(t, locker(t, redis.client), "id=42") // and a clock, a string
		for _, key := range []string{"id=7", "id=8", "id=%2542", "other"} {
			if err := redis.client.SetNX(t.Context(), "lock:"+key, "theirs", time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if err := redis.client.SAdd(t.Context(), "lock:id=9", "a set").Err(); err != nil {
			t.Fatal(err)
		}
		for args, want := range map[string]string{
			"":                 "id=42 held",
			"-state foreign":   "id=%42 foreign, id=7 foreign, id=8 foreign, other foreign",
			"-state foreign 8": "id=8 foreign",
			"-state held id=":  "id=42 held",
			"id=":              "id=%42 foreign, id=42 held, id=7 foreign, id=8 foreign",
		} {
			exit, said := ask(t, redis.address, "", append([]string{"ls"}, strings.Fields(args)...)...)
			var got []string
			for line := range strings.Lines(said) {
				cells := strings.Fields(line)
				got = append(got, strings.Join(cells[:2], " "))
				if left := regexp.MustCompile(`^(1h0m0s|59m59\.\ds)$`); cells[1] == "foreign" && (cells[2] != "-" || !left.MatchString(cells[4])) {
					t.Errorf("%s, %q: %s", where, args, line)
				}
			}
			if got := strings.Join(got[1:], ", "); exit != 0 || got != want {
				t.Errorf("%s, %q: %d, %s; want %s", where, args, exit, said, want)
			}
		}
	}
}

// There may be thousands of clocks, which are strings as well.
func TestListDoesNotAskForClocks(t *testing.T) {
	server := miniredis.RunT(t)
	server.Set("lock:k", "theirs")
	commands := func() int {
		t.Helper()
		before := server.CommandCount()
		if exit, said := ask(t, server.Addr(), "", "ls", "-state", "foreign"); exit != 0 || strings.Count(said, "\n") != 2 {
			t.Errorf("%d: %s", exit, said)
		}
		return server.CommandCount() - before
	}
	alone := commands()
	for i := range 100 {
		server.Set(fmt.Sprintf("lock:latchkey:clock:{%d}", i), "1")
	}
	if n := commands(); n > alone+50 {
		t.Errorf("%d commands, without clocks %d", n, alone)
	}
}

func TestListBySentinel(t *testing.T) {
	sentinel := redistest.StartSentinel(t, 1)
	take(t, locker(t, sentinel.Client(t)), "k")
	exit, said := ask(t, "redis://"+sentinel.Addrs()[0]+"?master_name="+sentinel.MasterName(), "", "ls")
	if exit != 0 || !strings.Contains(said, "\nk ") {
		t.Errorf("%d: %s", exit, said)
	}
}

// What somebody has or has to look after is listed before dedup windows, and these before answers, which are many and
// which nobody looks for.
func TestListHasABound(t *testing.T) {
	server := miniredis.RunT(t)
	for i := range maxListed {
		server.HSet(fmt.Sprintf("lock:a%04d", i), "mode", "w60000 ab", "latchkey:answer", "ab {}")
	}
	server.HSet("lock:window", "mode", "w60000")
	server.HSet(`lock:KeepOne=asynq\:`+strings.Repeat("ab", 16)+`\:`, "mode", "w60000") // remembers a task that is over
	server.HSet("lock:x-parked", "mode", "h7 ab 60000")
	server.HSet("lock:x-unknown", "mode", "i1 ab 60000")
	server.HSet("lock:y", "c0ffee:1", "1")
	lists := func(first string, rows int, last string, args ...string) {
		t.Helper()
		exit, said := ask(t, server.Addr(), "", append([]string{"ls"}, args...)...)
		keys := regexp.MustCompile(`(?m) .*$`).ReplaceAllString(said, "")
		if exit != 0 || !strings.HasPrefix(keys, "KEY\n"+first+"\n") || strings.Count(keys, "\n") != 1+rows || !strings.Contains(said, last) {
			t.Errorf("%q: %d, %d lines: %s\nwant %d rows: %s", args, exit, strings.Count(keys, "\n"), said, rows, first)
		}
	}
	lists("x-parked\nx-unknown\ny\nwindow", 4+1, "stored answers left out: 1000; -state answered lists them")
	lists(`KeepOne=asynq\:aba…abababababababab\:`+"\nwindow", 2, "", "-state", "dedup_window")
	lists("a0010\na0011", 10, "a0019", "-state", "answered", "a001")
	lists("x-parked\na0000\na0001", maxListed+1, "the first 1000 of 1001 locks", "a")
	if exit, said := ask(t, server.Addr(), "", "ls", "-state", "halfway"); exit != exitUsage || !strings.Contains(said, "no -state halfway, only held,") {
		t.Errorf("%d: %s", exit, said)
	}
	for i := range maxListed {
		server.HSet(fmt.Sprintf("lock:z%04d", i), "c0ffee:1", "1")
	}
	lists("x-parked\nx-unknown\ny\nz0000", maxListed+2, "the first 1000 of 1004 locks")
}

// A number that somebody looks for is by chance in one digest of five.
func TestListDoesNotSearchInDigests(t *testing.T) {
	server := miniredis.RunT(t)
	digest := strings.Repeat("42ab", 16)
	for _, key := range []string{"orderID=42", "idempotent:" + digest, `KeepOne=asynq\:` + digest[:32] + `\:`, "idempotent:42"} {
		server.HSet("lock:"+key, "c0ffee:1", "1")
	}
	for part, want := range map[string]int{"42": 2, "42ab": 0, "": 4, "idem": 2, "idempotent:42ab": 1, "KeepOne": 1, "orderID": 1} {
		if _, said := ask(t, server.Addr(), "", "ls", part); strings.Count(said, "c0ffee:1") != want {
			t.Errorf("%q: %s; want %d", part, said, want)
		}
	}
}

// What JSON has no place for can be freed all the same, and a terminal shows nothing else than there is.
func TestAKeyOfAnyBytes(t *testing.T) {
	server := miniredis.RunT(t)
	const bidi = "a\u202e\u0085"
	server.HSet("lock:a&+ %FF%00", "c0ffee:1", "1")
	server.HSet("lock:"+bidi, "c0ffee:1", "1")
	_, said := ask(t, server.Addr(), "", "ls", "-json")
	if strings.ContainsAny(said, bidi[1:]) || !strings.Contains(said, `a\u202e\u0085`) {
		t.Errorf("%q", said)
	}
	var list struct {
		Locks []struct{ Key, Escaped string }
	}
	if err := json.Unmarshal([]byte(said), &list); err != nil || len(list.Locks) != 2 {
		t.Fatal(said, err)
	}
	for _, l := range list.Locks {
		args := []string{"unlock", "-y", l.Key}
		if l.Escaped != "" {
			args = []string{"unlock", "-y", "-escaped", l.Escaped}
		}
		if exit, said := ask(t, server.Addr(), "", args...); exit != 0 {
			t.Errorf("%q: %d, %s", args, exit, said)
		}
	}
	if keys := server.Keys(); len(keys) > 0 {
		t.Errorf("left: %q", keys)
	}
	if exit, _ := ask(t, server.Addr(), "", "show", "-escaped", "%x"); exit != exitUsage {
		t.Errorf("%d", exit)
	}
}
