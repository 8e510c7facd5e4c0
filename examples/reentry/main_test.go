package main

import (
	"context"
	"strings"
	"testing"
)

// set changes a flag for one test.
func set[T any](t *testing.T, flag *T, value T) {
	before := *flag
	*flag = value
	t.Cleanup(func() { *flag = before })
}

// The program itself checks what came of it.
func TestRun(t *testing.T) {
	for _, c := range []struct{ callers, depth int }{{20, 5}, {1, 1}, {40, 2}} {
		set(t, callers, c.callers)
		set(t, depth, c.depth)
		if err := run(context.Background()); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestBadFlagsAreExplained(t *testing.T) {
	for _, c := range []struct {
		callers, depth int
		want           string
	}{
		{0, 5, "-callers must be 1 to 1000, not 0"},
		{1001, 5, "-callers must be 1 to 1000, not 1001"},
		{20, 0, "-depth must be 1 to 50, not 0"},
		{20, 51, "-depth must be 1 to 50, not 51"},
	} {
		set(t, callers, c.callers)
		set(t, depth, c.depth)
		if err := run(context.Background()); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

func TestWithoutRedisItSaysWhatToDo(t *testing.T) {
	set(t, redisAddr, "127.0.0.1:1")
	err := run(context.Background())
	if err == nil || !strings.HasPrefix(err.Error(), "no Redis at 127.0.0.1:1: ") || !strings.Contains(err.Error(), "leave out -redis") {
		t.Error(err)
	}
}

// Without this the program could find nothing because it sees nothing.
func TestWhoComesInBetweenIsSeen(t *testing.T) {
	for entries, want := range map[string]string{
		"1 in,1 in,1 out,1 out,2 in,2 out": "",
		"1 in,2 in,2 out,1 out":            "caller 2 came in between the levels of caller 1",
		"1 in,1 in,1 out,2 in":             "caller 2 came in between the levels of caller 1",
		"1 in,1 in,1 out":                  "caller 1 is still inside, 1 levels deep",
		"1 in,1 out,1 out":                 "caller 1 went out more often than it came in",
	} {
		err := checkEntries(strings.Split(entries, ","))
		if got := errorText(err); got != want {
			t.Errorf("%s: %q, want %q", entries, got, want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
