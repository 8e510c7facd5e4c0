package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

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
