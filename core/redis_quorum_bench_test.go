//go:build go1.25

package core_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// BenchmarkQuorumHotKey has eight calls on two Lockers compete for one key while one
// of three members is away. grants/s and the longest wait of a call are what counts.
func BenchmarkQuorumHotKey(b *testing.B) {
	for _, trouble := range []struct {
		name   string
		happen func(m *members)
	}{
		{"all up", func(*members) {}},
		{"one killed", func(m *members) { m.servers[2].Kill(b) }},
		{"one silent", func(m *members) { m.proxies[2].BlackHole(true) }},
	} {
		b.Run(trouble.name, func(b *testing.B) {
			m := startMembers(b, 3)
			lockers := []*core.Locker{m.locker(b), m.locker(b)}
			for _, l := range lockers {
				cycle(b, l, "warm-up")
			}
			trouble.happen(m)
			var left, longest atomic.Int64
			left.Store(int64(b.N))
			var crowd sync.WaitGroup
			b.ResetTimer()
			for i := range 8 {
				crowd.Go(func() {
					for left.Add(-1) >= 0 {
						began := time.Now()
						k, err := lockers[i%2].Lock(background, "k")
						if err != nil {
							b.Error(err)
							return
						}
						took := int64(time.Since(began))
						for old := longest.Load(); took > old && !longest.CompareAndSwap(old, took); old = longest.Load() {
						}
						unlock(b, k)
					}
				})
			}
			crowd.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "grants/s")
			b.ReportMetric(time.Duration(longest.Load()).Seconds(), "s-longest")
		})
	}
}
