package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// wantWeights fails the test unless the holders of a lock have so many permits, by their owners.
func wantWeights(t *testing.T, l *core.Locker, key string, want map[*core.Lock]int) {
	t.Helper()
	info, err := l.Inspect(background, key)
	if err != nil || len(info.Holders) != len(want) {
		t.Fatalf("Inspect: %+v, %v; want %d holders", info, err, len(want))
	}
	for k, weight := range want {
		found := 0
		for _, h := range info.Holders {
			if h.Owner == k.Owner() {
				found = h.Weight
			}
		}
		if found != weight {
			t.Errorf("%q has %d permits; want %d", k.Owner(), found, weight)
		}
	}
}

// An owner of choice whose permits have ended, and who takes fewer, has those alone.
func TestWeightOfAnOwnerThatHadMore(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		mine := func(w int, more ...core.Option) []core.Option {
			return append(more, core.Permits(10), core.Weight(w), core.Owner("me"))
		}
		before := take(t, background, l, "k", mine(5, core.FixedLease(time.Second))...)
		s.failAll(refuse("ERR not now"), release) // what gives it back in time
		other := take(t, background, l, "k", core.Permits(10))
		time.Sleep(2 * time.Second)
		wantErr(t, before.Unlock(background), core.ErrLost)
		now := take(t, background, l, "k", mine(1)...)
		s.heal()
		wantWeights(t, l, "k", map[*core.Lock]int{now: 1, other: 1})
		unlock(t, take(t, background, l, "k", core.NoWait(), core.Permits(10), core.Weight(8)), now, other)
	})
}

// The permits of all who have some are never more than there are.
func TestWeightsBoundTheHolders(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		weighing := func(w int) []core.Option { return []core.Option{core.Weight(w), core.Permits(5)} }
		three := take(t, background, a, "k", weighing(3)...)
		_, err := b.TryLock(background, "k", weighing(3)...)
		wantBusy(t, err)
		wantErr(t, err, core.ErrNoPermit)
		two := take(t, background, b, "k", weighing(2)...)
		wantWeights(t, a, "k", map[*core.Lock]int{three: 3, two: 2})
		_, err = a.TryLock(background, "k", weighing(1)...)
		wantErr(t, err, core.ErrNoPermit)
		unlock(t, three)
		one := take(t, background, a, "k", core.Permits(5))
		_, err = a.TryLock(background, "k", weighing(3)...)
		wantErr(t, err, core.ErrNoPermit)
		again := take(t, background, a, "k", weighing(2)...)
		wantWeights(t, a, "k", map[*core.Lock]int{one: 1, two: 2, again: 2})
		unlock(t, one, two, again)
		all := take(t, background, a, "k", weighing(5)...)
		_, err = b.TryLock(background, "k", core.Permits(5))
		wantErr(t, err, core.ErrNoPermit)
		unlock(t, all)
		if s.Exists("lock:k") {
			t.Error("something is left of the lock")
		}
	})
}

// A call that needs many permits is waited for by those that come later, here and in other processes.
func TestHeavyCallIsNotOvertaken(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, outside := s.locker(), s.locker(), s.locker()
		one, other := take(t, background, outside, "k", core.Permits(3)), take(t, background, outside, "k", core.Permits(3))
		heavy := start(background, a, "k", core.Permits(3), core.Weight(3))
		time.Sleep(time.Millisecond) // those who come in one µs are in any order
		light := []<-chan outcome{start(background, a, "k", core.Permits(3)), start(background, b, "k", core.Permits(3))}
		time.Sleep(time.Minute)
		unlock(t, one)
		time.Sleep(time.Minute)
		waits(t, heavy)
		waits(t, light[0])
		waits(t, light[1])
		_, err := outside.TryLock(background, "k", core.Permits(3))
		wantErr(t, err, core.ErrNoPermit)

		began := time.Now()
		unlock(t, other)
		k := (<-heavy).lock
		wantTime(t, "the heavy call has its permits", time.Since(began), 0, prompt)
		wantWeights(t, a, "k", map[*core.Lock]int{k: 3})
		time.Sleep(time.Minute) // they are renewed
		waits(t, light[0])
		waits(t, light[1])
		unlock(t, k)
		unlock(t, (<-light[0]).lock, (<-light[1]).lock)
	})
}

// Who has permits enters the lock without more.
func TestReentryTakesNoPermits(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		k := take(t, background, a, "k", core.Permits(3), core.Weight(2))
		for what, enter := range map[string]func() (*core.Lock, error){
			"the same Locker": func() (*core.Lock, error) { return a.Lock(k.Context(), "k", core.Permits(3), core.Weight(3)) },
			"another":         func() (*core.Lock, error) { return b.Lock(k.Context(), "k", core.Permits(2), core.Weight(2)) },
			"its owner": func() (*core.Lock, error) {
				return b.Lock(background, "k", core.Permits(3), core.Owner(k.ShareOwner()))
			},
		} {
			inner, err := enter()
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			wantWeights(t, a, "k", map[*core.Lock]int{k: 2})
			unlock(t, inner)
			wantWeights(t, a, "k", map[*core.Lock]int{k: 2})
		}
		inner := take(t, k.Context(), a, "k", core.Permits(1))
		unlock(t, k) // the inner one has the permits
		wantWeights(t, a, "k", map[*core.Lock]int{k: 2})
		unlock(t, inner)
		unlock(t, take(t, background, b, "k", core.Permits(3), core.Weight(3)))
	})
}

// The permits of a holder that has died are free after its lease: all of them.
func TestPermitsOfADeadHolder(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		live, dead := s.locker(), s.locker()
		k := take(t, background, live, "k", core.Permits(4))
		take(t, background, dead, "k", core.Permits(4), core.Weight(3), core.FixedLease(20*time.Second))
		o := <-start(background, live, "k", core.Permits(4), core.Weight(3))
		wantTime(t, "the permits of the dead are free", o.took, 20*time.Second-prompt, 21*time.Second)
		wantWeights(t, live, "k", map[*core.Lock]int{k: 1, o.lock: 3})
		unlock(t, o.lock, k)
	})
}

// So are those of one that was evicted, at once.
func TestForceUnlockOfAHeavyHolder(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k, evicted := take(t, background, l, "k", core.Permits(4)), take(t, background, l, "k", core.Permits(4), core.Weight(3))
		if freed, err := s.locker().ForceUnlock(background, "k", evicted.Owner()); !freed || err != nil {
			t.Fatal(freed, err)
		}
		if fields, err := s.HKeys("lock:k"); err != nil || len(fields) != 2 {
			t.Errorf("the lock has %q; want the mode and a holder", fields)
		}
		again := take(t, background, l, "k", core.Permits(4), core.Weight(3), core.NoWait())
		unlock(t, k, again)
	})
}

// An older process that removes a holder does not know that it has further permits. They are free in a second.
func TestPermitsThatNobodyHas(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k, evicted := take(t, background, l, "k", core.Permits(4)), take(t, background, l, "k", core.Permits(4), core.Weight(3))
		waiting := start(background, l, "k", core.Permits(4), core.Weight(2))
		s.HDel("lock:k", "latchkey:holder:"+evicted.Owner())
		o := <-waiting
		wantTime(t, "the permits are free", o.took, 0, 2*time.Second)
		unlock(t, o.lock, k)
		k, evicted = take(t, background, l, "k", core.Permits(4)), take(t, background, l, "k", core.Permits(4), core.Weight(3))
		s.HDel("lock:k", "latchkey:holder:"+evicted.Owner())
		unlock(t, k)
		alone := <-start(background, l, "k")
		wantTime(t, "the lock is free", alone.took, 0, lease)
		unlock(t, alone.lock)
	})
}

// A call whose permits do not fit beside those of another waits for it: in a circle without end.
func TestDeadlockByWeight(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		for _, weight := range []int{1, 2} {
			l := s.locker()
			weighing := []core.Option{core.Permits(3), core.Weight(weight)}
			a, b := take(t, background, l, "a", weighing...), take(t, background, l, "b", weighing...)
			waiting := start(a.Context(), l, "b", append(weighing, core.Wait(time.Minute))...)
			k, err := l.Lock(b.Context(), "a", append(weighing, core.Wait(time.Minute))...)
			if weight == 1 {
				wantErr(t, err)
				unlock(t, k)
			} else {
				wantErr(t, err, core.ErrDeadlock)
			}
			unlock(t, b)
			unlock(t, (<-waiting).lock, a)
		}
	})
}

func TestWeightsThatDoNotGo(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		for what, opts := range map[string][]core.Option{
			"none":                   {core.Permits(3), core.Weight(0)},
			"too many":               {core.Permits(3), core.Weight(10_001)},
			"more than there are":    {core.Permits(3), core.Weight(4)},
			"the same, turned":       {core.Weight(4), core.Permits(3)},
			"without permits":        {core.Weight(1)},
			"shared":                 {core.Shared(), core.Weight(1)},
			"the same, shared later": {core.Weight(1), core.Shared()},
			"no key":                 {core.PermitsEach()},
			"each none":              {core.PermitsEach(3, 0)},
			"each too many":          {core.PermitsEach(10_001, 1)},
			"more than each":         {core.PermitsEach(3, 2), core.Weight(3)},
			"each, and all":          {core.PermitsEach(3), core.Permits(3)},
			"all, and each":          {core.Permits(3), core.PermitsEach(3)},
			"each, shared":           {core.PermitsEach(3), core.Shared()},
			"each, in a window":      {core.PermitsEach(3), core.KeepFor(time.Minute)},
			"of two keys":            {core.PermitsEach(3, 3)},
		} {
			if k, err := l.Lock(background, what, opts...); err == nil || !strings.HasPrefix(err.Error(), "core: ") {
				t.Errorf("%s: took %v, %v", what, k, err)
			}
		}
		for what, opt := range map[string]core.Option{"Weight is for a call": core.Weight(1), "PermitsEach is for a call": core.PermitsEach(1)} {
			if _, err := core.New(s.client(), opt); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// A limit for each tenant is below one for all, in one call.
func TestPermitsOfEachKey(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		of := func(tenant string) []string { return []string{tenant, "all"} } // which is before it in the order of waiting
		each := []core.Option{core.PermitsEach(2, 3), core.NoWait()}
		first, second := takeAll(t, background, a, of("x"), each...), takeAll(t, background, b, of("x"), each...)
		for _, l := range []*core.Locker{a, b} {
			_, err := l.LockAll(background, of("x"), each...)
			if wantBusy(t, err).Key != "x" {
				t.Errorf("the tenant has none left: %v", err)
			}
			wantErr(t, err, core.ErrNoPermit)
		}
		third := takeAll(t, background, a, of("y"), each...)
		_, err := b.LockAll(background, of("z"), each...)
		if wantBusy(t, err).Key != "all" {
			t.Errorf("none is left for all: %v", err)
		}
		waiting := startAll(background, b, of("z"), core.PermitsEach(2, 3))
		time.Sleep(time.Minute)
		unlockAll(t, first)
		fourth := <-waiting
		wantErr(t, fourth.err)
		unlockAll(t, second)
		unlockAll(t, third)
		unlockAll(t, fourth.lock)

		heavy := takeAll(t, background, a, of("x"), core.PermitsEach(2, 3), core.Weight(2))
		_, err = a.TryLock(background, "x", core.Permits(2))
		wantErr(t, err, core.ErrNoPermit)
		unlock(t, take(t, background, a, "all", core.PermitsEach(3)))
		_, err = a.TryLock(background, "all", core.Permits(3), core.Weight(2))
		wantErr(t, err, core.ErrNoPermit)
		unlockAll(t, heavy)
	})
}

// Keys that the context holds are entered, and the others have the permits that are theirs.
func TestPermitsOfEachKeyUnderLocks(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		outer := take(t, background, l, "b", core.Permits(1))
		m := takeAll(t, outer.Context(), l, []string{"c", "b", "d"}, core.PermitsEach(1, 3, 2))
		_, err := l.TryLock(background, "c", core.Permits(1))
		wantErr(t, err, core.ErrNoPermit)
		unlock(t, take(t, background, l, "d", core.Permits(2)))
		unlockAll(t, m)
		unlock(t, outer)

		same := takeAll(t, background, l, []string{"a", "b", "a"}, core.PermitsEach(2, 1, 2))
		unlockAll(t, same)
		for want, keys := range map[string][]string{
			"one key is there twice":    {"a", "a", "b"},
			"has the permits of 3 keys": {"a", "b"},
			"has 4":                     {"a", "b", "c", "d"},
			"invalid key":               {"a", "b", ""},
		} {
			if m, err := l.LockAll(background, keys, core.PermitsEach(2, 1, 3)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, %v", keys, m, err)
			}
		}
		if held := l.Snapshot().Held; len(held) > 0 {
			t.Errorf("%+v", held)
		}
	})
}
