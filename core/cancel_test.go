//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
)

var errEnough = errors.New("the client has gone")

// A call that is cancelled, at whatever step, leaves nothing in Redis, says why,
// and the next one gets its turn at once.

func TestCancelledBefore(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		ctx, cancel := context.WithCancelCause(background)
		cancel(errEnough)
		for name, lock := range map[string]func(context.Context, string, ...core.Option) (*core.Lock, error){"Lock": l.Lock, "TryLock": l.TryLock} {
			_, err := lock(ctx, "k")
			wantErr(t, err, core.ErrNotAcquired, context.Canceled, errEnough)
			if n := s.scripts(); n != 0 {
				t.Errorf("%s: %d scripts were sent", name, n)
			}
		}
		err := l.Do(ctx, "k", func(context.Context) error { t.Error("fn ran"); return nil })
		wantErr(t, err, core.ErrNotAcquired, context.Canceled, errEnough)
	})
}

func TestCancelledInTheMiddleOfTheLine(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		holder := take(t, background, l, "k")
		head := start(background, l, "k")
		ctx, cancel := context.WithCancelCause(background)
		middle := start(ctx, l, "k")
		last := start(background, l, "k")
		cancel(errEnough)
		synctest.Wait()
		o := <-middle
		wantErr(t, o.err, core.ErrNotAcquired, context.Canceled, errEnough)
		if o.took != 0 {
			t.Errorf("returned %v after the cancellation", o.took)
		}
		unlock(t, holder)
		unlock(t, (<-head).lock)
		o = <-last
		unlock(t, o.lock)
		if o.took > 5*time.Millisecond {
			t.Errorf("the next was served after %v", o.took)
		}
		s.isFree("k")
	})
}

func TestCancelledAtTheHeadOfTheQueue(t *testing.T) {
	for _, at := range []time.Duration{0, time.Millisecond, 700 * time.Millisecond, 10 * time.Second} {
		t.Run(at.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b := s.locker(), s.locker()
				holder := take(t, background, a, "k")
				ctx, cancel := context.WithCancelCause(background)
				head := start(ctx, b, "k")
				next := start(background, b, "k")
				time.Sleep(at)
				cancel(errEnough)
				o := <-head
				wantErr(t, o.err, core.ErrNotAcquired, context.Canceled, errEnough)
				wantTime(t, "returned", o.took, at, at)
				waits(t, next)
				unlock(t, holder)
				released := at + 5*time.Millisecond
				o = <-next
				wantTime(t, "the next was served", o.took, at, released)
				unlock(t, o.lock)
				s.isFree("k")
			})
		})
	}
}

func TestDeadlineAtTheHeadOfTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker()
		holder := take(t, background, a, "k")
		ctx, cancel := context.WithTimeoutCause(background, 1234*time.Millisecond, errEnough)
		defer cancel()
		o := <-start(ctx, b, "k")
		wantErr(t, o.err, core.ErrNotAcquired, context.DeadlineExceeded, errEnough)
		wantNot(t, o.err, core.ErrUnavailable)
		wantTime(t, "returned", o.took, 1234*time.Millisecond, 1234*time.Millisecond)
		unlock(t, holder)
	})
}

// The moment at which Redis has granted the lock and the reply is on its way.
func TestInvariant3CancelledJustAsGranted(t *testing.T) {
	for name, late := range map[string]fault{
		"reply on its way":   lateReply(time.Second),
		"request on its way": lateRequest(time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				ctx, cancel := context.WithCancelCause(background)
				s.fail(acquire, late)
				first := start(ctx, l, "k")
				next := start(background, l, "k")
				time.Sleep(300 * time.Millisecond)
				cancel(errEnough)
				o := <-first
				wantErr(t, o.err, core.ErrNotAcquired, context.Canceled, errEnough)
				wantTime(t, "returned", o.took, 300*time.Millisecond, 300*time.Millisecond)
				o = <-next
				if o.err != nil {
					t.Fatal(o.err)
				}
				wantTime(t, "the next was served", o.took, 300*time.Millisecond, 500*time.Millisecond)
				time.Sleep(2 * time.Second)
				if got := s.held("k"); got != o.lock.Owner()+"=1" {
					t.Errorf("Redis shows %q; want the next one's hold", got)
				}
				unlock(t, o.lock)
				s.isFree("k")
			})
		})
	}
}

func TestInvariant3WaitingCallCancelledJustAsGranted(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b := s.locker(), s.locker(core.Lease(200*time.Millisecond)) // too short to be granted with a message
		holder := take(t, background, a, "k")
		ctx, cancel := context.WithCancelCause(background)
		head := start(ctx, b, "k")
		next := start(background, b, "k")
		time.Sleep(50 * time.Millisecond)
		s.fail(acquire, lateReply(time.Second))
		unlock(t, holder)
		synctest.Wait() // granted; the reply is on its way
		if s.held("k") == "" {
			t.Fatal("the head of the queue was not woken")
		}
		cancel(errEnough)
		wantErr(t, (<-head).err, core.ErrNotAcquired, context.Canceled, errEnough)
		o := <-next
		if o.err != nil {
			t.Fatal(o.err)
		}
		wantTime(t, "the next was served", o.took, 50*time.Millisecond, 200*time.Millisecond)
		unlock(t, o.lock)
		time.Sleep(2 * time.Second)
		s.isFree("k")
	})
}

func TestInvariant3CancelledReentryLeavesNothing(t *testing.T) {
	for name, late := range map[string]fault{
		"reply on its way":   lateReply(time.Second),
		"request on its way": lateRequest(time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				l := s.locker()
				outer := take(t, background, l, "k")
				ctx, cancel := context.WithCancelCause(outer.Context())
				s.fail(acquire, late)
				inner := start(ctx, l, "k")
				cancel(errEnough)
				o := <-inner
				wantErr(t, o.err, core.ErrNotAcquired, context.Canceled, errEnough)
				time.Sleep(2 * time.Second)
				if got := s.held("k"); got != outer.Owner()+"=1" {
					t.Errorf("Redis shows %q; want the outer hold only", got)
				}
				unlock(t, outer)
				s.isFree("k")
			})
		})
	}
}

// A command that still waits for a connection is not sent any more.
func TestCancelledBeforeTheCommandLeft(t *testing.T) {
	bubbleOfFewConnections(t, func(t *testing.T, s *embedded) {
		client := redis.NewClient(&redis.Options{Addr: s.addr, Dialer: s.dial, PoolSize: 1})
		defer client.Close()
		l, err := core.New(client)
		if err != nil {
			t.Fatal(err)
		}
		s.fail("get", lateReply(time.Second))
		go client.Get(background, "x") // has the only connection
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(background)
		waiting := start(ctx, l, "k")
		time.Sleep(500 * time.Millisecond)
		cancel(errEnough)
		o := <-waiting
		wantErr(t, o.err, core.ErrNotAcquired, context.Canceled, errEnough)
		wantTime(t, "returned", o.took, 500*time.Millisecond, 500*time.Millisecond)
		time.Sleep(time.Minute)
		if n := s.scripts(); n != 0 {
			t.Errorf("%d scripts were sent", n)
		}
		if err := l.Close(background); err != nil {
			t.Error(err)
		}
	})
}

func TestCancelledInspection(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		ctx, cancel := context.WithCancelCause(background)
		s.fail(inspect, hang)
		go func() {
			time.Sleep(100 * time.Millisecond)
			cancel(errEnough)
		}()
		_, err := l.Inspect(ctx, "k")
		wantErr(t, err, context.Canceled, errEnough)
		wantNot(t, err, core.ErrUnavailable)
		_, err = l.ForceUnlock(ctx, "k")
		wantErr(t, err, context.Canceled, errEnough)
	})
}

// A context's cause may be what Redis has answered to something else, as errgroup sets it:
// it says nothing about a command in flight. Taken out, the lock is held by nobody for a
// lease.
func TestInvariant3CauseOfACancellationIsNoAnswer(t *testing.T) {
	for name, f := range map[string]fault{"reply late": lateReply(time.Second), "request late": lateRequest(time.Second)} {
		for _, cause := range []error{redis.Nil, redis.ErrClosed} {
			t.Run(name+", "+cause.Error(), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					l := s.locker()
					s.fail(acquire, f)
					ctx, cancel := context.WithCancelCause(background)
					time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
					_, err := l.Lock(ctx, "k")
					wantErr(t, err, core.ErrNotAcquired, context.Canceled, cause)

					k := take(t, background, l, "j")
					ctx, cancel = context.WithCancelCause(k.Context())
					s.fail(acquire, f)
					time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
					_, err = l.Lock(ctx, "j") // a re-entry
					wantErr(t, err, core.ErrNotAcquired, context.Canceled, cause)
					time.Sleep(3 * time.Second)
					unlock(t, k)
					s.isFree("k")
					s.isFree("j")
				})
			})
		}
	}
}

// A call under another lock's context ends as any other when that lock is lost, in flight
// as well as while it waits: the loss is the cause.
func TestCallEndsWithTheLossOfTheLockAroundIt(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, l, "k", core.FixedLease(time.Second))
		time.Sleep(500 * time.Millisecond)
		s.fail(acquire, lateReply(1500*time.Millisecond))
		_, err := l.Lock(k.Context(), "j")
		wantErr(t, err, core.ErrNotAcquired, context.Canceled, core.ErrLost)
		wantErr(t, k.Unlock(background), core.ErrLost)
		time.Sleep(5 * time.Second)
		s.isFree("j")
	})
}
