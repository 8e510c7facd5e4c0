package asynqlock

import (
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// However many keys are busy, a bounded number is remembered, and the busiest is
// among them.
func TestPaceRemembersABoundedNumberOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		for i := range 20 * paceKeys {
			p.refused(strconv.Itoa(i))
			if i%8 == 0 {
				p.refused("42")
			}
			if n := len(p.now) + len(p.old); n > 2*paceKeys {
				t.Fatalf("%d keys are remembered", n)
			}
		}
		if d := p.refused("42"); d < longest/2 {
			t.Errorf("the busiest key is due in %v", d)
		}
		p.acquired("42")
		time.Sleep(2 * longest)
		if d := p.refused("42"); d >= time.Second {
			t.Errorf("after a while a key is due in %v", d)
		}
	})
}

func TestPaceIsSafeForConcurrentUse(t *testing.T) {
	p := newPace()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 2 * paceKeys {
				key := strconv.Itoa(j * (i%2 + 1))
				if d := p.refused(key); d < 0 || d > longest {
					t.Errorf("put off for %v", d)
				}
				p.acquired(key)
			}
		})
	}
	all.Wait()
}
