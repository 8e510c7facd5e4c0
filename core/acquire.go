package core

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// tokenLife is how long the last fencing token outlives its acquisition. Clocks
// of Redis servers may differ by less than that.
const tokenLife = 10 * time.Minute

// Lock takes the lock of key, or enters it once more when ctx holds it already.
// It waits until the lock is free, ctx is done, or [Wait] is over; waiting calls
// of one Locker are served in order, and so are the processes they wait in. The lock is renewed until it is unlocked,
// also when ctx is cancelled meanwhile.
//
// A busy lock is refused with [*BusyError], which is [ErrNotAcquired]; when ctx
// ended first the error is [ErrNotAcquired] and the context's. [ErrUnavailable]:
// Redis did not answer within [Timeout], in which a call whose connection breaks is sent
// again, or answered with an error; a call that was waiting already endures up to 5 s
// of that. A deadline of ctx that is shorter is told as such, unless Redis has not
// answered anybody for Timeout. [ErrLost]: ctx held the lock and
// has lost it; [ErrMaxHold]: ctx has held it for too long. [ErrClosed],
// [ErrInvalidKey]. Whatever the error, nothing stays
// locked: an outcome that is unknown is settled in the background.
func (l *Locker) Lock(ctx context.Context, key string, opts ...Option) (*Lock, error) {
	s, err := l.defaults.with(opts)
	if err != nil {
		return nil, err
	}
	return l.obtain(ctx, key, s)
}

// TryLock is [Locker.Lock] that never waits for a busy lock, nor takes one that has
// just become free for a process that waits. It blocks for one exchange with Redis, at
// most for [Timeout].
func (l *Locker) TryLock(ctx context.Context, key string, opts ...Option) (*Lock, error) {
	s, err := l.defaults.with(append(opts[:len(opts):len(opts)], NoWait()))
	if err != nil {
		return nil, err
	}
	return l.obtain(ctx, key, s)
}

func (l *Locker) acquire(ctx context.Context, key string, s *settings) (*Lock, error) {
	n, err := l.names(key)
	if err != nil {
		return nil, err
	}
	r := &request{locker: l, key: key, names: n, settings: s, owner: s.owner}
	outer := holder(ctx, n.lock)
	if outer != nil && (s.owner == "" || s.owner == outer.Owner()) {
		if err := outer.lease.usable(); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, gaveUp(ctx, key)
		}
		if outer.lease.locker == l {
			return r.reenter(ctx, outer)
		}
		// Another Locker holds it for this context. If that one uses this Redis,
		// then the very lock it holds must still be there.
		r.owner = outer.Owner()
		r.outer = outer.lease
		if l.sharesRedis(outer.lease.locker) {
			r.token = outer.lease.token
		}
	}
	if !l.enter() {
		return nil, closed("taking", key)
	}
	defer l.exit()
	if ctx.Err() != nil {
		return nil, gaveUp(ctx, key)
	}
	return r.take(ctx)
}

// request is one call that wants a lock.
type request struct {
	locker   *Locker
	key      string
	names    names
	settings *settings
	owner    string // empty: a new one for each attempt
	token    string // of the lock to enter; empty: a free one will do
	queues   bool   // stands in the line of processes when the lock is busy
	outer    *lease // of another Locker, which the context holds already

	repetition *repetition // of the last attempt
}

// busy is the answer of Redis when somebody else holds the lock.
type busy struct {
	until time.Time // zero: it has no end
	exact bool      // nothing will postpone it
	aside bool      // messages do not reach this process, as far as Redis knows
	split bool      // some members of a quorum granted it: contenders block each other
}

// reenter adds a hold to a lock that ctx holds. It joins the lease first, so
// that the outer handle's release does not stop the renewal meanwhile.
func (r *request) reenter(ctx context.Context, outer *Lock) (*Lock, error) {
	lease := outer.lease
	hold := r.locker.nextHold()
	k := newLock(ctx, lease, r.key, hold)
	r.repetition = new(repetition)
	k.copies = r.repetition
	if err := lease.join(k); err != nil {
		k.cancel(err)
		return nil, err
	}
	r.owner, r.token = lease.owner, lease.token
	var taken *Lock
	claim := r.locker.newClaim()
	defer func() { claim.resolve(taken) }()
	values, sent, err := r.send(ctx, r.owner, hold, claim)
	if err == nil && number(values[0]) == 1 {
		lease.mu.Lock()
		if !lease.fixed {
			lease.extend(sent, lease.length)
			lease.schedule()
		}
		lease.mu.Unlock()
		if err = lease.check(); err == nil {
			taken = k
			return k, nil
		}
		r.locker.withdraw(r.locker.backend.members(), r.names, r.owner, hold, lease.length)
	} else if err == nil {
		err = lease.vanished()
	}
	_ = lease.leave(k)
	lease.settleUp(true)
	k.cancel(err)
	return nil, r.failed(ctx, err)
}

// try asks Redis once. It returns a lock, or who is in the way, or an error.
func (r *request) try(ctx context.Context) (*Lock, *busy, error) {
	l := r.locker
	hold := l.nextHold()
	owner := r.owner
	if owner == "" {
		owner = hold[len(holdField):]
	}
	r.repetition = new(repetition)
	var taken *Lock
	claim := l.newClaim()
	defer func() { claim.resolve(taken) }()
	values, sent, err := r.send(ctx, owner, hold, claim)
	if err != nil {
		return nil, nil, r.failed(ctx, err)
	}
	switch number(values[0]) {
	case 1:
		taken, err = r.granted(ctx, values, owner, hold, sent)
		return taken, nil, err
	case 2:
		b := &busy{
			exact: number(values[2]) == 1,
			split: len(values) > 3 && number(values[3]) == 1,
			aside: len(values) > 4 && number(values[4]) == 1,
		}
		if ttl := milliseconds(values[1]); ttl >= 0 {
			b.until = time.Now().Add(ttl)
		}
		return nil, b, nil
	default:
		return nil, nil, lost(r.key, "it was deleted, or somebody else has taken it", nil)
	}
}

// send runs the acquisition. One whose outcome is unknown in the end is withdrawn.
func (r *request) send(ctx context.Context, owner, hold string, claim *claim) (values []any, sent time.Time, err error) {
	l, s := r.locker, r.settings
	c := r.acquireCall(owner, hold, r.queues, nil)
	undo := func(n *node) { l.withdraw([]*node{n}, r.names, owner, hold, s.lease) }
	about := strays{undo: undo}
	if claim != nil {
		about.late = func(n *node, token string) {
			if k := claim.wait(); k == nil || k.released() {
				undo(n)
			} else if token != k.lease.token {
				n.outbox.add(&delivery{
					call:    writeTokenCall(c, k.lease.token),
					timeout: l.timeout, // a member less, if it fails
				})
				n.outbox.flush()
			}
		}
	}
	c.again = r.repetition
	sent = time.Now()
	values, err = l.backend.ask(ctx, c, l.timeout, about)
	if last := r.repetition.last.Load(); last != 0 && len(l.backend.members()) == 1 {
		sent = moment(last).time() // what it says about the lease was true after that
	}
	return values, sent, err
}

// acquireCall takes the lock, from a holder of this process unless nil. queues says
// that this process stands in line, or is to when the lock is busy.
func (r *request) acquireCall(owner, hold string, queues bool, from *Lock) *call {
	s := r.settings
	c := acquireScript.call(4, r.names.lock, r.names.token(), r.names.tombstone(hold), r.names.line(),
		tokenKept, r.locker.self, owner, hold, s.leaseArg(), s.keepForArg(), r.token, flag(queues))
	if from != nil {
		c.words = append(c.words, from.lease.owner, from.hold)
	}
	return c
}

// claim tells members of a quorum that grant a lock late what became of it.
type claim struct {
	resolved chan struct{}
	lock     *Lock
}

// newClaim returns nil where there is no quorum.
func (l *Locker) newClaim() *claim {
	if len(l.backend.members()) == 1 {
		return nil
	}
	return &claim{resolved: make(chan struct{})}
}

// resolve says what has become of the acquisition: a lock, or nil.
func (c *claim) resolve(k *Lock) {
	if c != nil {
		c.lock = k
		close(c.resolved)
	}
}

// wait returns the lock when it is handed out, or nil when it will not be.
func (c *claim) wait() *Lock {
	<-c.resolved
	return c.lock
}

// failed gives an error of send its kind.
func (r *request) failed(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, ErrLost), errors.Is(err, ErrClosed):
		return err
	case errors.Is(ctx.Err(), context.Canceled), ctx.Err() != nil && errors.Is(err, ctx.Err()) && !r.locker.isSilent():
		return gaveUp(ctx, r.key)
	default:
		return unavailable("taking", r.key, err)
	}
}

// errLateGrant is why a lock that Redis granted is given back.
var errLateGrant = errors.New("the answer took longer than the lease")

// granted turns the answer of Redis into a lock, unless it comes too late.
func (r *request) granted(ctx context.Context, values []any, owner, hold string, sent time.Time) (*Lock, error) {
	l := r.locker
	length, ttl := milliseconds(values[2]), milliseconds(values[3])
	s := &lease{
		locker: l,
		lock:   r.names.lock,
		key:    r.key,
		owner:  owner,
		token:  text(values[1]),
		length: max(length, -length),
		fixed:  length < 0,
	}
	// A fixed lease that was entered from elsewhere has run for a while.
	s.extend(sent, min(s.length, ttl))
	s.since = thisMoment()
	outermost := number(values[4]) == 1
	switch m := r.settings.maxHold; {
	case !outermost && r.outer != nil:
		s.keepFor, s.maxHoldAt = r.outer.keepFor, r.outer.maxHoldAt
	case m > 0:
		s.maxHoldAt = momentOf(sent.Add(m))
	}
	if outermost {
		s.keepFor = r.settings.keepFor
	}
	k := newLock(ctx, s, r.key, hold)
	k.copies = r.repetition
	s.handles = append(s.first[:0], k)

	var err error
	switch {
	case ctx.Err() != nil:
		err = gaveUp(ctx, r.key)
	case s.since >= s.deadline:
		err = unavailable("taking", r.key, fmt.Errorf("%w of %v", errLateGrant, s.length))
	case !l.register(s):
		err = closed("taking", r.key)
	}
	if err != nil {
		k.cancel(err)
		l.withdraw(l.backend.members(), r.names, owner, hold, s.length)
		return nil, err
	}
	s.mu.Lock()
	s.schedule()
	s.mu.Unlock()
	return k, nil
}
