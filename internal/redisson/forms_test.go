package redisson

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// A lock of Java's on the same name excludes every form of ours, and each of them excludes it.
func TestFormsExcludeJava(t *testing.T) {
	p := singlePair(t, core.Lease(lease))
	refused := func(why string) {
		t.Helper()
		for _, command := range []string{"tryLock", "tryReadLock", "tryWriteLock"} {
			p.java.gives(t, false, command, "lock:k")
		}
		p.java.throws(t, notOwner, "unlock", "lock:k")
		p.java.throws(t, notOwner, "readUnlock", "lock:k")
		for field, value := range p.client.HGetAll(background, "lock:k").Val() {
			if _, err := strconv.ParseFloat(value, 64); err == nil {
				t.Errorf("%s: the field %s has the value %s, and Java would count it down", why, field, value)
			}
		}
	}
	for what, form := range map[string]core.Option{"shared": core.Shared(), "permits": core.Permits(3)} {
		one, two := mustLock(t, p.l, "k", form), mustLock(t, p.l, "k", form)
		refused(what)
		succeed(t, one.Unlock(background))
		refused(what + ", one has left")
		java := p.java.begin("lock", "lock:k")
		p.awaitWaiting(t, "lock:k", 1)
		succeed(t, two.Unlock(background))
		await(t, java)
		if _, err := p.l.TryLock(background, "k", form); !errors.Is(err, core.ErrNotAcquired) {
			t.Errorf("%s beside Java: %v", what, err)
		}
		p.java.do(t, "unlock", "lock:k")
	}

	// A thread of Java's has the owner, too: it excludes a downgrade while it is inside, and is excluded afterwards.
	writer := mustLock(t, p.l, "k", core.Owner(p.java.owner(t)))
	p.java.do(t, "lock", "lock:k")
	if err := writer.Downgrade(background); !errors.Is(err, core.ErrNotHeld) {
		t.Errorf("downgraded while Java is inside: %v", err)
	}
	p.java.do(t, "unlock", "lock:k")
	succeed(t, writer.Downgrade(background))
	refused("downgraded")
	reader := mustLock(t, p.l, "k", core.Shared())
	succeed(t, writer.Unlock(background))
	refused("downgraded, and one has left")
	succeed(t, reader.Unlock(background))

	ticket, err := mustLock(t, p.l, "k").Handover(background, time.Hour)
	succeed(t, err)
	refused("parked")
	k, err := p.l.Resume(background, "k", ticket)
	succeed(t, err)
	refused("resumed")
	succeed(t, k.Unlock(background))
	p.java.gives(t, true, "tryLock", "lock:k")
	p.java.do(t, "unlock", "lock:k")

	p.java.do(t, "readLock", "lock:k")
	for what, form := range map[string]core.Option{"shared": core.Shared(), "permits": core.Permits(3)} {
		if _, err := p.l.TryLock(background, "k", form); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("%s beside a read lock of Java: %v", what, err)
		}
	}
	p.java.do(t, "readUnlock", "lock:k")
}
