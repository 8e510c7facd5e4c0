//go:build go1.25

package core_test

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

func TestInspect(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		inspects := func(want core.Info) {
			t.Helper()
			if info, err := b.Inspect(background, "k"); err != nil || !reflect.DeepEqual(info, want) {
				t.Errorf("Inspect: %+v, %v; want %+v", info, err, want)
			}
		}
		inspects(core.Info{State: core.StateFree})
		k := take(t, background, a, "k")
		time.Sleep(3 * time.Second)
		holds := func(count int, ttl time.Duration) core.Info {
			return core.Info{Locked: true, State: core.StateHeld, Form: "exclusive", Owner: k.Owner(), Count: count, TTL: ttl, Holders: []core.Holder{
				{Owner: k.Owner(), Count: count, TTL: ttl, HeldFor: 3 * time.Second, Lease: 30 * time.Second}}}
		}
		inspects(holds(1, 27*time.Second))
		inner := take(t, k.Context(), a, "k")
		inspects(holds(2, 30*time.Second))
		unlock(t, inner, k)
		inspects(core.Info{State: core.StateFree})
		for want, of := range map[time.Duration]core.Option{time.Minute: core.Lease(time.Minute), 0: core.FixedLease(time.Minute)} {
			k := take(t, background, a, "k", of)
			if info, err := b.Inspect(background, "k"); err != nil || info.Holders[0].Lease != want {
				t.Errorf("a lease of %v, %v; want %v", info.Holders[0].Lease, err, want)
			}
			unlock(t, k)
		}
		s.HSet("lock:k", "redisson:1", "3")
		info, err := b.Inspect(background, "k")
		if err != nil || !info.Locked || info.Owner != "redisson:1" || info.Count != 3 || info.TTL >= 0 {
			t.Errorf("a lock without end: %+v, %v", info, err)
		}
	})
}

func TestInspectTellsWhoWaits(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(core.Describe("holds")), s.locker(core.Describe("waits"))
		k := take(t, background, a, "k")
		ctx, cancel := context.WithTimeout(background, 5*time.Second)
		defer cancel()
		var waiting sync.WaitGroup
		for _, opts := range [][]core.Option{nil, {core.Shared(), core.Owner("reader")}} {
			waiting.Go(func() {
				_, err := b.Lock(ctx, "k", opts...)
				wantErr(t, err, core.ErrNotAcquired)
			})
			time.Sleep(time.Second)
		}
		queues := func(want ...core.QueueEntry) {
			t.Helper()
			if info, err := a.Inspect(background, "k"); err != nil || !slices.Equal(info.Queue, want) {
				t.Errorf("%+v, %v; want %+v", info.Queue, err, want)
			}
		}
		process := b.Snapshot().Process
		queues(core.QueueEntry{Process: process, Form: "exclusive", Waited: 2 * time.Second},
			core.QueueEntry{Process: process, Owner: "reader", Form: "shared", Waited: time.Second})
		waiting.Wait()
		synctest.Wait()
		queues()
		unlock(t, k)
	})
}

func TestForceUnlock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		if freed, err := b.ForceUnlock(background, "k"); freed || err != nil {
			t.Errorf("a free lock: %v, %v", freed, err)
		}
		k := take(t, background, a, "k")
		inner := take(t, k.Context(), a, "k")
		if freed, err := b.ForceUnlock(background, "k"); !freed || err != nil {
			t.Errorf("a held lock: %v, %v", freed, err)
		}
		s.isFree("k")
		began := time.Now()
		at, cause := endOf(inner.Context())
		wantErr(t, cause, core.ErrLost)
		wantTime(t, "loss", at.Sub(began), 0, lease/3)
		wantErr(t, inner.Unlock(background), core.ErrLost)
		wantErr(t, k.Unlock(background), core.ErrLost)
	})
}

func TestForceUnlockOfAnOwnerSparesASuccessor(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		forces := func(what, owner string, want bool) {
			t.Helper()
			if freed, err := b.ForceUnlock(background, "k", owner); freed != want || err != nil {
				t.Errorf("%s: %v, %v; want %v", what, freed, err, want)
			}
		}
		forces("a free lock", "somebody", false)
		forces("no window", "", false)

		first := take(t, background, a, "k")
		seen := first.Owner()
		unlock(t, first)
		successor := take(t, background, a, "k")
		forces("the one before", seen, false)
		forces("a window, but it is held", "", false)
		fields := s.fields("k")
		for _, field := range append(fields, "latchkey:", "mode") {
			if field != successor.Owner() {
				forces("field "+field, field, false)
			}
		}
		if len(fields) < 2 || s.held("k") != successor.Owner()+"=1" {
			t.Errorf("the successor has lost its lock: %q", s.fields("k"))
		}

		inner := take(t, successor.Context(), a, "k")
		waiting := start(background, b, "k")
		forces("the holder, however often it has entered", successor.Owner(), true)
		unlock(t, (<-waiting).lock)
		s.isFree("k")
		wantErr(t, inner.Unlock(background), core.ErrLost)
		wantErr(t, successor.Unlock(background), core.ErrLost)

		unlock(t, take(t, background, a, "k", core.KeepFor(time.Hour)))
		forces("a holder, but it is a window", seen, false)
		forces("the window", "", true)
		s.isFree("k")
	})
}

func TestForceUnlockDeletesOnlyLocks(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		if _, err := s.SAdd("lock:k", "precious"); err != nil {
			t.Fatal(err)
		}
		freed, err := l.ForceUnlock(background, "k")
		wantErr(t, err, core.ErrUnavailable)
		if freed || !s.Exists("lock:k") {
			t.Error("a key that is no lock was deleted")
		}
		_, err = l.ForceUnlock(background, "k", "somebody")
		wantErr(t, err, core.ErrUnavailable)
	})
}

func TestAKeyOfAnotherTypeIsUnavailable(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		if _, err := s.SAdd("lock:k", "precious"); err != nil {
			t.Fatal(err)
		}
		for name, lock := range map[string]func(context.Context, string, ...core.Option) (*core.Lock, error){"Lock": l.Lock, "TryLock": l.TryLock} {
			began := time.Now()
			_, err := lock(background, "k")
			wantErr(t, err, core.ErrUnavailable)
			wantNot(t, err, core.ErrNotAcquired)
			wantTime(t, name, time.Since(began), 0, 0)
		}
		_, err := l.Inspect(background, "k")
		wantErr(t, err, core.ErrUnavailable)
		time.Sleep(time.Minute)
		if got, _ := s.SMembers("lock:k"); !slices.Equal(got, []string{"precious"}) {
			t.Errorf("the key was changed: %q", got)
		}
	})
}

func TestReadingFailsInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k")
		s.outage()
		_, err := l.Inspect(background, "k")
		wantErr(t, err, core.ErrUnavailable)
		_, err = l.ForceUnlock(background, "k")
		wantErr(t, err, core.ErrUnavailable)
		_, err = k.Count(background)
		wantErr(t, err, core.ErrUnavailable)
		_, err = k.TTL(background)
		wantErr(t, err, core.ErrUnavailable)
		wantErr(t, k.Refresh(background), core.ErrUnavailable)
		s.heal()
		time.Sleep(time.Second)
		unlock(t, k)
	})
}
