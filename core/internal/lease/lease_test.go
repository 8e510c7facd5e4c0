//go:build go1.25

package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/internal/limitedlog"
)

// nowhere is a store that takes what it is given.
type nowhere struct{ store.Locks }

func (nowhere) Margin(time.Duration) time.Duration    { return 0 }
func (nowhere) IsQuorum() bool                        { return false }
func (nowhere) ReleaseLater(store.Release)            {}
func (nowhere) LateCopies(*store.Claim) *conn.Resends { return nil }
func (nowhere) Acquire(context.Context, *store.Claim) (store.Acquired, error) {
	return store.Acquired{Sent: time.Now(), Terms: store.Terms{Lease: time.Hour}}, nil
}

// above is the room above.
type above struct{}

func (above) Release(context.Context, *Handle, store.Work, option.ReleaseMode) error { return nil }
func (above) ReleaseLost(context.Context, *Handle)                                   {}
func (above) MayBeFree(string)                                                       {}

var errNotHeld = errors.New("not held")

type lost life.State

func (l lost) Error() string { return fmt.Sprint("lost: ", life.State(l)) }

// said has what was said.
type said struct{ Errors }

func (said) Lost(_ string, ended life.State) error { return lost(ended) }
func (said) NotHeld(string) error                  { return errNotHeld }

// bubble runs a test in a bubble, with a registry.
func bubble(t *testing.T, test func(t *testing.T, r *Registry)) {
	synctest.Test(t, func(t *testing.T) {
		var workers schedule.Workers
		r := &Registry{Backend: Backend{
			Store: nowhere{}, Log: &limitedlog.Log{Logger: func() *slog.Logger { return slog.New(slog.DiscardHandler) }},
			Scheduler: schedule.New(&workers, func() {}),
		}}
		r.Start(said{}, above{})
		test(t, r)
		r.Scheduler.Stop()
		<-workers.Stop()
	})
}

// leased is the handle of a lease whose time is over at that time.
func leased(t *testing.T, r *Registry, ends schedule.Time) *Handle {
	g := AcquiredLock{Acquisition: Acquisition{Name: store.NewName("lock:", "k")}, Times: life.Times{Ends: ends}}
	return r.newLease(t.Context(), g, Conditions{})
}

// An answer of Redis, or a call that re-enters, may come just after the Unlock. Only the release itself can tell a loss.
func TestWhatComesJustAfterTheUnlock(t *testing.T) {
	bubble(t, func(t *testing.T, r *Registry) {
		h := leased(t, r, schedule.Now().Add(time.Hour))
		s := h.lease
		left, leaves, err := h.Leave()
		if !leaves || !left.IsLast || err != nil {
			t.Fatal(leaves, left.IsLast, err)
		}
		if inner, err := h.Enter(t.Context(), nil, new(store.Claim)); inner != nil || err != nil {
			t.Errorf("a call that enters it: %v, %v", inner, err)
		}
		if s.Renewed(false, nil, time.Now()); s.check() != nil {
			t.Errorf("a renewal: %v", s.check())
		}
		if s.Renewed(true, nil, time.Now()); s.renewals != 0 {
			t.Error("a renewal counts")
		}
		if err := h.NotFound(schedule.Now()); err != errNotHeld || s.check() != nil {
			t.Errorf("a question that came before: %v", err)
		}
		if err := left.Retire(Outcome{NotFound: true}); err != lost(life.Deleted) || s.check() != err {
			t.Errorf("its release: %v", err)
		}
	})
}

// Who unlocks a lock whose time is over finds it lost, and so does who waits for the end of its context.
func TestUnlockThatIsTheFirstToNoticeTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, r *Registry) {
		h := leased(t, r, schedule.Now())
		ctx := h.under.context(true)
		if _, _, err := h.Leave(); err != lost(life.FixedOver) || context.Cause(ctx) != err {
			t.Errorf("%v, and its context ends with %v", err, context.Cause(ctx))
		}
	})
}

// The log gives the reason that Observers count: who was paused past the end of a lease does not look for somebody who has deleted it.
func TestWhyRedisDoesNotKnowALease(t *testing.T) {
	bubble(t, func(t *testing.T, r *Registry) {
		for why, left := range map[life.State]time.Duration{life.ExpiredInRedis: 0, life.Deleted: time.Hour} {
			h := leased(t, r, schedule.Now().Add(left))
			time.Sleep(time.Millisecond)
			if err := h.NotFound(schedule.Now()); err != lost(why) {
				t.Errorf("%v before its end: %v", left, err)
			}
		}
	})
}

// A lease that was lost when its time was over has expired, unless that was because of MaxHold.
func TestReasonsOfLoss(t *testing.T) {
	for ended, want := range map[life.State]string{
		life.Expired: "expired", life.FixedOver: "expired", life.HeldTooLong: "max_hold", life.HandoverTooLong: "expired",
		life.ExpiredInRedis: "expired", life.Deleted: "deleted", life.Closed: "closed",
	} {
		if said := reasonOfLoss(ended); said != want {
			t.Errorf("%v: %s, want %s", ended, said, want)
		}
	}
}

// A lock that was entered, once, names holds that a short release does not know; one that was granted, and not renewed yet, has
// no lease of its own. All else of its terms the release has.
func TestWhatAReleaseKnowsOfItsLock(t *testing.T) {
	bubble(t, func(t *testing.T, r *Registry) {
		terms := store.Terms{Form: store.Permits(3), Fixed: true, Lease: time.Second, Window: time.Minute}
		for i, all := 0, reflect.ValueOf(terms); i < all.NumField(); i++ {
			if all.Field(i).IsZero() {
				t.Fatalf("give %s a value here", all.Type().Field(i).Name)
			}
		}
		h := leased(t, r, schedule.Now().Add(time.Minute))
		s := h.lease
		s.Terms = terms
		released := func(h *Handle) store.Release { return Departure{Handle: h}.ReleaseCommand(store.Done) }
		if r := released(h); r.Entered || r.Terms != terms {
			t.Errorf("as it was taken: %+v", r)
		}
		if inner, err := h.Enter(t.Context(), nil, new(store.Claim)); inner == nil || err != nil {
			t.Fatal(err)
		}
		s.life = life.New(&h.state, life.Times{Granted: true}, 0)
		if r := released(h); !r.Entered || r.Lease != 0 {
			t.Errorf("entered, and not renewed: %+v", r)
		}
		// What the holder has said stays, whoever says less.
		h.Fail(store.FailedForGood)
		h.Fail(store.Failed)
		if r := released(h); r.Work != store.FailedForGood {
			t.Errorf("failed for good: %+v", r)
		}
	})
}

// A lock is handed off in memory for as long as others can wait for their turn, and never
// after its end, should the process have stood still just then.
func TestHowLongALockIsHandedOff(t *testing.T) {
	bubble(t, func(t *testing.T, r *Registry) {
		left := func(ends schedule.Time, kept time.Duration, token int64) Departure {
			h := leased(t, r, ends)
			h.lease.life.Leave(0, &h.state)
			h.lease.Token, h.lease.HeldSince = token, schedule.Now().Add(-kept)
			return Departure{h, true}
		}
		for kept, ends := range map[time.Duration]time.Duration{
			time.Millisecond:              time.Millisecond,
			9 * time.Millisecond:          time.Hour,
			2 * time.Millisecond:          0,
			3 * time.Millisecond:          -time.Millisecond,
			HandOffFor:                    time.Hour,
			HandOffFor + time.Millisecond: time.Hour,
		} {
			h := left(schedule.Now().Add(ends), kept, 0)
			if want := kept < HandOffFor && ends > 0; h.MayBeHandedOff(store.Terms{}) != want {
				t.Errorf("held for %v, ends in %v: handed off is %v", kept, ends, !want)
			}
		}
		// Redis gives a token of its own to whoever has the lock next, should it end without a release.
		for given, want := range map[int64]bool{999: true, 1000: false} {
			h := left(schedule.Now().Add(time.Hour), time.Millisecond, given)
			if h.MayBeHandedOff(store.Terms{}) != want {
				t.Errorf("%d tokens given in a millisecond: handed off is %v", given, !want)
			}
			if h.MayBeHandedOff(store.Terms{Fixed: true}) {
				t.Error("to a call that wants other terms")
			}
		}
	})
}
