package core

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

func init() { option.Inside = inside{} }

// inside is what package core/adapter does with core, and nobody else can. It declares the methods again, and says of most what
// they do.
type inside struct{}

// Option returns an option that changes the settings of a call.
func (inside) Option(set func(*option.Settings)) Option {
	return Option{set: func(s *settings) { set(&s.Settings) }}
}

// Settings returns what options of middleware add up to, with those of the Locker unless it is nil,
// and what is wrong with them.
func (inside) Settings(l *Locker, opts []Option) (*option.Settings, error) {
	var defaults settings
	if l != nil {
		defaults = l.defaults
	}
	s, err := defaults.with(option.OfMiddleware, opts)
	return &s.Settings, err
}

func (inside) Notify(ctx context.Context, l *Locker, e Event, opts []Option) {
	if l.observers.list == nil {
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

// LoggerOf returns who gets the lines of a Locker, nil for none.
func (inside) LoggerOf(l *Locker) *slog.Logger {
	if l == nil || l.defaults.logger == nil {
		return slog.Default()
	}
	return l.defaults.logger
}

// lookUpAgain is when the next lock may be looked up for the log. A log that has a line each second asks for each, although one
// comes late and the next one does not.
const lookUpAgain = 900 * time.Millisecond

// LookUp calls then with the state of a lock, and how many calls of this process wait for it. Redis is asked in the
// background, about once a second for all locks of a Locker, and not when it closes; otherwise then is called at once.
func (inside) LookUp(l *Locker, key string, then func(info Info, waiting int, asked bool)) {
	n, err := l.nameOf(key)
	if err != nil {
		then(Info{}, 0, false)
		return
	}
	w, _ := l.queues.WaitFor(n.Lock())
	last, now := l.lookedUp.Load(), int64(schedule.Now())
	if last != 0 && now-last < int64(lookUpAgain) || !l.lookedUp.CompareAndSwap(last, now) || !l.register(nil) {
		then(Info{}, w.Calls, false)
		return
	}
	l.requests.Start(func() {
		defer l.underWay.End()
		info, err := l.inspect(context.Background(), key, n)
		then(info, w.Calls, err == nil)
	})
}

func (inside) LocksOf(ctx context.Context) (locks []*Lock) {
	find(ctx, func(k *Lock) bool {
		locks = append(locks, k)
		return false
	})
	return locks
}

func (inside) HandOver(ctx context.Context, k *Lock, ticket string, ttl time.Duration, then func() error) error {
	return k.handOver(ctx, ticket, ttl, then)
}

func (inside) VoidTicket(k *Lock) { k.lease.failed(store.FailedForGood) }

func (inside) AttemptOf(k *Lock) int {
	if k.reentry {
		return 0
	}
	return int(k.lease.attempt)
}

func (i inside) Answer(ctx context.Context, k *Lock, answer string, keep time.Duration) error {
	if i.AttemptOf(k) == 0 {
		return errors.New("core: the lock was not taken for an idempotent request")
	}
	k.lease.endsWith(&store.Answer{Text: answer, Keep: keep})
	return k.Unlock(ctx)
}
