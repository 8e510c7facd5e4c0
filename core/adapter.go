package core

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

func init() { option.Inside = inside{} }

// inside is what package core/adapter does with core, and nobody else can. A method that is new is declared there, too.
type inside struct{}

// Option returns an option that changes the settings of a call.
func (inside) Option(set func(*option.Settings)) Option {
	return Option{set: func(s *settings) { set(&s.Settings) }}
}

// Settings returns what options of middleware add up to, with those of the Locker unless it is nil,
// and what is wrong with them.
func (inside) Settings(l *Locker, opts []Option) (*option.Settings, error) {
	var s settings
	if l != nil {
		s = l.defaults
	}
	s.Scope = option.OfMiddleware
	err := s.apply(opts)
	return &s.Settings, err
}

// Notify notifies the Observers of an event of a call with the options.
func (inside) Notify(ctx context.Context, l *Locker, e Event, opts []Option) {
	if l.observers == nil {
		return
	}
	s, err := l.settings(ofCall, opts)
	if err != nil {
		return
	}
	e.Name, e.Form = cmp.Or(e.Name, s.Name), s.Form.Label()
	if e.Reason == "" && e.Err != nil {
		_, e.Reason = kindOf(e.Err)
	}
	l.notify(ctx, e)
}

// LocksOf returns the locks that ctx holds, the innermost first.
func (inside) LocksOf(ctx context.Context) (locks []*Lock) {
	find(ctx, func(k *Lock) bool {
		locks = append(locks, k)
		return false
	})
	return locks
}

// HandOver is Lock.Handover with that ticket. When then fails, the lock is taken back.
func (inside) HandOver(ctx context.Context, k *Lock, ticket string, ttl time.Duration, then func() error) error {
	return k.handOver(ctx, ticket, ttl, then)
}

// VoidTicket says that the work under a resumed lock has failed for good.
func (inside) VoidTicket(k *Lock) { k.lease.failed(store.FailedForGood) }

// AttemptOf returns the number of the attempt for which the lock was taken, 0 for none.
func (inside) AttemptOf(k *Lock) int {
	if k.reentry {
		return 0
	}
	return int(k.lease.attempt)
}

// Answer is Lock.Unlock, and stores the answer to the request for which the lock was taken for that long.
func (i inside) Answer(ctx context.Context, k *Lock, answer string, keep time.Duration) error {
	if i.AttemptOf(k) == 0 {
		return errors.New("core: the lock was not taken for an idempotent request")
	}
	s := k.lease
	s.mu.Lock()
	s.answer = &store.Answer{Text: answer, Keep: keep}
	s.mu.Unlock()
	return k.Unlock(ctx)
}
