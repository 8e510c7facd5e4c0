//go:build go1.25

package acquire

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/core/internal/waitqueue"
	"github.com/latchkey-go/latchkey/internal/limitedlog"
)

// said makes errors that say only what has happened.
type said struct{ Errors }

var errClosed, errUnavailable = errors.New("closed"), errors.New("unavailable")

func (said) IsLost(error) bool                       { return true }
func (said) Closed(string, string) error             { return errClosed }
func (said) Unavailable(string, string, error) error { return errUnavailable }

// unobserved has nobody hear of calls.
type unobserved struct{ Observers }

func (unobserved) Wants(ctx context.Context, _ string, _ int, _ *option.Settings) (context.Context, Observer) {
	return ctx, nil
}
func (unobserved) Compensating(string) {}
func (unobserved) Compensated(string)  {}

var usual = &option.Settings{Terms: store.Terms{Lease: 30 * time.Second}}

// unconnected runs a test in a bubble, with an Acquirer whose Redis is nowhere.
func unconnected(t *testing.T, test func(t *testing.T, a *Acquirer)) {
	by(t, func() redis.UniversalClient { return redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) }, test)
}

// by is unconnected by some client.
func by(t *testing.T, connect func() redis.UniversalClient, test func(t *testing.T, a *Acquirer)) {
	synctest.Test(t, func(t *testing.T) {
		client := connect()
		var workers schedule.Workers
		a := new(Acquirer)
		const timeout = 2 * time.Second
		server := conn.New(client, conn.Config{Prefix: "lock:", Timeout: timeout, Workers: &workers})
		a.Start(Config{
			Backend: lease.Backend{Timeout: timeout, Log: &limitedlog.Log{Logger: func() *slog.Logger { return slog.New(slog.DiscardHandler) }}},
			Prefix:  "lock:", Process: "p", Servers: []*conn.Server{server}, Workers: &workers, Errors: said{}, Observers: unobserved{},
			Disconnected: func(error) {},
		})
		test(t, a)
		a.StopAdmitting()
		_ = a.Drain(t.Context(), t.Context(), func() {})
		a.WaitUntilIdle()
		_ = client.Close()
	})
}

// A cycle that was refused, and waits that are over, leave nothing behind.
func TestWaitsThatAreOverAreForgotten(t *testing.T) {
	unconnected(t, func(t *testing.T, a *Acquirer) {
		held := func(key string) *lease.Handle {
			h, err := lease.New(t.Context(), &a.Registry, lease.AcquiredLock{
				Acquisition: lease.Acquisition{Name: store.NewName("lock:", key), Owner: key}, Times: life.Times{Ends: schedule.Now().Add(time.Hour)},
			}, lease.Conditions{})
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		wait := func(h *lease.Handle, key string) *nestedWait {
			c := &call{acquirer: a, spec: specOf(h.Context(), store.NewName("lock:", key), usual)}
			return c.asNestedWait()
		}
		x, y := held("x"), held("y")
		first, second := wait(x, "y"), wait(y, "x")
		g := waitForGraph{byHeld: map[string][]*nestedWait{}}
		if circle := g.add(first); circle != nil {
			t.Errorf("the first call waits in a circle: %q", circle)
		}
		if circle := g.add(second); len(circle) != 2 || circle[0] != "x" || circle[1] != "y" {
			t.Errorf("the circle is %q", circle)
		}
		if g.remove(first); len(g.byHeld) != 0 {
			t.Errorf("%d keys are still noted", len(g.byHeld))
		}
		for _, h := range []*lease.Handle{x, y} {
			left, _, _ := h.Leave()
			_ = left.Retire(lease.Outcome{})
		}
	})
}

// replicated is a store that has to be asked for each lock.
type replicated struct{ store.Locks }

func (replicated) HandOffNeedsRedis() bool { return true }

func TestWhoMayBeHandedOffALock(t *testing.T) {
	unconnected(t, func(t *testing.T, a *Acquirer) {
		ordinary := specOf(t.Context(), store.Name{}, usual)
		other := specOf(t.Context(), store.Name{}, &option.Settings{Terms: usual.Terms, Attempt: new(store.Attempt)})
		if !a.canGrantInMemory(&ordinary, store.Exclusive) || a.canGrantInMemory(&ordinary, store.Shared) ||
			a.canGrantInMemory(&other, store.Exclusive) {
			t.Error("not the call that wants an ordinary lock, or another one")
		}
		a.Store = replicated{a.Store}
		if a.canGrantInMemory(&ordinary, store.Exclusive) {
			t.Error("a lock that replicas have to confirm")
		}
	})
}

// A lock that was about to be handed off to a call of LockAll ends, and all contexts of the call with
// it, when the Locker closes just then. The call fails because of that.
func TestLockAllThatIsHandedALockWhenTheLockerCloses(t *testing.T) {
	unconnected(t, func(t *testing.T, a *Acquirer) {
		base, cancel := context.WithCancelCause(t.Context())
		group := &lease.Group{Base: base, Cancel: cancel, Began: time.Now()}
		m := &multiCall{acquirer: a, caller: t.Context(), settings: usual, group: group}
		calls, err := m.prepare([]string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		i := m.observe(calls[0])
		a.StopAdmitting()
		h, err := calls[0].acquiredInMemory(lease.AcquiredLock{
			Acquisition: lease.Acquisition{Name: calls[0].name}, Times: life.Times{Ends: schedule.Now().Add(time.Hour)},
		})
		if err := m.add(h, err, i); !errors.Is(err, errClosed) {
			t.Errorf("the call fails: %v", err)
		}
		if !errors.Is(context.Cause(base), errClosed) {
			t.Errorf("its contexts have ended: %v", context.Cause(base))
		}
	})
}

// A call of LockAll may wait for a lock more than once, and afresh when the lock of another Locker is unlocked that it was to enter. Who has found it in the queue looks at what it wanted then, without a lock.
func TestLockAllThatWaitsAgainWhileOthersLookAtIt(t *testing.T) {
	unconnected(t, func(t *testing.T, a *Acquirer) {
		group := &lease.Group{Base: t.Context(), Cancel: func(error) {}, Began: time.Now()}
		m := &multiCall{acquirer: a, caller: t.Context(), settings: usual, group: group}
		calls, err := m.prepare([]string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		c, unlocked := calls[0], &call{acquirer: a, spec: specOf(t.Context(), calls[0].name, usual)}
		c.outer, _ = unlocked.acquiredInMemory(lease.AcquiredLock{
			Acquisition: lease.Acquisition{Name: c.name}, Times: life.Times{Ends: schedule.Now().Add(time.Hour)},
		})
		c.enter = 1 // its token
		left, _, _ := c.outer.Leave()
		_ = left.Retire(lease.Outcome{})
		before, _ := a.queues.Join(c.name.Lock(), "", new(spec), nil)
		waited := make(chan error, 1)
		go func() { waited <- m.waitFor(c) }()
		synctest.Wait()
		before.Leave()
		found := a.queues.Find(c.name.Lock())[0].Wants
		wanted := *found
		if err := <-waited; !errors.Is(err, errUnavailable) {
			t.Fatal(err)
		}
		m.group.Base = lease.Disown(t.Context())
		if m.observe(c); *found != wanted {
			t.Error("what was found has changed")
		}
	})
}

// The terms that the options of a call say reach its claim as a whole.
func TestTermsTravelAsAWhole(t *testing.T) {
	unconnected(t, func(t *testing.T, a *Acquirer) {
		given := &option.Settings{Terms: store.Terms{Form: store.Permits(3), Fixed: true, Lease: time.Second, Window: time.Minute}}
		call := specOf(t.Context(), store.NewName("lock:", "k"), given)
		if claim := call.claim("p:1", store.Listening); claim.Terms != given.Terms {
			t.Errorf("the claim has %+v", claim.Terms)
		}
	})
}

// The question of a head may fail between the message of a grant and the choice of that head. The entry is given up
// then, and the hold that it had must not become a lock.
func TestEntryThatIsGivenUpBeforeTheChoice(t *testing.T) {
	unconnected(t, func(t *testing.T, a *Acquirer) {
		for _, givenUp := range []bool{false, true} {
			w, _ := a.queues.Join("k", "", new(spec), nil)
			wait := func() waitqueue.News {
				return w.Wait(t.Context(), func(waitqueue.Known) time.Duration { return time.Second }, time.Time{}, nil).News
			}
			wait() // the first one asks at once
			w.Entry(func(*spec, *entry) *entry { return new(entry) })
			ended := make(chan waitqueue.News, 1)
			go func() { ended <- wait() }()
			synctest.Wait()
			found := a.queues.Find("k")[0].Entry
			if givenUp {
				found.consume()
			}
			chosen := a.queues.Choose("k", func(_ *spec, by *entry) bool { return by == found && by.consume() })
			if (chosen == nil) != givenUp {
				t.Errorf("given up: %v; chosen: %v", givenUp, chosen != nil)
			}
			if chosen != nil {
				chosen.Give(lease.AcquiredLock{})
			}
			<-ended
			w.Leave()
		}
	})
}

// A process may stand still between the message of a grant and the goroutine that takes it. Taken out, a call without a Wait fails then.
func TestCallThatIsGivenALockTooLateWaitsOn(t *testing.T) {
	unconnected(t, func(t *testing.T, a *Acquirer) {
		c := &call{acquirer: a, spec: specOf(t.Context(), store.NewName("lock:", "k"), usual)}
		lock := c.name.Lock()
		w, _ := a.queues.Join(lock, "", &c.spec, nil)
		w.Wait(t.Context(), nil, time.Time{}, nil) // the first one asks at once
		w.Busy(waitqueue.Taken{}, nil)
		ended := make(chan error, 1)
		go func() {
			_, err := c.waitInQueue(w)
			ended <- err
		}()
		synctest.Wait()
		chosen := a.queues.Choose(lock, func(*spec, *entry) bool { return true })
		chosen.Give(lease.AcquiredLock{Acquisition: lease.Acquisition{Name: c.name}, Times: life.Times{Ends: schedule.Now() - 1}})
		given := time.Now()
		if err := <-ended; err != errUnavailable || time.Since(given) == 0 {
			t.Errorf("%v after %v: it has not asked Redis, which is nowhere", err, time.Since(given))
		}
	})
}

// Without releases under way, calls look nothing up.
func TestGivingUpNothing(t *testing.T) {
	var g pendingReleases
	g.begin("k", time.Now(), nil)
	g.begin("k", time.Now(), nil)
	if g.end("k"); g.of("k").releases != 1 {
		t.Error("one is under way")
	}
	if g.end("k"); g.of("k").releases != 0 || g.releases.Load() != 0 {
		t.Errorf("%d are under way", g.releases.Load())
	}
}
