package faults

import (
	"math"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// A holder is stopped past its lease. Another one takes the lock and writes. Then the
// first one goes on and writes, before it has looked at anything: without the token
// its write goes through and undoes the other's.
func TestPausedHolderWritesTooLate(t *testing.T) {
	redis := address{Kind: "single", Addrs: []string{redistest.Start(t).Addr()}}
	st := newStore()
	start := func(id int) *process {
		return startProcess(t, setup{Worker: id, Redis: redis, Members: 1, Timeout: patience / 10}, newHistory(), st)
	}
	do := func(p *process, o order, want string) {
		t.Helper()
		p.send(o)
		p.await(t, want)
	}
	hold := order{Do: "hold", Key: "k", Lease: 3 * time.Second}
	keep := order{Do: "hold", Key: "k", Lease: time.Hour}
	write, unlock := order{Do: "write"}, order{Do: "unlock"}

	paused, other := start(0), start(1)
	do(paused, hold, "holding")
	paused.stop(t)
	do(other, keep, "holding") // when the lease has ended
	for range 2 {
		do(other, write, "written")
	}
	paused.send(write) // it is the first thing that it finds when it goes on
	paused.cont(t)
	paused.await(t, "rejected")
	do(paused, unlock, "lost")
	do(other, unlock, "unlocked")

	if rejected, _ := st.Damage(); rejected != 1 {
		t.Errorf("%d writes were rejected, want the late one", rejected)
	}
	c := st.Serve(access{Key: "k", Owner: "reader", Token: math.MaxInt64})
	t.Logf("with the token the counter is %d, without %d", c.Fenced, c.Unfenced)
	if c.Fenced != 2 {
		t.Error("the store that checks tokens took the late write")
	}
	if c.Unfenced != 1 {
		t.Error("the store without tokens withstood it too: the test shows nothing")
	}
	for _, p := range []*process{paused, other} {
		if leaked := p.leave(t); leaked != "" {
			t.Error(leaked)
		}
	}
}
