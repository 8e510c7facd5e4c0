package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// HandOver parks the lock for whoever resumes it with the ticket, which somebody learns by then, unless it is nil. When
// then fails, the lock is taken back.
func (h *Handle) HandOver(ctx context.Context, ticket string, ttl time.Duration, then func() error) error {
	s, r := h.lease, h.lease.registry
	if r.Store.IsQuorum() {
		return errors.New("core: Handover: a lock of NewQuorum cannot be handed over")
	}
	whole := ttl.Truncate(time.Millisecond)
	lasts := whole - r.Store.Margin(whole)
	r.UnderWay.Begin() // Close waits for what becomes of it
	defer r.UnderWay.End()
	if err := h.beginHandover(ctx, ttl, lasts); err != nil {
		return err
	}
	request := store.HandOver{
		Holding: s.holding(h), Terms: s.Terms, Token: s.RedisToken, LastToken: s.Token,
		ID: r.Store.NewHold(), Ticket: ticket, TTL: whole, Drop: h.hasFailed(),
	}
	ctx = context.WithoutCancel(ctx)
	sent := schedule.Now() // the first of its copies, which together count once
	err := r.Store.HandOver(ctx, request)
	outcome := conn.OutcomeOf(err)
	switch {
	case err == store.ErrOthers:
		return errors.Join(s.registry.errors.CannotBe(handedOver, s.Name.Key(), "others have entered it"), h.cancelHandover())
	case err == store.ErrGone:
		_ = s.notFound()
		return h.cancelHandover()
	case outcome == conn.NotSent || outcome == conn.Refused:
		return errors.Join(r.errors.Unavailable(handingOver, s.Name.Key(), err), h.cancelHandover())
	case err != nil:
		err = r.errors.Unavailable(handingOver, s.Name.Key(), err)
	case then != nil:
		s.handoverEndsBy(sent.Add(lasts))
		err = then()
	}
	if err != nil {
		return errors.Join(err, h.takeBack(ctx, request))
	}
	s.mu.Lock()
	s.takeOut(h)
	_ = s.applyAndUnlock(s.life.HandOverByTicket(&h.state))
	h.under.end(r.errors.HandedOver(s.Name.Key()))
	s.compensate(h, copyRemains) // which no release refuses
	return nil
}

const handingOver, handedOver = "handing over", "handed over" // in errors

// beginHandover begins the handover of the only handle, which lasts for so long, unless the lock cannot be handed over. Until it is
// cancelled nobody enters, renews or releases the lock; a loss and Close end it.
func (h *Handle) beginHandover(ctx context.Context, ttl, lasts time.Duration) error {
	s, form := h.lease, h.Form()
	switch {
	case ttl < time.Millisecond || ttl > option.LongestWindow:
		return fmt.Errorf("core: Handover(%v): give at least 1ms and at most %v", ttl, option.LongestWindow)
	case !form.Alone():
		return s.registry.errors.CannotBe(handedOver, s.Name.Key(), "it is shared, or a permit")
	case s.Attempt > 0:
		return s.registry.errors.CannotBe(handedOver, s.Name.Key(), "it is of an idempotent request")
	case form.Stays():
		return s.registry.errors.CannotBe(handedOver, s.Name.Key(), "it was handed over before")
	case h.reentry:
		return s.registry.errors.CannotBe(handedOver, s.Name.Key(), "it was entered, which is up to the outer handle")
	case ctx.Err() != nil:
		return s.registry.errors.Unanswered(ctx, handingOver, s.Name.Key(), conn.Ended(ctx))
	}
	s.mu.Lock()
	now, was := schedule.Now(), h.state
	begins, e := false, life.Effects{}
	if s.Form == form { // or it is being downgraded
		begins, e = s.life.BeginHandover(now, &h.state, now.Add(lasts))
	}
	switch loss := s.applyAndUnlock(e); {
	case begins:
		return nil
	case was != life.In:
		return s.registry.errors.NotHeld(s.Name.Key())
	default:
		return cmp.Or(loss, s.registry.errors.CannotBe(handedOver, s.Name.Key(), "an inner handle is open, or it is being downgraded"))
	}
}

func (s *lease) handoverEndsBy(until schedule.Time) {
	s.mu.Lock()
	s.life.HandoverEndsBy(until)
	_ = s.applyAndUnlock(life.Effects{})
}

// cancelHandover ends a handover that has failed: the lock is held as before, or given up if it was
// unlocked meanwhile. It returns why it is lost.
func (h *Handle) cancelHandover() error {
	s := h.lease
	s.mu.Lock()
	abandoned := s.life.CancelHandover(schedule.Now(), &h.state)
	if _ = s.applyAndUnlock(life.Effects{}); abandoned {
		_ = h.Release(context.Background(), store.Failed, option.BackgroundRelease)
	}
	return s.check()
}

// The pauses between tries to take a lock back double.
const (
	takeBackDelay    = 20 * time.Millisecond
	takeBackDelayMax = 500 * time.Millisecond
)

// takeBack has the lock held as before its handover. It fails when the lock is lost.
func (h *Handle) takeBack(ctx context.Context, r store.HandOver) error {
	s := h.lease
	for delay := takeBackDelay; ; delay = min(2*delay, takeBackDelayMax) {
		left := s.Lease
		if s.Fixed {
			left = time.Until(h.Ends()).Truncate(time.Millisecond)
		}
		sent, err := s.registry.Store.TakeBack(ctx, r, max(left, time.Millisecond))
		if conn.IsClosed(err) {
			s.handoverEndsBy(schedule.Now()) // nothing takes it back any more
		}
		switch {
		case err == nil:
			if !s.Fixed {
				s.mu.Lock()
				s.life.Renewed(s.registry.TimesOf(sent, s.Lease))
				_ = s.applyAndUnlock(life.Effects{})
			}
			loss := h.cancelHandover()
			if loss != nil { // before it was back
				s.registry.releaser.ReleaseLost(ctx, h)
			}
			return loss
		case err == store.ErrGone:
			_ = s.notFound()
			return h.cancelHandover()
		case s.check() != nil:
			s.registry.Store.CompensateHandOver(ctx, r)
			return h.cancelHandover()
		}
		s.registry.Warn(ctx, "taking a lock back that was not handed over failed and is repeated", "key", s.Name.Key(), "error", err)
		_ = conn.Pause(ctx, delay)
	}
}
