package overload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// holdFor is how long a caller has its lock.
const holdFor = 2 * time.Millisecond

// counts are what was asked for, and what became of it.
type counts struct {
	offered, granted   atomic.Int64
	lost, compensating atomic.Int64
}

// load asks for locks until its context ends.
type load struct {
	row     row
	phases  phases
	lockers []locker
	counts  *counts
}

func (l *load) call(i int, key int) {
	l.counts.offered.Add(1)
	unlock, err := l.lockers[i%len(l.lockers)].lock(context.Background(), fmt.Sprint("k", key))
	if err != nil {
		return
	}
	l.counts.granted.Add(1)
	time.Sleep(holdFor)
	unlock()
}

// rate is how many calls a second arrive, so long after the beginning.
func (l *load) rate(at time.Duration) float64 {
	calls := l.row.usual * capacity
	if inSpike := at >= l.phases.warm && (l.row.endless || at < l.phases.warm+l.phases.spike); inSpike && !l.row.stall {
		calls *= l.row.times
	}
	return calls
}

// offer has calls arrive at random times, however many wait already.
func (l *load) offer(ctx context.Context) {
	random := rand.New(rand.NewPCG(1, 2))
	began, seconds := time.Now(), 0.0
	for i := 0; ; i++ {
		seconds += random.ExpFloat64() / l.rate(time.Duration(seconds*float64(time.Second)))
		time.Sleep(time.Until(began.Add(time.Duration(seconds * float64(time.Second)))))
		if ctx.Err() != nil {
			return
		}
		go l.call(i, random.IntN(l.row.keys))
	}
}

// loop is a goroutine that calls again and again.
func (l *load) loop(ctx context.Context, i int) {
	random := rand.New(rand.NewPCG(3, uint64(i)))
	for ctx.Err() == nil {
		l.call(i, random.IntN(l.row.keys))
		time.Sleep(time.Millisecond)
	}
}

// begin has calls come, and the servers stand still when they shall.
func (l *load) begin(ctx context.Context, servers []*server) {
	for i := range l.row.loops {
		go l.loop(ctx, i)
	}
	if l.row.loops == 0 {
		go l.offer(ctx)
	}
	if l.row.stall {
		time.AfterFunc(l.phases.warm, func() {
			for _, s := range servers {
				s.stall(l.phases.spike)
			}
		})
	}
}
