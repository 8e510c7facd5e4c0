//go:build go1.25

package core_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// BenchmarkSnapshot is of a Locker that holds 10,000 locks.
func BenchmarkSnapshot(b *testing.B) {
	l := holding(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		l.Snapshot()
	}
}

// BenchmarkBesideSnapshots is of calls while somebody takes one after the other.
func BenchmarkBesideSnapshots(b *testing.B) {
	l := holding(b, 10_000)
	for name, snapshot := range map[string]func(){"none": nil, "all": func() { l.Snapshot() }} {
		b.Run(name, func(b *testing.B) {
			stop := make(chan struct{})
			var reader sync.WaitGroup
			if snapshot != nil {
				reader.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							snapshot()
						}
					}
				})
			}
			var n atomic.Int64
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				key := strconv.FormatInt(n.Add(1), 10)
				for pb.Next() {
					cycle(b, l, key)
				}
			})
			close(stop)
			reader.Wait()
		})
	}
}

// holding returns a Locker that holds so many locks.
func holding(b *testing.B, locks int) *core.Locker {
	l := onRedis(b, redistest.Start(b).Client(b), core.Lease(time.Hour))
	for i := range locks {
		k := take(b, background, l, "order:"+strconv.Itoa(i))
		b.Cleanup(func() { unlock(b, k) })
	}
	return l
}
