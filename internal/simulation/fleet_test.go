//go:build go1.25

package simulation

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// A process that waits for a busy lock gets its share of it, whether it hears wake-ups
// or has to poll, and whatever the others do: it is never without for much longer than
// a second.
func TestEveryProcessGetsItsShare(t *testing.T) {
	const (
		lasting   = 5 * time.Second
		held      = 15 * time.Millisecond
		perfectly = 1500 * time.Millisecond
	)
	for _, f := range []struct {
		name    string
		hearing []hearing
	}{
		{"all hear", []hearing{hears, hears, hears}},
		{"one may not subscribe", []hearing{hears, hears, mayNot}},
		{"one cannot subscribe", []hearing{hears, hears, cannot}},
		{"one is cut again and again", []hearing{hears, hears, cutAgain}},
		{"one hears", []hearing{cannot, hears, mayNot}},
		{"nobody hears", []hearing{cannot, cannot, cannot}},
	} {
		t.Run(f.name, func(t *testing.T) {
			w := newWorld(1)
			w.lease, w.timeout, w.latency, w.hearing, w.actors = 3*time.Second, time.Second, 200*time.Microsecond, f.hearing, 2
			taken, longest := w.contend(t, "hot 0", lasting, held, nil)
			t.Logf("turns %v, longest without %v", taken, longest)
			for i, d := range longest {
				if d > perfectly {
					t.Errorf("process %d of %v, which waited all the time, had the lock %d times and was without it for %v", i, f.hearing, taken[i], d)
				}
			}
		})
	}
}

// Those who go together keep nobody out who wants the lock alone, or with fewer.
func TestEveryFormGetsItsShare(t *testing.T) {
	const (
		lasting = 5 * time.Second
		held    = 15 * time.Millisecond
		heard   = 250 * time.Millisecond // somebody has the lock before each turn of theirs
		polled  = 1500 * time.Millisecond
	)
	shared, three, one := []core.Option{core.Shared()}, []core.Option{core.Permits(3)}, []core.Option{core.Permits(1)}
	all := []core.Option{core.Permits(3), core.Weight(3)}
	for _, f := range []struct {
		name    string
		forms   [][]core.Option
		hearing []hearing
		without time.Duration // at most
	}{
		{"readers and a writer", [][]core.Option{shared, shared, nil}, []hearing{hears, hears, hears}, heard},
		{"writers and a reader", [][]core.Option{nil, nil, shared}, []hearing{hears, hears, hears}, heard},
		{"permits and one alone", [][]core.Option{three, three, nil}, []hearing{hears, hears, hears}, heard},
		{"permits", [][]core.Option{three, three, three}, []hearing{hears, hears, hears}, heard},
		{"three permits and one", [][]core.Option{three, three, one}, []hearing{hears, hears, hears}, heard},
		{"three permits and all of them", [][]core.Option{three, three, all}, []hearing{hears, hears, hears}, heard},
		{"all permits, and nobody hears", [][]core.Option{three, three, all}, []hearing{cannot, cannot, cannot}, polled},
		{"all forms", [][]core.Option{shared, three, nil}, []hearing{hears, hears, hears}, heard},
		{"a writer that may not subscribe", [][]core.Option{shared, shared, nil}, []hearing{hears, hears, mayNot}, polled},
		{"nobody hears", [][]core.Option{shared, three, nil}, []hearing{cannot, cannot, cannot}, polled},
	} {
		t.Run(f.name, func(t *testing.T) {
			w := newWorld(1)
			w.lease, w.timeout, w.latency, w.hearing, w.actors = 3*time.Second, time.Second, 200*time.Microsecond, f.hearing, 4
			taken, longest := w.contend(t, "hot 0", lasting, held, f.forms)
			t.Logf("turns %v, longest without %v", taken, longest)
			for i, d := range longest {
				if d > f.without {
					t.Errorf("process %d, which waited all the time, had the lock %d times and was without it for %v", i, taken[i], d)
				}
			}
		})
	}
}

// contend has all processes take one lock again and again, each in a form of its own unless
// forms is nil. It returns how often each had it, and how long each was without it at most.
func (w *world) contend(t *testing.T, key string, lasting, held time.Duration, forms [][]core.Option) (taken []int, longest []time.Duration) {
	taken, longest = make([]int, len(w.hearing)), make([]time.Duration, len(w.hearing))
	synctest.Test(t, func(t *testing.T) {
		w.server = startServer()
		ctx, end := context.WithTimeout(context.Background(), lasting)
		defer end()
		last := make([]time.Time, len(w.hearing))
		var mu sync.Mutex
		for i := range w.hearing {
			p := w.newProcess(i)
			w.processes = append(w.processes, p)
			last[i] = time.Now()
			var form []core.Option
			if forms != nil {
				form = forms[i]
			}
			for range w.actors {
				p.actors.Go(func() {
					for ctx.Err() == nil {
						k, err := p.locker.Lock(ctx, key, form...)
						if err != nil {
							if ctx.Err() == nil {
								t.Errorf("Lock: %v", err)
							}
							return
						}
						mu.Lock()
						taken[i]++
						longest[i], last[i] = max(longest[i], time.Since(last[i])), time.Now()
						mu.Unlock()
						time.Sleep(held)
						if err := k.Unlock(context.Background()); err != nil {
							t.Errorf("Unlock: %v", err)
						}
					}
				})
			}
		}
		w.rest()
		for i := range last {
			longest[i] = max(longest[i], time.Since(last[i]))
		}
		for _, p := range w.processes {
			p.leave(time.Second)
		}
		time.Sleep(time.Second) // for what is under way
		w.server.Close()
	})
	return taken, longest
}
