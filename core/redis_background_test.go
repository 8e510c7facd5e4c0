//go:build go1.25

package core_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Two processes take one lock again and again, and release it in the background, near Redis and far away. One holds it at a time, and the
// tokens grow. Nothing is left of releases that were not sent, nor of those that Close has waited for.
func TestBackgroundReleasesOfTwoProcesses(t *testing.T) {
	t.Parallel()
	for name, latency := range map[string]time.Duration{"near": 0, "far": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			proxy := server.Proxy(t)
			proxy.Latency(latency)
			var inside sync.Mutex
			last, handedOff, got := int64(0), 0, map[*core.Locker]int{}
			one, two := onRedis(t, proxy.Client(t), core.BackgroundRelease()), onRedis(t, proxy.Client(t), core.BackgroundRelease())
			var all sync.WaitGroup
			for _, l := range []*core.Locker{one, one, two} {
				all.Go(func() {
					for range 100 {
						err := l.Do(background, "k", func(ctx context.Context) error {
							if !inside.TryLock() {
								t.Error("two hold it")
								return nil
							}
							defer inside.Unlock()
							k, _ := core.FromContext(ctx)
							if got[l]++; k.Token() <= last {
								t.Errorf("token %d after %d", k.Token(), last)
							} else if k.Token() == last+1 {
								handedOff++
							}
							last = k.Token()
							return nil
						})
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			if handedOff == 0 || got[one] != 200 || got[two] != 100 {
				t.Errorf("%d times handed off; got %d and %d times", handedOff, got[one], got[two])
			}
			wantErr(t, one.Close(background))
			wantErr(t, two.Close(background))
			if !isFree(t, server.Client(t), "k") {
				t.Error("it is not free")
			}
		})
	}
}
