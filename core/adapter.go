package core

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/lease"
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

func (inside) Once() Option {
	return Option{set: func(s *settings) { asOnce.set(s); s.OwnFailures = true }}
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
	s, err := l.settings(option.OfCall, opts)
	if err != nil {
		return
	}
	e.Name, e.Form = cmp.Or(e.Name, s.Name), s.Form.Label()
	if e.Reason == "" && e.Err != nil {
		_, e.Reason = kindOf(e.Err)
	}
	l.observers.notifyNow(ctx, e)
}

func (inside) LoggerOf(l *Locker) *slog.Logger { return l.logger() }

// lookUpAgain is when the next lock may be looked up for the log. A log that has a line each second asks for each, although one
// comes late and the next one does not.
const lookUpAgain = 900 * time.Millisecond

// LookUp calls then with the state of a lock, and how many calls of this process wait for it. Redis is asked in the
// background, about once a second for all locks of a Locker, and not when it closes; otherwise then is called at once. It
// writes a line, and waits for its turn among those of the Locker: its log may block, and [Locker.Close] does not wait for that.
func (inside) LookUp(l *Locker, key string, then func(info Info, waiting int, asked bool)) {
	n, err := l.acquirer.Name(key)
	if err != nil {
		then(Info{}, 0, false)
		return
	}
	w, _ := l.acquirer.Waiters(n.Lock())
	last, now := l.lookedUp.Load(), int64(schedule.Now())
	if last != 0 && now-last < int64(lookUpAgain) || !l.lookedUp.CompareAndSwap(last, now) || !l.acquirer.Admit() {
		then(Info{}, w.Calls, false)
		return
	}
	l.workers.Start(func() {
		defer l.acquirer.UnderWay.End()
		info, err := inspect(context.Background(), &l.acquirer.Backend, n, false)
		l.lines.Put(func() { then(info, w.Calls, err == nil) }, maxLines)
	})
}

func (inside) LocksOf(ctx context.Context) (locks []*Lock) {
	lease.Find(ctx, func(h *lease.Handle) bool {
		if h.Held() {
			locks = append(locks, lockOf(h))
		}
		return false
	})
	return locks
}

func (inside) HandOver(ctx context.Context, k *Lock, ticket string, ttl time.Duration, then func() error) error {
	return k.handle.HandOver(ctx, ticket, ttl, then)
}

func (inside) VoidTicket(k *Lock) { k.handle.Fail(store.FailedForGood) }

func (inside) AttemptOf(k *Lock) int { return k.handle.Attempt() }

func (inside) Answer(ctx context.Context, k *Lock, answer string, keep time.Duration) error {
	return k.handle.Answer(ctx, store.Answer{Text: answer, Keep: keep})
}
