package acquire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Several is the locks of a call of LockAll.
type Several struct {
	Handles  []*lease.Handle // as they were taken, each under the context of the one before
	acquirer *Acquirer
	cancel   context.CancelCauseFunc // the contexts of all
}

// Context returns the context that holds them all.
func (s *Several) Context() context.Context { return s.Handles[len(s.Handles)-1].Context() }

// Release ends the holds in reverse order. In the background the error is what
// is known before.
func (s *Several) Release(ctx context.Context, work store.Work, mode option.ReleaseMode) error {
	if !s.earnWindows(lasting(ctx)) {
		work = store.Failed
	}
	all, errs := make([]release, 0, len(s.Handles)), []error(nil)
	for _, h := range slices.Backward(s.Handles) {
		switch left, leaves, err := h.Leave(); {
		case leaves:
			all = append(all, release{acquirer: s.acquirer, Departure: left})
		case err != nil:
			errs, work = append(errs, err), store.Failed
		}
	}
	s.cancel(nil)
	all = slices.DeleteFunc(all, func(r release) bool { return s.acquirer.handOffInMemory(r.Departure) })
	switch {
	case len(all) == 0:
	case mode == option.BackgroundRelease && !slices.ContainsFunc(all, func(r release) bool { return !r.IsAlone() }):
		for _, r := range all {
			r.sendInBackground(work)
		}
	default:
		until := time.Now().Add(s.acquirer.Timeout)
		for together := range slices.Chunk(all, maxTogether) {
			errs = append(errs, endAll(lasting(ctx), together, work, until))
		}
	}
	return errors.Join(errs...)
}

// endAll releases what has left its leases. What is not confirmed by a time goes on in the background.
func endAll(ctx context.Context, all []release, work store.Work, until time.Time) error {
	var errs []error
	releases := make([]*store.Release, len(all))
	for i := range all {
		all[i].prepare(work)
		all[i].over = until
		releases[i] = &all[i].command
	}
	a := all[0].acquirer
	for i, released := range a.Store.ReleaseAll(ctx, releases, time.Until(until)) {
		if err := all[i].Retire(all[i].confirm(ctx, released.Answer, released.Err)); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// earnWindows says that the locks are to leave their dedup windows: it asks Redis whether it has all of them.
func (s *Several) earnWindows(ctx context.Context) bool {
	if len(s.Handles) > 1 && slices.ContainsFunc(s.Handles, func(h *lease.Handle) bool { return h.Acquired().Window > 0 }) {
		var asked sync.WaitGroup
		for _, h := range s.Handles {
			asked.Add(1)
			s.acquirer.workers.Start(func() {
				defer asked.Done()
				_ = h.Refresh(ctx) // a loss is noted in the lease
			})
		}
		asked.Wait()
	}
	return !slices.ContainsFunc(s.Handles, func(h *lease.Handle) bool { return !h.EarnsWindow() })
}

const (
	maxKeys = 10_000
	// maxTogether is how many locks one command takes or frees: Redis does nothing else meanwhile.
	maxTogether = 64
)

// multiCall is a call of LockAll. Each of its locks is under the context of the one before, the first under the Base of the group.
type multiCall struct {
	acquirer      *Acquirer
	caller        context.Context
	settings      *option.Settings
	group         *lease.Group
	underLocks    bool            // the caller's context holds locks
	keys          int             // so many it wants
	together      []*call         // those for the locks that it takes now
	locks         []*lease.Handle // all that it has, as it got them
	kept          int             // the first so many it keeps: the caller's context holds them, too, or they sort before all that are missing
	waits         int             // so many are over, for one lock each
	pauseBelow    time.Duration   // the last pause was shorter
	beingReleased schedule.Count  // releases under way, of locks that the call does not keep
}

// under is the context that holds what the call has.
func (m *multiCall) under() context.Context {
	if n := len(m.locks); n > 0 {
		return m.locks[n-1].Context()
	}
	return m.group.Base
}

// taken are the locks that the call has, and may give back.
func (m *multiCall) taken() []*lease.Handle { return m.locks[m.kept:] }

// prepare makes a call for the lock of each key, in the order in which calls wait for them.
func (m *multiCall) prepare(keys []string) (calls []*call, err error) {
	if len(keys) == 0 {
		return nil, m.acquirer.errors.InvalidKey("LockAll was given no keys")
	}
	if err := m.settings.CheckKeys(len(keys)); err != nil {
		return nil, err
	}
	all := make([]call, len(keys))
	first := &all[0]
	*first = call{acquirer: m.acquirer, group: m.group, spec: spec{ctx: m.group.Base, settings: m.settings}}
	if first.asNestedWait() != nil {
		first.boundWait()
		m.settings, m.underLocks = first.settings, true
	}
	for i, key := range keys {
		n, err := m.acquirer.Name(key)
		if err != nil {
			return nil, err
		}
		all[i] = call{acquirer: m.acquirer, group: m.group, spec: specOf(m.group.Base, n, m.settings.OfKey(i))}
	}
	slices.SortFunc(all, func(x, y call) int { return cmp.Compare(x.name.Lock(), y.name.Lock()) })
	calls = make([]*call, 0, len(all))
	for i := range all {
		if c, before := &all[i], &all[max(i-1, 0)]; i == 0 || c.name != before.name {
			calls = append(calls, c)
		} else if c.form != before.form {
			return nil, fmt.Errorf("core: PermitsEach: one key is there twice, with %d and with %d permits", before.form.Permits(), c.form.Permits())
		}
	}
	if m.keys = len(calls); m.keys > maxKeys {
		return nil, m.acquirer.errors.TooManyKeys(m.keys, maxKeys)
	}
	slices.SortStableFunc(calls, func(x, y *call) int { return cmp.Compare(x.form.Permits(), y.form.Permits()) })
	m.locks = make([]*lease.Handle, 0, m.keys)
	return calls, nil
}

// observe notifies Observers of a lock that the call wants, under the context of what it has.
func (m *multiCall) observe(c *call) (o Observer) {
	c.ctx, o = m.acquirer.observers.Wants(m.under(), c.name.Key(), m.keys, c.settings)
	return o
}

// observeTaken notifies Observers of a lock that the call wanted, and has got at once.
func (m *multiCall) observeTaken(h *lease.Handle) {
	ctx, o := m.acquirer.observers.Wants(h.Context(), h.Acquired().Name.Key(), m.keys, m.settings)
	h.Observe(ctx, o)
}

// add takes what came of a wait: a lock, or an error. It returns the error, or why a lock of the call has ended, if that is the reason.
func (m *multiCall) add(h *lease.Handle, err error, n Observer) error {
	if err != nil && errors.Is(err, context.Canceled) && m.caller.Err() == nil && m.group.Base.Err() != nil {
		err = context.Cause(m.group.Base)
	}
	h, err = concluded(n, h, err)
	if err == nil {
		m.locks = append(m.locks, h)
	}
	return err
}

// fail is add of an error that came without a wait.
func (m *multiCall) fail(c *call, err error) error { return m.add(nil, err, m.observe(c)) }

// has says that the call has taken that lock.
func (m *multiCall) has(c *call) bool {
	return slices.ContainsFunc(m.taken(), func(h *lease.Handle) bool { return h.Acquired().Name == c.name })
}

// giveBack releases locks in the background.
func (m *multiCall) giveBack(locks []*lease.Handle) {
	if len(locks) == 0 {
		return
	}
	s := Several{Handles: slices.Clone(locks), acquirer: m.acquirer, cancel: func(error) {}} // the call may get others in their places
	m.beingReleased.Begin()
	m.acquirer.workers.Start(func() {
		defer m.beingReleased.End()
		_ = s.Release(context.Background(), store.Failed, option.AwaitedRelease) // what is not confirmed is compensated
	})
}
