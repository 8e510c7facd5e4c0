package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Lock takes the lock of key, or enters it once more when ctx holds it already.
// It waits until the lock is free, ctx is done, or [Wait] is over. A call whose ctx holds
// another lock waits for a lease at most, unless Wait says otherwise. Waiting calls
// of one Locker are served in order, and so are the processes they wait in. The lock is
// renewed until it is unlocked, also after ctx was cancelled.
//
// Errors are a [*BusyError] or a [*LockError], apart from those of options and keys:
//
//   - [ErrNotAcquired]: somebody else holds the lock, then it is a [*BusyError]; or ctx ended
//     first, then it is the context's error as well.
//   - [ErrDeadlock], which is ErrNotAcquired as well, at once: ctx holds another lock, and the
//     wait would not end.
//   - [ErrUnavailable]: Redis did not answer within [Timeout], in which a call whose connection
//     breaks is sent again, or answered with an error. A call that was waiting already endures
//     this for 5 s. It fails sooner when its wait ends, or a deadline of ctx, while Redis has
//     failed for a second or more. A deadline that ends before that is [ErrNotAcquired], unless
//     Redis has not answered anybody for Timeout.
//   - [ErrLost]: ctx held the lock and has lost it. [ErrMaxHold]: ctx has held it for too long.
//   - [ErrClosed], [ErrInvalidKey].
//
// Whatever the error, nothing stays locked: an outcome that is unknown is compensated in the
// background.
func (l *Locker) Lock(ctx context.Context, key string, opts ...Option) (*Lock, error) {
	s, err := l.settings(opts)
	if err != nil {
		return nil, err
	}
	return l.obtain(ctx, key, s)
}

// TryLock is [Locker.Lock] that never waits for a busy lock, nor takes one that has
// just become free for a process that waits. It blocks for one request to Redis, at
// most for [Timeout].
func (l *Locker) TryLock(ctx context.Context, key string, opts ...Option) (*Lock, error) {
	s, err := l.settings(append(opts[:len(opts):len(opts)], NoWait()))
	if err != nil {
		return nil, err
	}
	return l.obtain(ctx, key, s)
}

// obtain is acquire, and tells the Observers.
func (l *Locker) obtain(ctx context.Context, key string, s *settings) (*Lock, error) {
	if l.observers == nil {
		return l.acquire(ctx, key, s)
	}
	began := time.Now()
	e := Event{Kind: EventWaiting, Name: s.Name, Key: key}
	ctx = l.tell(ctx, e)
	k, err := l.acquire(ctx, key, s)
	e.Waited = time.Since(began)
	if err != nil {
		e.Kind, e.Reason = refused(err)
		e.Err = err
		l.tell(ctx, e)
		return nil, err
	}
	e.Kind, e.Reentry = EventAcquired, k.reentry
	k.ctx = l.tell(k.ctx, e)
	if !e.Reentry {
		k.lease.observe(&observation{ctx: k.ctx, name: s.Name, since: time.Now()})
	}
	return k, nil
}

func (l *Locker) acquire(ctx context.Context, key string, s *settings) (*Lock, error) {
	n, err := l.name(key)
	if err != nil {
		return nil, err
	}
	c := &call{locker: l, ctx: ctx, key: key, name: n, settings: s, owner: s.Owner}
	outer := holder(ctx, n.Lock())
	if outer != nil && (s.Owner == "" || s.Owner == outer.lease.owner) {
		if err := outer.lease.usable(); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, gaveUp(ctx, key)
		}
		if outer.lease.locker == l {
			return c.reenter(outer)
		}
		// Another Locker holds it for this context. If that one uses this Redis,
		// then the very lock it holds must still be there.
		c.owner = outer.lease.owner
		c.outer = outer.lease
		if err := c.outer.join(nil); err != nil {
			return nil, err
		}
		if l.store.SharesRedis(outer.lease.locker.store) {
			c.enter = outer.lease.redisToken
		}
	}
	if !l.enter() {
		return nil, closed("taking", key)
	}
	defer l.underWay.End()
	l.clocks.compare(&l.requests)
	if ctx.Err() != nil {
		return nil, gaveUp(ctx, key)
	}
	if s.Wait == nil || *s.Wait > 0 {
		if i := c.inner(); i != nil {
			return i.take()
		}
	}
	return c.take()
}

// call is one that wants a lock.
type call struct {
	locker   *Locker
	ctx      context.Context
	key      string
	name     store.Name
	settings *settings
	owner    string // empty: a new one for each attempt
	enter    int64  // token of the lock to enter; 0: a free one will do
	outer    *lease // of another Locker, which the context holds already
}

// claim is what the call asks Redis for, waiting by a position unless that is nil.
func (c *call) claim(p *position) *store.Claim {
	l, s := c.locker, c.settings
	claim := &store.Claim{Name: c.name, Lease: s.Lease, Fixed: s.Fixed, Window: s.KeepFor, Enter: c.enter}
	if p != nil {
		claim.Hold, claim.Resends, claim.Wait = p.hold, &p.resends, l.waiting(p, c.name)
	} else {
		claim.Hold, claim.Resends = l.store.NewHold(), new(conn.Resends)
	}
	claim.Owner = c.ownerOf(claim.Hold)
	return claim
}

// ownerOf is the owner of a hold of the call: the one that it has chosen, if any.
func (c *call) ownerOf(hold string) string {
	return cmp.Or(c.owner, c.settings.OwnerBegin+hold)
}

// isPlain says that the owner is the one that a hold brings along.
func (c *call) isPlain() bool { return c.owner == "" && c.settings.OwnerBegin == "" }

// reenter adds a hold to a lock that the context holds. It joins the lease first, so
// that the outer handle's release does not stop the renewal meanwhile.
func (c *call) reenter(outer *Lock) (*Lock, error) {
	l, lease := c.locker, outer.lease
	c.owner, c.enter = lease.owner, lease.redisToken
	claim := c.claim(nil)
	k := newLock(c.ctx, lease, c.key, claim.Hold, claim.Resends)
	k.reentry = true
	if err := lease.join(k); err != nil {
		k.cancel(err)
		return nil, err
	}
	granted, err := l.store.Acquire(c.ctx, claim)
	if err == nil {
		lease.mu.Lock()
		if !lease.fixed {
			lease.extend(granted.Sent, min(granted.Lease, lease.length))
			lease.schedule()
		}
		lease.mu.Unlock()
		if err = lease.check(); err == nil {
			l.decided(claim, k)
			return k, nil
		}
		l.store.Withdraw(claim, lease.length)
	} else if isElsewhere(err) {
		err = lease.vanished()
	} else if gone := lease.check(); gone != nil {
		err = gone
	}
	l.decided(claim, nil)
	_, _ = lease.leave(k)
	lease.retire(true, nil)
	k.cancel(err)
	return nil, c.failed(err)
}

// isElsewhere says that the lock to enter is not there any more, or somebody else's.
func isElsewhere(err error) bool {
	var busy *store.Busy
	return errors.Is(err, store.ErrGone) || errors.As(err, &busy)
}

// try asks Redis once. It returns a lock, or who is in the way, or an error.
func (c *call) try(p *position) (*Lock, *store.Busy, error) {
	l, claim := c.locker, c.claim(p)
	was := p != nil && p.queued.Swap(true)
	granted, err := l.store.Acquire(c.ctx, claim)
	if err == nil {
		k, err := c.accept(claim, granted)
		p.took(l, claim, granted)
		l.decided(claim, k)
		if err != nil {
			p.spend(c, was)
		}
		return k, nil, err
	}
	l.decided(claim, nil)
	if busy := (*store.Busy)(nil); errors.As(err, &busy) {
		p.busy(c, was, busy)
		return nil, busy, nil
	}
	p.failed(c, was, err)
	if errors.Is(err, store.ErrGone) {
		err = lost(c.key, "it was deleted, or somebody else has taken it", nil)
	}
	return nil, nil, c.failed(err)
}

// decided tells members of a quorum that grant a claim late what became of it: a lock, or
// nothing.
func (l *Locker) decided(claim *store.Claim, k *Lock) {
	var held func() bool
	if k != nil && l.store.Can.Differ { // it costs memory
		held = k.held
	}
	l.store.Decided(claim, held)
}

// failed gives an error its kind.
func (c *call) failed(err error) error {
	ctx := c.ctx
	var failure *conn.Failure
	switch {
	case !errors.As(err, &failure): // it has one; a context's cause may be of any kind
		return err
	case errors.Is(ctx.Err(), context.Canceled), ctx.Err() != nil && errors.Is(err, ctx.Err()) && !c.locker.store.IsSilent(c.locker.timeout):
		return gaveUp(ctx, c.key)
	default:
		return unavailable("taking", c.key, err)
	}
}

// errLateGrant is why a lock that Redis granted is given back.
var errLateGrant = errors.New("the answer took longer than the lease")

// accept turns what Redis granted into a lock, unless it comes too late.
func (c *call) accept(claim *store.Claim, g store.Grant) (*Lock, error) {
	l := c.locker
	a := acquisition{owner: claim.Owner, redisToken: g.Token, length: g.Lease, fixed: g.Fixed, ahead: g.Ahead}
	// A fixed lease that was entered from elsewhere has run for a while.
	k := c.open(a, l.timesOf(g.Sent, min(g.Lease, g.TTL)), g.Token, claim.Hold, claim.Resends)
	s := k.lease
	s.shared.Store(!c.isPlain())
	switch outer := c.outer; {
	case g.Outermost:
		s.keepFor = c.settings.KeepFor
	case outer != nil:
		s.keepFor, s.maxHoldAt = outer.keepFor, outer.maxHoldAt
		if g.Token == outer.redisToken {
			s.token = outer.token // passed on, it has one that Redis does not know
		}
	}

	var err error
	switch {
	case c.ctx.Err() != nil:
		err = gaveUp(c.ctx, c.key)
	case s.since >= s.times.deadline:
		err = unavailable("taking", c.key, fmt.Errorf("%w of %v", errLateGrant, s.length))
	case !l.register(s):
		err = closed("taking", c.key)
	}
	if err != nil {
		k.cancel(err)
		l.store.Withdraw(claim, s.length)
		return nil, err
	}
	return k, nil
}
