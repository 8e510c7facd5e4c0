//go:build go1.25

package main

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/locktest"
)

// Readers that share the lock read whole versions, and go together.
func TestReportIsReadWholeByManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core.SetDefault(locktest.New(t))
		defer core.SetDefault(nil)
		var out strings.Builder
		compareReports(t.Context(), &out)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 4 {
			t.Fatalf("printed %q", lines)
		}
		var took, before, after, torn [3]int
		for i, line := range lines[1:] {
			_, counts, _ := strings.Cut(line, " after ")
			if _, err := fmt.Sscanf(counts, "%d ms: %d read version 0, %d version 1, %d half of each", &took[i], &before[i], &after[i], &torn[i]); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if before[i]+after[i]+torn[i] != 8 {
				t.Errorf("not all have read: %s", line)
			}
		}
		if torn[0] == 0 || torn[1] != 0 || torn[2] != 0 {
			t.Errorf("read halves: %v", torn)
		}
		if took[1] < 1000 || took[2] > 500 {
			t.Errorf("took %v ms", took)
		}
	})
}
