package core_test

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// Several permits of a holder are kept and freed together, whatever happens to the Redis; a heavy call that waits is
// granted them by the release that makes room.
func TestWeightOnARealRedis(t *testing.T) {
	const lease = 6 * time.Second
	onRealRedises(t, func(t *testing.T, r realRedis) {
		one, two, outside := r.locker(core.Lease(lease)), r.locker(core.Lease(lease)), r.locker()
		three := []core.Option{core.Permits(4), core.Weight(3)}
		tenants := []string{"tenant", "all"}
		heavy, light := take(t, background, one, "k", three...), take(t, background, two, "k", core.Permits(4))
		several := takeAll(t, background, two, tenants, core.PermitsEach(1, 3), core.Weight(1))
		waiting := queueUp(t, outside, "k", three...)

		r.trouble("k", "tenant")
		awaitRenewals(t, one, 2, heavy)
		awaitRenewals(t, two, 2, light)
		wantWeights(t, outside, "k", map[*core.Lock]int{heavy: 3, light: 1})
		_, err := one.TryLock(background, "k", core.Permits(4))
		wantErr(t, err, core.ErrNoPermit)
		_, err = one.LockAll(background, tenants, core.PermitsEach(1, 3), core.NoWait())
		wantErr(t, err, core.ErrNoPermit)
		unlockAll(t, several)
		unlock(t, heavy)
		granted := (<-waiting).lock
		if granted == nil {
			t.FailNow()
		}
		wantWeights(t, outside, "k", map[*core.Lock]int{granted: 3, light: 1})
		if freed, err := one.ForceUnlock(background, "k", granted.Owner()); !freed || err != nil {
			t.Fatal(freed, err)
		}
		awaitLost(t, granted, core.ErrLost)
		all := take(t, background, outside, "k", core.Permits(4), core.Weight(3))
		unlock(t, all, light)
		if n := r.client.Exists(background, "lock:k").Val(); n > 0 {
			t.Error("something is left of the lock")
		}
	})
}

// The hash has a field for each permit: the most there may be are taken, and freed, in good time.
func TestTheMostPermitsAtOnce(t *testing.T) {
	t.Parallel()
	r := realRedises["single server"](t)
	l := r.locker()
	most := []core.Option{core.Permits(10_000), core.Weight(10_000)}
	k := take(t, background, l, "k", most...)
	if n := r.client.HLen(background, "lock:k").Val(); n != 10_001 {
		t.Errorf("%d fields", n)
	}
	_, err := l.TryLock(background, "k", core.Permits(10_000))
	wantErr(t, err, core.ErrNoPermit)
	unlock(t, k)
	unlock(t, take(t, background, l, "k", most...))
}
