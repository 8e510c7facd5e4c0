package waitqueue_test

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The mutex of all queues is not held for longer because many wait for one lock: to leave takes about as long as to join,
// and not, as it did, a thousand times as long.
func TestManyLeave(t *testing.T) {
	const n = 100_000
	var q queues
	var calls []*waiter
	began := time.Now()
	for range n {
		w, _ := q.Join("lock", "", "", nil)
		calls = append(calls, w)
	}
	joined := time.Now()
	rand.Shuffle(n, func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	for _, w := range calls {
		w.Leave()
	}
	if _, waits := q.Oldest("lock"); waits {
		t.Error("somebody waits still")
	}
	if to, fro := joined.Sub(began), time.Since(joined); fro > 10*to {
		t.Errorf("%d calls join in %v, and leave in %v", n, to, fro)
	} else {
		t.Logf("%v, %v", to, fro)
	}
}
