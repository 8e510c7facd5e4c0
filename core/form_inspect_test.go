package core_test

import (
	"cmp"
	"crypto/sha1"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// What a handle says of itself is not what others who have the lock do.
func TestCountAndTTLAreOfTheHandlesOwnHolder(t *testing.T) {
	for what, opt := range map[string]core.Option{"shared": core.Shared(), "permits": core.Permits(2)} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a := take(t, background, s.locker(), "k", opt)
				time.Sleep(time.Second)
				b := take(t, background, s.locker(), "k", opt, core.FixedLease(time.Minute))
				inner := take(t, a.Context(), s.locker(), "k", opt)
				for who, k := range map[string]struct {
					*core.Lock
					count int
					ttl   time.Duration
				}{"one that has entered again": {a, 2, lease}, "the other": {b, 1, time.Minute}} {
					if n, err := k.Count(background); err != nil || n != k.count {
						t.Errorf("%s: %d holds, %v; want %d", who, n, err, k.count)
					}
					if ttl, err := k.TTL(background); err != nil || ttl != k.ttl {
						t.Errorf("%s: lasts for %v, %v; want %v", who, ttl, err, k.ttl)
					}
				}
				unlock(t, inner, a)
				if n, err := b.Count(background); err != nil || n != 1 {
					t.Errorf("alone: %d holds, %v", n, err)
				}
				unlock(t, b)
			})
		})
	}
}

func TestInspectListsTheHolders(t *testing.T) {
	for form, opt := range map[string]core.Option{"shared": core.Shared(), "permits": core.Permits(2)} {
		t.Run(form, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l, weight := s.locker(), 0
				if form == "permits" {
					weight = 1
				}
				inspects := func(want core.Info) {
					t.Helper()
					slices.SortFunc(want.Holders, func(a, b core.Holder) int { return cmp.Compare(a.Owner, b.Owner) })
					if info, err := l.Inspect(background, "k"); err != nil || !reflect.DeepEqual(info, want) {
						t.Errorf("Inspect: %+v, %v; want %+v", info, err, want)
					}
				}
				a := take(t, background, s.locker(), "k", opt)
				time.Sleep(time.Second)
				b := take(t, background, s.locker(), "k", opt, core.FixedLease(time.Minute))
				inner := take(t, b.Context(), s.locker(), "k", opt)
				inspects(core.Info{Locked: true, State: core.State(form), Form: form, Count: 3, TTL: time.Minute, Holders: []core.Holder{
					{Owner: a.Owner(), Count: 1, Weight: weight, TTL: 29 * time.Second, HeldFor: time.Second, Lease: 30 * time.Second},
					{Owner: b.Owner(), Count: 2, Weight: weight, TTL: time.Minute},
				}})
				unlock(t, a)
				inspects(core.Info{Locked: true, State: core.State(form), Form: form, Owner: b.Owner(), Count: 2, TTL: time.Minute, Holders: []core.Holder{
					{Owner: b.Owner(), Count: 2, Weight: weight, TTL: time.Minute},
				}})
				unlock(t, inner, b)
				inspects(core.Info{State: core.StateFree})
			})
		})
	}
}

func TestInspectTellsAParkedLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		inspects := func(what string, want core.Info) {
			t.Helper()
			if info, err := l.Inspect(background, "k"); err != nil || !reflect.DeepEqual(info, want) {
				t.Errorf("%s: %+v, %v; want %+v", what, info, err, want)
			}
		}
		first := take(t, background, l, "k")
		ticket, err := first.Handover(background, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		digest := fmt.Sprintf("%x", sha1.Sum([]byte(ticket)))
		parked := core.Info{Locked: true, State: core.StateParked, TTL: time.Minute, HandedOverBy: first.Owner(), Ticket: digest}
		inspects("parked", parked)
		k, err := s.locker().Resume(background, "k", ticket)
		if err != nil {
			t.Fatal(err)
		}
		inspects("resumed", core.Info{
			Locked: true, State: core.StateHeld, Form: "exclusive", Owner: k.Owner(), Count: 1, TTL: lease + time.Minute,
			Holders: []core.Holder{{Owner: k.Owner(), Count: 1, TTL: lease, Lease: lease}}, HandedOverBy: first.Owner(), Ticket: digest,
		})
		if ttl, err := k.TTL(background); err != nil || ttl != lease {
			t.Errorf("lasts for %v, %v", ttl, err)
		}
		if err := k.Abort(background); err != nil {
			t.Fatal(err)
		}
		inspects("parked again", parked)
	})
}

// After it the ticket is of no use, and the dedup window that the lock was to leave does not open.
func TestForceUnlockOfWhatWasHandedOver(t *testing.T) {
	for what, resumed := range map[string]bool{"parked": false, "resumed": true} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				ticket, err := take(t, background, l, "k", core.KeepFor(time.Hour)).Handover(background, time.Minute)
				if err != nil {
					t.Fatal(err)
				}
				owner, other := "", "somebody"
				if resumed {
					k, err := l.Resume(background, "k", ticket)
					if err != nil {
						t.Fatal(err)
					}
					owner, other = k.Owner(), ""
				}
				waiting := start(background, s.locker(), "k")
				if freed, err := l.ForceUnlock(background, "k", other); freed || err != nil {
					t.Errorf("%q: freed %v, %v", other, freed, err)
				}
				if freed, err := l.ForceUnlock(background, "k", owner); !freed || err != nil {
					t.Errorf("%q: freed %v, %v", owner, freed, err)
				}
				next := <-waiting
				wantTime(t, "it is free", next.took, 0, prompt)
				unlock(t, next.lock)
				_, err = l.Resume(background, "k", ticket)
				wantErr(t, err, core.ErrTicket)
			})
		})
	}
}

// Owners who are named are evicted, and the others stay.
func TestForceUnlockOfOwnersEvictsThem(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		var locks []*core.Lock
		for range 3 {
			locks = append(locks, take(t, background, s.locker(), "k", core.Permits(3)))
		}
		for _, want := range []bool{true, false} {
			freed, err := l.ForceUnlock(background, "k", locks[0].Owner(), "somebody", locks[2].Owner())
			if freed != want || err != nil {
				t.Errorf("freed %v, %v; want %v", freed, err, want)
			}
		}
		for _, i := range []int{0, 2} {
			_, why := endOf(locks[i].Context())
			wantErr(t, why, core.ErrLost)
		}
		unlock(t, locks[1])
	})
}

// One of several who hold a lock is evicted, and the others stay.
func TestForceUnlockOfAnOwnerEvictsOneHolder(t *testing.T) {
	for what, opt := range map[string]core.Option{"shared": core.Shared(), "permits": core.Permits(2)} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				a, b := take(t, background, s.locker(), "k", opt), take(t, background, s.locker(), "k", opt)
				forces := func(what, owner string, want bool) {
					t.Helper()
					if freed, err := l.ForceUnlock(background, "k", owner); freed != want || err != nil {
						t.Errorf("%s: freed %v, %v", what, freed, err)
					}
				}
				forces("who is none of them", "somebody", false)
				forces("nobody", "", false)
				waiting := start(background, l, "k", core.Permits(1))
				forces("one", a.Owner(), true)
				forces("once more", a.Owner(), false)
				began := time.Now()
				at, why := endOf(a.Context())
				wantErr(t, why, core.ErrLost)
				wantTime(t, "loss", at.Sub(began), 0, lease/3)
				time.Sleep(time.Minute)
				waits(t, waiting)
				unlock(t, b)
				unlock(t, (<-waiting).lock)
			})
		})
	}
}

// Without an owner all of them are evicted.
func TestForceUnlockEvictsAllHolders(t *testing.T) {
	for what, opt := range map[string]core.Option{"shared": core.Shared(), "permits": core.Permits(2)} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				a, b := take(t, background, s.locker(), "k", opt), take(t, background, s.locker(), "k", opt)
				waiting := start(background, l, "k")
				if freed, err := l.ForceUnlock(background, "k"); !freed || err != nil {
					t.Errorf("freed %v, %v", freed, err)
				}
				unlock(t, (<-waiting).lock)
				for _, k := range []*core.Lock{a, b} {
					_, why := endOf(k.Context())
					wantErr(t, why, core.ErrLost)
				}
			})
		})
	}
}
