package redisson

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Redisson's read-write locks are other locks. If Java uses one on a name that is a lock
// here, by mistake, the two exclude each other, and Redis is not kept busy: an unlock in
// Java counts from the value of each number in the hash down to one.
func TestReadLocksWaitForOurs(t *testing.T) {
	p := singlePair(t, core.Lease(lease))
	refused := func(why string) {
		t.Helper()
		p.java.gives(t, false, "tryReadLock", "lock:k")
		p.java.gives(t, false, "tryWriteLock", "lock:k")
		p.java.throws(t, notOwner, "readUnlock", "lock:k")
		for field, value := range p.client.HGetAll(background, "lock:k").Val() {
			if n, err := strconv.ParseFloat(value, 64); err == nil && n > 2 {
				t.Errorf("%s: the field %s has the value %s, and Java would count it down", why, field, value)
			}
		}
	}

	k := mustLock(t, p.l, "k")
	refused("held")
	inner := mustLock(t, p.l, "k", core.Owner(k.ShareOwner()))
	refused("held twice")
	succeed(t, inner.Unlock(background))
	waiting := take(background, onRedis(t, p.client), "k")
	p.awaitWaiting(t, "lock:k", 1)
	refused("held and waited for")
	succeed(t, k.Unlock(background))
	k = taken(t, waiting).lock
	refused("granted to who waited")
	succeed(t, k.Unlock(background))

	k = mustLock(t, p.l, "k")

	// It listens elsewhere and is not woken, but asks again when the lease that it saw ends.
	reader := p.java.begin("readLock", "lock:k")
	redistest.Await(t, inTheEnd, "Java to wait", func() bool {
		return p.client.PubSubNumSub(background, "redisson_rwlock:{lock:k}").Val()["redisson_rwlock:{lock:k}"] > 0
	})
	succeed(t, k.Unlock(background))
	await(t, reader)
	if _, err := p.l.TryLock(background, "k"); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Go beside a read lock of Java: %v", err)
	}
	p.java.do(t, "readUnlock", "lock:k")

	k = mustLock(t, p.l, "k", core.KeepFor(time.Hour))
	refused("held, with a window")
	succeed(t, k.Unlock(background))
	refused("in the window")
}
