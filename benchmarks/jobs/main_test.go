package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// A look at everything, so that the program works when somebody wants to measure.
func TestEveryRowAndScene(t *testing.T) {
	var out strings.Builder
	err := run(t.Context(), []string{"-quick", "-limit", "300ms", "-workers", "10"}, &out, os.Stderr)
	if errors.Is(err, redistest.ErrNotInstalled) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if n := strings.Count(out.String(), "\n| "+r.title+" |"); n != len(scenes) {
			t.Errorf("%s: %d lines, want one for each of %d scenes", r.title, n, len(scenes))
		}
	}
}

func TestTriggers(t *testing.T) {
	var out strings.Builder
	err := run(t.Context(), []string{"-triggers", "-quick", "-workers", "4"}, &out, os.Stderr)
	if errors.Is(err, redistest.ErrNotInstalled) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "| **`KeepOne`** | ") {
		t.Errorf("no line of KeepOne:\n%s", out.String())
	}
}

func TestUnknownNamesAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-rows", "x"}, {"-scenes", "x"}, {"-workers", "0"}} {
		if err := run(t.Context(), args, os.Stderr, os.Stderr); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
