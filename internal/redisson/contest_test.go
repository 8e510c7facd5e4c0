//go:build go1.25

package redisson

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// visits are those of one process: of its threads or goroutines.
type visits struct {
	mu      sync.Mutex
	turns   int
	met     int // those that found another inside
	longest time.Duration
}

func (v *visits) add(turns, met int, longest time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.turns += turns
	v.met += met
	v.longest = max(v.longest, longest)
}

func (v *visits) String() string {
	return fmt.Sprintf("%d turns, longest wait %s ms", v.turns, inMs(v.longest))
}

// together is what the processes of a side have had.
func together(processes []*visits) *visits {
	sum := new(visits)
	for _, v := range processes {
		sum.add(v.turns, v.met, v.longest)
	}
	return sum
}

// A contest has processes of both kinds visit one room, with four threads or
// goroutines each.
type contest struct {
	processes    int
	ofJava, ofGo int           // turns of each thread and goroutine, at most
	lasts        time.Duration // no new turn after it
	stay         time.Duration // how long a turn takes
	pause        time.Duration // between two turns of a goroutine, at most: else Go has nearly all
}

// visitInGo has a goroutine lock, visit and unlock.
func (c contest) visitInGo(l *core.Locker, key string, r room, v *visits) error {
	for end, n := time.Now().Add(c.lasts), 0; n < c.ofGo && time.Now().Before(end); n++ {
		if c.pause > 0 {
			work(rand.N(c.pause)) // elsewhere
		}
		began := time.Now()
		k, err := l.Lock(background, key)
		if err != nil {
			return err
		}
		waited := time.Since(began)
		alone, err := r.visit()
		if err := errors.Join(err, k.Unlock(background)); err != nil {
			return err
		}
		met := 1
		if alone {
			met = 0
		}
		v.add(1, met, waited)
	}
	return nil
}

// visitInJava is visitInGo of a thread.
func (c contest) visitInJava(thread javaThread, lock string, r room, v *visits) error {
	a := <-thread.begin("visit", lock, r.folder, r.stay.Milliseconds(), c.ofJava, c.lasts.Milliseconds())
	if a.err != nil {
		return a.err
	}
	var done, met, longest int
	if _, err := fmt.Sscan(a.result, &done, &met, &longest); err != nil {
		return err
	}
	v.add(done, met, time.Duration(longest)*time.Microsecond)
	return nil
}

// run fails the test when two were inside, or one was not counted.
func (c contest) run(t *testing.T) (ofJava, ofGo []*visits, changes int) {
	t.Helper()
	server := startRedis(t)
	r := newRoom(t, c.stay)
	javas := make([]*java, c.processes)
	for p := range javas {
		javas[p] = startJava(t, "address=redis://"+server.Addr())
	}
	var all sync.WaitGroup
	failed := make(chan error, c.processes*8)
	began := time.Now()
	for _, j := range javas {
		l, vj, vg := onRedis(t, server.Client(t)), new(visits), new(visits)
		ofJava, ofGo = append(ofJava, vj), append(ofGo, vg)
		for n := range 4 {
			all.Go(func() { failed <- c.visitInJava(j.thread(n), "lock:k", r, vj) })
			all.Go(func() { failed <- c.visitInGo(l, "k", r, vg) })
		}
	}
	all.Wait()
	took := time.Since(began)
	close(failed)
	for err := range failed {
		if err != nil {
			t.Error(err)
		}
	}
	sum, met := 0, 0
	for i := range c.processes {
		t.Logf("Java process %d: %v", i+1, ofJava[i])
		t.Logf("Go process %d:   %v", i+1, ofGo[i])
		sum += ofJava[i].turns + ofGo[i].turns
		met += ofJava[i].met + ofGo[i].met
	}
	count, _, changes, err := r.seen()
	succeed(t, err)
	t.Logf("Redisson %s: %d turns in %.1f s, counted %d, from one side to the other %d times, %d met another",
		javas[0].version, sum, took.Seconds(), count, changes, met)
	if count != sum || met > 0 {
		t.Errorf("two were inside: %d counted, %d turns, %d met another", count, sum, met)
	}
	return ofJava, ofGo, changes
}

// Four Java threads and four goroutines go through one critical section 10,000 times:
// never two at once, and none is lost. The pauses let the sides follow one another.
func TestNeverTwoInside(t *testing.T) {
	ofJava, ofGo, changes := contest{processes: 1, ofJava: 1000, ofGo: 1500, lasts: time.Hour, pause: 16 * time.Millisecond}.run(t)
	if sum := ofJava[0].turns + ofGo[0].turns; sum != 10_000 {
		t.Errorf("%d turns", sum)
	}
	if changes < 500 {
		t.Errorf("the sides hardly met: %d changes", changes)
	}
}

// Who never ceases to ask gets turns, on both sides.
func TestShares(t *testing.T) {
	const endless = 1 << 30
	both := func(stay, lasts time.Duration) contest {
		return contest{processes: 2, ofJava: endless, ofGo: endless, stay: stay, lasts: lasts}
	}
	const ms, usual = time.Millisecond, 10 * time.Second
	for _, c := range []struct {
		name string
		contest
	}{
		{"one of each", contest{processes: 1, ofJava: endless, ofGo: endless, lasts: usual}},
		{"two of each", both(0, usual)},
		{"two of each, 5 ms a turn", both(5*ms, usual)},
		{"two of each, 50 ms a turn", both(50*ms, usual)},
		{"two of each, 100 ms a turn", both(100*ms, 2*usual)},
		{"two of each, 400 ms a turn", both(400*ms, 6*usual)},
		{"two of Java", contest{processes: 2, ofJava: endless, lasts: usual}},
		{"two of Java, 5 ms a turn", contest{processes: 2, ofJava: endless, stay: 5 * ms, lasts: usual}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ofJava, ofGo, _ := c.run(t)
			t.Logf("Java %v; Go %v", together(ofJava), together(ofGo))
			sum, least := 0, endless
			for i := range ofJava {
				sum += ofJava[i].turns
				least = min(least, ofJava[i].turns)
				if c.ofGo > 0 {
					least = min(least, ofGo[i].turns)
				}
			}
			if sum < 20 || least < 2 { // Java woken by chance only has less than ten
				t.Error("somebody had hardly a turn")
			}
		})
	}
}
