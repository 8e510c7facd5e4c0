//go:build go1.25

package core_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// Beside busy calls of another process a call of any kind has its turn after one or two of theirs,
// also when one of its process has just given up.
func TestEveryKindOfCallHasItsTurn(t *testing.T) {
	kinds := map[string][]core.Option{
		"plain":        nil,
		"FixedLease":   {core.FixedLease(5 * time.Second)},
		"KeepFor":      {core.KeepFor(time.Minute)},
		"Lease(900ms)": {core.Lease(900 * time.Millisecond)},
	}
	const busyFor = 7 * time.Millisecond // each time
	for name, opts := range kinds {
		bubble(t, func(t *testing.T, s *embedded) {
			busy, l := s.locker(), s.locker()
			ctx, cancel := context.WithCancel(background)
			var working sync.WaitGroup
			for range 4 {
				working.Go(func() { work(ctx, t, busy, busyFor) })
			}
			var waited []time.Duration
			gaveUp := 0
			for gaveUp < 15 && len(waited) < 1000 {
				k, err := l.Lock(background, "k", append(opts[:len(opts):len(opts)], core.Wait(5*time.Millisecond))...)
				if err == nil {
					_ = k.Abort(background) // no dedup window
				} else {
					gaveUp++
				}
				began := time.Now()
				k = take(t, background, l, "k", opts...)
				waited = append(waited, time.Since(began))
				time.Sleep(time.Millisecond)
				_ = k.Abort(background)
				time.Sleep(20*time.Millisecond + rand.N(10*time.Millisecond))
			}
			cancel()
			working.Wait()
			synctest.Wait()
			slices.Sort(waited)
			median := waited[len(waited)/2]
			t.Logf("%-12s median %v, longest %v, %d of %d short waits in vain", name, median, waited[len(waited)-1], gaveUp, len(waited))
			if median > 3*busyFor {
				t.Errorf("%s waits %v beside calls that have the lock for %v", name, median, busyFor)
			}
		})
	}
}
