package lockpage_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// BenchmarkLockPage is of a process that holds 10,000 locks.
func BenchmarkLockPage(b *testing.B) {
	l, err := core.New(redistest.Start(b).Client(b), core.Lease(time.Hour))
	if err != nil {
		b.Fatal(err)
	}
	for i := range 10_000 {
		k, err := l.Lock(b.Context(), fmt.Sprintf("order:%d", i*7919%10_000))
		if err != nil {
			b.Fatal(err)
		}
		defer k.Unlock(b.Context())
	}
	page := httplock.LockPage(l)
	for name, target := range map[string]string{
		"lists":      "/",
		"lists JSON": "/?format=json",
		"filter":     "/?filter=order:77",
		"oldest":     "/?sort=age",
		"look-up":    "/?key=order:42",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if w := get(page, target); w.Code != 200 {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
