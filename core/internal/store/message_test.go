package store_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Whoever may publish can send any text, however long. It costs next to nothing to see that
// it is none of ours.
func TestMessagesThatAreNoneOfOurs(t *testing.T) {
	for _, text := range []string{
		"", "0", "00", "opened", "a b", "a b c", "a 1 c", "a b 1", "a -1 1", "a 1 2 3", "a 1 99999999999999999999",
		strings.Repeat("a ", 1<<20), "a 1 " + strings.Repeat("1", 1<<20),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := store.ReadMessage(text)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%.20q is %+v", text, m)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<16 {
			t.Errorf("%.20q takes %d bytes to read", text, n)
		}
	}
}
