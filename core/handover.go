package core

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Handover parks the lock for whoever resumes it with the ticket, from any process, so that nobody else
// comes between: a request hands its lock on to the job that it starts. The lock is free when nobody
// has come within ttl, 1 ms to 366 days in whole milliseconds. A [KeepFor] window goes along, unless
// [Lock.DropWindow] was called, and opens when the work is done. The ticket has 128 random bits, of
// which Redis has a digest; whoever has it can take the lock.
//
// Afterwards Context ends with [ErrHandedOver], unless [Locker.Close] has ended it by then, and Unlock
// and Abort return nil: the lock is not this handle's any more. An error means that it is held as
// before, unless that is [ErrLost], or [ErrClosed] of Close: [ErrNotHeld] for an inner handle, one with
// an inner one open, and a lock that is shared or a permit; [ErrUnavailable] when Redis has not
// answered. A lock of [NewQuorum] cannot be handed over.
//
// It blocks for one request to Redis, whatever becomes of ctx, unless that ends before. When it is
// unknown whether the lock was parked, it has that taken back, and blocks until Redis has said so, at
// most until the lease or ttl ends. Nobody can enter the lock meanwhile, and Unlock returns
// [ErrNotHeld]: what was not handed over is released then.
func (k *Lock) Handover(ctx context.Context, ttl time.Duration) (ticket string, err error) {
	ticket = rand.Text()
	if err := k.handOver(ctx, ticket, ttl, nil); err != nil {
		return "", err
	}
	return ticket, nil
}

// handOver is Handover with that ticket, which somebody learns by then, unless it is nil. When
// then fails, the lock is taken back.
func (k *Lock) handOver(ctx context.Context, ticket string, ttl time.Duration, then func() error) error {
	s, e := k.lease, k.lease.engine
	locks, parks := e.store.(parking)
	if !parks {
		return errors.New("core: Handover: a lock of NewQuorum cannot be handed over")
	}
	whole := ttl.Truncate(time.Millisecond)
	lasts := whole - e.store.Margin(whole)
	e.underWay.Begin() // Close waits for what becomes of it
	defer e.underWay.End()
	if err := k.park(ctx, ttl, lasts); err != nil {
		return err
	}
	r := store.HandOver{
		Holding: s.holding(&k.handle), Terms: s.Terms, Token: s.redisToken, Last: s.token,
		ID: e.store.NewHold(), Ticket: ticket, TTL: whole, Drop: s.hasFailed(),
	}
	ctx = context.WithoutCancel(ctx)
	sent := schedule.Now() // the first of its copies, which together count once
	err := locks.HandOver(ctx, r)
	outcome := conn.OutcomeOf(err)
	switch {
	case err == store.ErrOthers:
		return errors.Join(cannotHandOver(k.Key(), "others have entered it"), k.unpark())
	case err == store.ErrGone:
		_ = s.notFound()
		return k.unpark()
	case outcome == conn.NotSent || outcome == conn.Refused:
		return errors.Join(unavailableError(handingOver, k.Key(), err), k.unpark())
	case err != nil:
		err = unavailableError(handingOver, k.Key(), err)
	case then != nil:
		s.parkUntil(sent.Add(lasts))
		err = then()
	}
	if err != nil {
		return errors.Join(err, k.takeBack(ctx, locks, r))
	}
	s.mu.Lock()
	s.takeOut(&k.handle)
	_ = s.unlockAfter(s.life.HandOverByTicket(&k.state))
	k.under.end(&LockError{Key: k.Key(), kind: ErrHandedOver, text: "the lock was handed over"})
	s.giveBack(&k.handle, life.Effects{NoHoldLeft: true}) // nothing but a copy of its acquisition, for no release refuses that
	return nil
}

const handingOver = "handing over" // in errors

// park begins the handover of the only handle, which lasts for so long, unless the lock cannot be handed over. Until unpark
// nobody enters, renews or releases the lock; a loss and Close end it.
func (k *Lock) park(ctx context.Context, ttl, lasts time.Duration) error {
	s := k.lease
	switch {
	case ttl < time.Millisecond || ttl > longestWindow:
		return fmt.Errorf("core: Handover(%v): give at least 1ms and at most %v", ttl, longestWindow)
	case !s.Form.Alone():
		return cannotHandOver(k.Key(), "it is shared, or a permit")
	case s.attempt > 0:
		return cannotHandOver(k.Key(), "it is of an idempotent request")
	case s.Form.Stays():
		return cannotHandOver(k.Key(), "it was handed over before")
	case k.reentry:
		return cannotHandOver(k.Key(), "it was entered, which is up to the outer handle")
	case ctx.Err() != nil:
		return unanswered(ctx, handingOver, k.Key(), conn.Ended(ctx))
	}
	s.mu.Lock()
	now, was := schedule.Now(), k.state
	parks, e := s.life.Park(now, &k.state, now.Add(lasts))
	switch loss := s.unlockAfter(e); {
	case parks:
		return nil
	case was != life.In:
		return notHeldError(k.Key())
	default:
		return cmp.Or(loss, cannotHandOver(k.Key(), "an inner handle is open"))
	}
}

func (s *lease) parkUntil(until schedule.Time) {
	s.mu.Lock()
	s.life.ParkUntil(until)
	_ = s.unlockAfter(life.Effects{})
}

// unpark ends a handover that has failed: the lock is held as before, or given up if it was
// unlocked meanwhile. It returns why it is lost.
func (k *Lock) unpark() error {
	s := k.lease
	s.mu.Lock()
	abandoned := s.life.Unpark(schedule.Now(), &k.state)
	if _ = s.unlockAfter(life.Effects{}); abandoned {
		_ = k.finish(context.Background(), store.Failed, true)
	}
	return s.check()
}

// takeBack has the lock held as before its handover. It fails when the lock is lost.
func (k *Lock) takeBack(ctx context.Context, locks parking, r store.HandOver) error {
	s := k.lease
	for delay := compensateDelay; ; delay = min(2*delay, compensateDelayMax) {
		left := s.Lease
		if s.Fixed {
			left = time.Until(s.end()).Truncate(time.Millisecond)
		}
		sent, err := locks.TakeBack(ctx, r, max(left, time.Millisecond))
		if conn.IsClosed(err) {
			s.parkUntil(schedule.Now()) // nothing takes it back any more
		}
		switch {
		case err == nil:
			if !s.Fixed {
				s.mu.Lock()
				s.life.Renewed(s.engine.timesOf(sent, s.Lease))
				_ = s.unlockAfter(life.Effects{})
			}
			loss := k.unpark()
			if loss != nil { // before it was back
				_, _ = (&releasing{lease: s, lock: k}).send(ctx, store.Failed)
			}
			return loss
		case err == store.ErrGone:
			_ = s.notFound()
			return k.unpark()
		case s.check() != nil:
			locks.TakeBackLater(ctx, r)
			return k.unpark()
		}
		s.engine.report.warn(ctx, "taking a lock back that was not handed over failed and is repeated", "key", k.Key(), "error", err)
		_ = conn.Pause(ctx, delay)
	}
}

// Resume takes a lock that [Lock.Handover] has parked. Nobody else has had it since, and its fencing
// token is a greater one. One at a time can have it: while somebody has, the right ticket is refused
// with [*BusyError]. Unlock frees the lock, and opens the [KeepFor] window that it has. [Lock.Abort], or
// the end of the lease, parks it again for the ttl of Handover: the work can be tried again by the same
// ticket. The lock is not handed off in memory, and cannot be handed over once more.
//
// It never waits for the lock, and fails as [Locker.TryLock] does, and with [ErrTicket] when the ticket
// is unknown, used up or expired, or the lock was freed by [Locker.ForceUnlock]. What ctx holds does
// not matter. The options are those of Lock; [Shared], [Permits] and [Owner] are refused, as is a Locker
// of [NewQuorum].
func (l *Locker) Resume(ctx context.Context, key, ticket string, opts ...Option) (*Lock, error) {
	s, err := l.settings(ofTryLock, append(opts[:len(opts):len(opts)], NoWait()))
	switch {
	case err != nil:
		return nil, err
	case ticket == "":
		return nil, noTicket(key)
	case !s.Form.Alone() || s.Owner.Chosen != "" || s.Attempt != nil || s.Quorum:
		return nil, errors.New("core: Resume takes a lock alone, for an owner of its own, and not from a quorum")
	}
	s.Ticket, s.Resume = ticket, true
	return l.lockObserved(ctx, key, s)
}
