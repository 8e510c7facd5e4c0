package redisson

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// A lock that is freed by force goes to who waits for it, on either side, and the
// robbed one learns of it.
func TestForce(t *testing.T) {
	t.Parallel()
	stalls := redistest.WatchStalls(t)
	p, _ := watched(t)
	waiter := p.java.thread(2)
	third := p.java.thread(3)

	// both has one of each side wait for a lock, frees it, and says when each had
	// it. It returns when that was.
	both := func(what, lock string, free func()) (began time.Time) {
		t.Helper()
		inGo := take(background, p.l, lock[len("lock:"):])
		p.awaitWaiting(t, lock, 1)
		inJava := waiter.begin("lock", lock)
		p.awaitWaiting(t, lock, 2)
		work(brief)
		began = time.Now()
		free()
		var first, second string
		select {
		case g := <-inGo:
			succeed(t, g.err)
			first = "Go after " + inMs(g.at.Sub(began))
			succeed(t, g.lock.Unlock(background))
			second = "Java after " + inMs(at(t, await(t, inJava)).Sub(began))
			waiter.do(t, "unlock", lock)
		case a := <-inJava:
			succeed(t, a.err)
			first = "Java after " + inMs(at(t, a.result).Sub(began))
			waiter.do(t, "unlock", lock)
			g := taken(t, inGo)
			second = "Go after " + inMs(g.at.Sub(began))
			succeed(t, g.lock.Unlock(background))
		case <-time.After(inTheEnd):
			t.Fatalf("%s: nobody was woken", what)
		}
		t.Logf("%s: %s ms, %s ms", what, first, second)
		return began
	}

	for range 3 {
		k := mustLock(t, p.l, "go")
		forced := both("Java forces Go", "lock:go", func() { third.gives(t, true, "forceUnlock", "lock:go") })
		told := awaitLost(t, k)
		t.Logf("the Go holder is told after %s ms, with a lease of %v", inMs(told.Sub(forced)), lease)
		if ran := stalls.Without(forced, told); ran > lease*2/3 {
			t.Errorf("the next renewal has not told it: the machine ran for %v", ran)
		}
		wantErr(t, k.Unlock(background), core.ErrLost)
	}
	third.gives(t, false, "forceUnlock", "lock:go")

	for range 3 {
		p.java.do(t, "lock", "lock:java")
		both("Go forces Java", "lock:java", func() {
			if freed, err := p.l.ForceUnlock(background, "java"); !freed || err != nil {
				t.Fatal(freed, err)
			}
		})
		p.java.gives(t, false, "isHeld", "lock:java")
		p.java.throws(t, notOwner, "unlock", "lock:java")
	}

	// Java's watchdog does not prolong what another has.
	p.java.do(t, "lock", "lock:java")
	if freed, err := p.l.ForceUnlock(background, "java"); !freed || err != nil {
		t.Fatal(freed, err)
	}
	const fixed = lease + lease/2
	k := mustLock(t, p.l, "java", core.FixedLease(fixed))
	began := time.Now()
	third.do(t, "lock", "lock:java")
	t.Logf("robbed, Java's watchdog lets a fixed lease of %v end after %s ms", fixed, inMs(time.Since(began)))
	wantErr(t, k.Unlock(background), core.ErrLost)
	p.java.throws(t, notOwner, "unlock", "lock:java")
	third.do(t, "unlock", "lock:java")
}
