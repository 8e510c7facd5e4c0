//go:build go1.25

package core_test

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// wantSnapshot compares with what the Locker holds and waits for.
func wantSnapshot(tb testing.TB, l *core.Locker, held []core.HeldLock, waiting []core.AwaitedLock) {
	tb.Helper()
	got := l.Snapshot()
	if len(got.Held)+len(held) > 0 && !reflect.DeepEqual(got.Held, held) {
		tb.Errorf("held:\n%+v, want\n%+v", got.Held, held)
	}
	if len(got.Waiting)+len(waiting) > 0 && !reflect.DeepEqual(got.Waiting, waiting) {
		tb.Errorf("waited for:\n%+v, want\n%+v", got.Waiting, waiting)
	}
}

// now is the time as a Snapshot has it: without the monotonic clock.
func now() time.Time { return time.Unix(0, time.Now().UnixNano()) }

// ours is what a Snapshot says of a lock taken just now with the default lease.
func ours(k *core.Lock) core.HeldLock {
	return core.HeldLock{Key: k.Key(), Owner: k.Owner(), Form: "exclusive", Token: k.Token(), Since: now(), TTL: lease - 10*time.Millisecond, Count: 1}
}

func TestSnapshotOfHeldLocks(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		wantSnapshot(t, l, nil, nil)

		b := take(t, background, l, "b")
		heldB := ours(b)
		time.Sleep(4 * time.Second)
		a := take(t, background, l, "a")
		heldA := ours(a)
		inner := take(t, b.Context(), l, "b")
		heldB.Count, heldB.TTL = 2, heldA.TTL // a re-entry extends
		asked := s.scripts()
		wantSnapshot(t, l, []core.HeldLock{heldA, heldB}, nil)
		wantSnapshot(t, s.locker(), nil, nil)
		if s.scripts() != asked {
			t.Error("Redis was asked")
		}

		time.Sleep(9 * time.Second)
		heldA.TTL -= 9 * time.Second
		heldB.TTL -= 9 * time.Second
		wantSnapshot(t, l, []core.HeldLock{heldA, heldB}, nil)
		time.Sleep(time.Second) // the watchdog
		synctest.Wait()
		heldA.TTL, heldB.TTL = lease-10*time.Millisecond, lease-10*time.Millisecond
		heldA.Renewals, heldB.Renewals = 1, 1
		wantSnapshot(t, l, []core.HeldLock{heldA, heldB}, nil)

		unlock(t, inner, a)
		heldB.Count = 1
		wantSnapshot(t, l, []core.HeldLock{heldB}, nil)
		unlock(t, b)
		wantSnapshot(t, l, nil, nil)
	})
}

func TestSnapshotOfBoundedLocks(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		fixed := take(t, background, l, "fixed", core.FixedLease(time.Minute))
		long := take(t, background, l, "long", core.MaxHold(20*time.Second))
		heldFixed, heldLong := ours(fixed), ours(long)
		heldFixed.Fixed = true
		time.Sleep(25 * time.Second)
		heldFixed.TTL = 35*time.Second - 10*time.Millisecond
		heldLong.Overdue, heldLong.Renewals = true, 1
		heldLong.TTL -= 15 * time.Second
		wantSnapshot(t, l, []core.HeldLock{heldFixed, heldLong}, nil)
		if err := fixed.Refresh(background); err != nil {
			t.Fatal(err)
		}
		heldFixed.Renewals, heldFixed.TTL = 1, time.Minute-10*time.Millisecond
		wantSnapshot(t, l, []core.HeldLock{heldFixed, heldLong}, nil)
		unlock(t, fixed, long)
	})
}

// What the watchdog could not renew is there until its Context ends, also while
// Redis is away, and what is being released is not.
func TestSnapshotOfLocksThatEnd(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k")
		held := ours(k)
		s.outage()
		time.Sleep(lease - time.Second)
		held.TTL = time.Second - 10*time.Millisecond
		wantSnapshot(t, l, []core.HeldLock{held}, nil)
		<-k.Context().Done()
		wantSnapshot(t, l, nil, nil)
		wantErr(t, k.Unlock(background), core.ErrLost)
		s.heal()
		time.Sleep(time.Second)

		k = take(t, background, l, "k")
		s.fail(release, lateReply(time.Second))
		done := make(chan error)
		go func() { done <- k.Unlock(background) }()
		synctest.Wait()
		wantSnapshot(t, l, nil, nil)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Each of those who share a lock has an entry of its own.
func TestSnapshotOfForms(t *testing.T) {
	for form, opt := range map[string]core.Option{"shared": core.Shared(), "permits": core.Permits(2)} {
		t.Run(form, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				a := take(t, background, l, "k", opt)
				heldA := ours(a)
				time.Sleep(time.Second)
				b := take(t, background, l, "k", opt)
				heldB := ours(b)
				heldA.TTL -= time.Second
				heldA.Form, heldB.Form = form, form
				wantSnapshot(t, l, []core.HeldLock{heldA, heldB}, nil)
				unlock(t, a, b)
			})
		})
	}
}

func TestSnapshotOfWaitingCalls(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.locker(), s.locker()
		mine, theirs := take(t, background, l, "mine"), take(t, background, other, "theirs")
		held := ours(mine)
		at := now()
		ctx, cancel := context.WithCancel(background)
		first := start(ctx, l, "mine")
		time.Sleep(time.Second)
		one := start(ctx, l, "theirs", core.Owner("somebody"))
		time.Sleep(time.Second)
		two := start(background, l, "theirs")
		three := start(background, l, "theirs")
		time.Sleep(time.Second)
		four := start(background, l, "theirs", core.Owner("somebody"))
		held.Waiters = 1
		held.TTL -= 3 * time.Second
		wantSnapshot(t, l, []core.HeldLock{held}, []core.AwaitedLock{
			{Key: "mine", Waiters: 1, Since: at},
			{Key: "theirs", Waiters: 4, Since: at.Add(time.Second)},
		})
		wantSnapshot(t, other, []core.HeldLock{{
			Key: "theirs", Owner: theirs.Owner(), Form: "exclusive", Token: theirs.Token(), Since: held.Since, TTL: held.TTL, Count: 1,
		}}, nil)

		cancel()
		wantErr(t, (<-first).err, core.ErrNotAcquired)
		wantErr(t, (<-one).err, core.ErrNotAcquired)
		time.Sleep(time.Second)
		held.Waiters, held.TTL = 0, held.TTL-time.Second
		wantSnapshot(t, l, []core.HeldLock{held}, []core.AwaitedLock{{Key: "theirs", Waiters: 3, Since: at.Add(2 * time.Second)}})
		unlock(t, mine, theirs)
		for range 3 {
			var o outcome
			select {
			case o = <-two:
			case o = <-three:
			case o = <-four:
			}
			if o.err != nil {
				t.Fatal(o.err)
			}
			unlock(t, o.lock)
		}
		wantSnapshot(t, l, nil, nil)
	})
}

// Of keys there is what Snapshot has of them.
func TestSnapshotOfKeys(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, other := s.locker(), s.locker()
		var locks []*core.Lock
		for i := range 600 {
			locks = append(locks, take(t, background, l, "other"+strconv.Itoa(i)))
		}
		theirs := take(t, background, other, "theirs{}")
		ctx, cancel := context.WithCancel(background)
		var calls []<-chan outcome
		for _, key := range []string{"mine", "mine"} {
			time.Sleep(time.Second)
			locks = append(locks, take(t, background, l, key, core.Owner("me")))
		}
		for _, key := range []string{"mine", "theirs{}", "theirs{}", "other1"} {
			calls = append(calls, start(ctx, l, key))
		}
		all := l.Snapshot()
		for key, want := range map[string][2]int{"mine": {2, 1}, "theirs{}": {0, 1}, "other1": {1, 1}, "other2": {1, 0}, "nobody's": {}, "": {}} {
			got := l.Snapshot(key)
			held := slices.DeleteFunc(slices.Clone(all.Held), func(h core.HeldLock) bool { return h.Key != key })
			waiting := slices.DeleteFunc(slices.Clone(all.Waiting), func(w core.AwaitedLock) bool { return w.Key != key })
			if !slices.Equal(got.Held, held) || !slices.Equal(got.Waiting, waiting) || len(held) != want[0] || len(waiting) != want[1] {
				t.Errorf("%q: %+v; want %+v, %+v", key, got, held, waiting)
			}
		}
		if got := l.Snapshot("theirs{}", "mine", "", "mine"); len(got.Held) != 2 || len(got.Waiting) != 2 {
			t.Errorf("of several: %+v", got)
		}
		cancel()
		for _, done := range calls {
			wantErr(t, (<-done).err, core.ErrNotAcquired)
		}
		unlock(t, append(locks, theirs)...)
	})
}

func TestSnapshotIsSorted(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		ctx, cancel := context.WithCancel(background)
		var locks []*core.Lock
		var calls []<-chan outcome
		for i := range 20 {
			key := strconv.Itoa(i * 7 % 20 / 2) // each twice
			time.Sleep(time.Millisecond)
			locks = append(locks, take(t, background, l, key, core.Owner("me")))
			calls = append(calls, start(ctx, l, key))
		}
		got := l.Snapshot()
		if len(got.Held) != 20 || !slices.IsSortedFunc(got.Held, func(a, b core.HeldLock) int {
			return cmp.Or(cmp.Compare(a.Key, b.Key), a.Since.Compare(b.Since))
		}) {
			t.Errorf("held: %+v", got.Held)
		}
		if len(got.Waiting) != 10 || !slices.IsSortedFunc(got.Waiting, func(a, b core.AwaitedLock) int { return cmp.Compare(a.Key, b.Key) }) {
			t.Errorf("waited for: %+v", got.Waiting)
		}
		cancel()
		for _, done := range calls {
			wantErr(t, (<-done).err, core.ErrNotAcquired)
		}
		unlock(t, locks...)
	})
}

// A lock is not listed any more when its Context has ended, and one whose end has
// not been noticed yet has no time left.
func TestSnapshotOfLateNews(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		core.OnSchedule(l, 1200*time.Millisecond, func() { time.Sleep(time.Second) })
		a := take(t, background, l, "a", core.FixedLease(time.Second))
		b := take(t, background, l, "b", core.FixedLease(1500*time.Millisecond))
		held := ours(b)
		<-a.Context().Done()
		held.Fixed, held.TTL = true, 500*time.Millisecond
		wantSnapshot(t, l, []core.HeldLock{held}, nil)
		time.Sleep(900 * time.Millisecond)
		held.TTL = 0
		wantSnapshot(t, l, []core.HeldLock{held}, nil)
		wantErr(t, a.Unlock(background), core.ErrLost)
		wantErr(t, b.Unlock(background), core.ErrLost)
	})
}

// A call that has come first does not wait before Redis has said that the lock is
// busy. Those behind it do.
func TestSnapshotOfAFirstAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		s.fail(acquire, lateReply(time.Second))
		first := start(background, l, "k")
		wantSnapshot(t, l, nil, nil)
		time.Sleep(time.Millisecond)
		second := start(background, l, "k")
		wantSnapshot(t, l, nil, []core.AwaitedLock{{Key: "k", Waiters: 1, Since: now()}})
		unlock(t, (<-first).lock)
		unlock(t, (<-second).lock)
	})
}

func TestSnapshotAfterClose(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.open()
		k := take(t, background, l, "k")
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		wantErr(t, l.Close(ctx), context.DeadlineExceeded)
		wantSnapshot(t, l, nil, nil)
		wantErr(t, k.Unlock(background), core.ErrClosed)
	})
}

// Locks come and go, are entered again and waited for meanwhile; for the race
// detector.
func TestSnapshotMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for range 20 {
					k := take(t, background, l, strconv.Itoa(i%2))
					unlock(t, take(t, k.Context(), l, k.Key()), k)
				}
			})
		}
		for range 200 {
			for _, h := range l.Snapshot().Held {
				if h.Count < 1 || h.Waiters > 3 || h.TTL <= 0 {
					t.Errorf("%+v", h)
				}
			}
		}
		all.Wait()
		wantSnapshot(t, l, nil, nil)
	})
}
