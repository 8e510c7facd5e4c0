package core_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// BenchmarkSnapshot is of a Locker that holds 10,000 locks.
func BenchmarkSnapshot(b *testing.B) {
	l := onRedis(b, redistest.Start(b).Client(b), core.Lease(time.Hour))
	for i := range 10_000 {
		k := take(b, background, l, "order:"+strconv.Itoa(i))
		defer unlock(b, k)
	}
	b.ReportAllocs()
	for b.Loop() {
		l.Snapshot()
	}
}
