package core

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/option"
)

// campaignAgain is when a campaign that has failed begins again, at most.
const campaignAgain = time.Second

const slowLeader = 5 * time.Second // for which fn may go on after its context before the log tells

// Lead runs fn in one process of all that call it with the same key. It campaigns: it waits for the
// lock of key, in order of arrival, until ctx ends. Then it leads: it runs fn as [Locker.Do] does,
// until one of these happens.
//
//   - fn returns by itself, or panics. Lead releases the lock, so that another takes over at
//     once, and returns what Do would.
//   - The lock is lost, or held for [MaxHold], which bounds a term. fn's context ends with
//     [ErrLost] or [ErrMaxHold]. When fn has returned, its error is logged, and Lead campaigns
//     again.
//   - ctx ends, and fn's context with it. When fn has returned, Lead releases the lock, and
//     returns the error and the cause of ctx, joined with fn's error.
//
// Nobody else leads before fn has returned, unless the lease is over: fn has to end with its
// context, and the log tells of one that goes on for 5 s. A leader that dies is followed when
// its lease is over. [Locker.Close] waits for it as for any holder: end ctx before.
//
// A campaign outlives failures of Redis, which are logged. Other errors of [Locker.Lock] end it:
// that of ctx, [ErrInvalidKey], [ErrClosed], [ErrDeadlock]. It is not bounded to a lease where ctx
// holds other locks, which stay held. Lead takes [Lease], [MaxHold] and [Name], and refuses other
// options. Those that New was given do not count, but a Locker with [FixedLease] needs a Lease.
func (l *Locker) Lead(ctx context.Context, key string, fn func(ctx context.Context) error, opts ...Option) error {
	need("Lead", fn)
	s, err := l.settingsOfLead(opts)
	if err != nil {
		return err
	}
	for {
		again := false
		k, err := l.lock(ctx, key, s)
		if k != nil {
			again, err = l.lead(ctx, k, fn)
		}
		switch {
		case ctx.Err() != nil:
			if !errors.Is(err, ctx.Err()) || !errors.Is(err, context.Cause(ctx)) {
				err = errors.Join(conn.Ended(ctx), err)
			}
			return err
		case again:
			l.acquirer.Warn(ctx, "leadership has ended, a new campaign begins", "key", key, "error", err)
		case k == nil && errors.Is(err, ErrUnavailable) && !conn.IsClosed(err):
			l.acquirer.Warn(ctx, "a campaign for leadership has failed and is repeated", "key", key, "error", err)
			select {
			case <-time.After(campaignAgain/2 + rand.N(campaignAgain/2)):
			case <-ctx.Done():
			case <-l.acquirer.Closing():
			}
		default:
			return err
		}
	}
}

// settingsOfLead are those of a campaign and its terms. What New was told counts for little, and what an option sets beside
// what is named here is refused, so that no option is ignored in silence.
func (l *Locker) settingsOfLead(opts []Option) (*option.Settings, error) {
	forever, lead := time.Duration(math.MaxInt64), l.defaults // nil would be a lease, inside of other locks
	lead.Wait, lead.MaxWaiters, lead.Window, lead.Release, lead.MayLast = &forever, nil, 0, option.AwaitedRelease, true
	s, err := lead.with(option.OfCall, opts)
	if err != nil {
		return nil, err
	}
	if s.Fixed {
		return nil, errors.New("core: Lead cannot be combined with FixedLease, wherever it was said, for a leader's lease is renewed: " +
			"give it Lease, and MaxHold to bound a term")
	}
	lead.Scope, lead.Lease, lead.Fixed, lead.MaxHold, lead.Name = s.Scope, s.Lease, s.Fixed, s.MaxHold, s.Name
	if !reflect.DeepEqual(*s, lead) {
		return nil, errors.New("core: Lead takes the options Lease, MaxHold and Name only: " +
			"one leads at a time, waits until its context ends, and is followed at once")
	}
	return &s.Settings, nil
}

// lead is one term. again says that it has ended before fn has.
func (l *Locker) lead(ctx context.Context, k *Lock, fn func(ctx context.Context) error) (again bool, err error) {
	err = l.run(ctx, k, func(term context.Context) error {
		returned := make(chan struct{})
		defer close(returned)
		context.AfterFunc(term, func() { l.awaitLeader(k, returned) })
		err := fn(term)
		if term.Err() != nil {
			ended := k.usable()
			again = ended != nil && !errors.Is(ended, ErrClosed)
		}
		return err
	}, option.AwaitedRelease)
	return again, err
}

func (l *Locker) awaitLeader(k *Lock, returned <-chan struct{}) {
	select {
	case <-returned:
		return
	case <-time.After(slowLeader):
	}
	if err := k.handle.Check(); err != nil {
		l.acquirer.Problem(k.Context(), "a leader that has lost its lock goes on, and another may lead",
			"key", k.Key(), "for", slowLeader, "error", err)
	} else {
		l.acquirer.Warn(k.Context(), "a leader goes on although its context has ended, and nobody can follow", "key", k.Key(), "for", slowLeader)
	}
}
