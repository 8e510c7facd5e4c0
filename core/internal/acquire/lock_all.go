package acquire

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

const (
	// keepAtLeast is the least for which a call keeps locks while it waits: many times what others need to ask for some.
	keepAtLeast = 100 * time.Millisecond
	// A call asks again for all of its locks or none for so long, after random times below these, doubling.
	askAgainFor      = 300 * time.Millisecond
	askAgainDelay    = time.Millisecond
	askAgainDelayMax = 16 * time.Millisecond
	// maxAsking is how many calls of a Locker do so at a time.
	maxAsking = 32
)

// LockAll takes the locks of all keys, or none.
func (a *Acquirer) LockAll(ctx context.Context, keys []string, s *option.Settings) (Several, error) {
	base, cancel := context.WithCancelCause(ctx)
	m := &multiRequest{acquirer: a, caller: ctx, settings: s, group: &lease.Group{Base: base, Cancel: cancel, Began: time.Now()}}
	err := m.prepare(keys)
	if err == nil {
		err = m.takeAll()
	}
	if err != nil {
		m.giveBack(m.locks)
		schedule.IsDone(ctx, m.beingReleased.None())
		cancel(nil)
		return Several{}, err
	}
	return Several{Handles: m.locks, acquirer: a, cancel: cancel}, nil
}

// takeAll enters the locks that the context holds, and takes the others. While one of these is busy, the call does the first of the
// following that it may:
//
//   - It asks again, for all or none (askUntilItMustWait). Most calls that wait in the queue of one lock would find another one busy
//     then. It may for a while (leftToAskAgain).
//   - It waits in the queue of the busy lock and holds no other (waitFor): it would do nothing with them, and others need them. Then it
//     asks for them. It may as many times as there are locks.
//   - It keeps some locks while it waits (holdsWhileWaiting), for it might never find all of them free.
func (m *multiRequest) takeAll() error {
	if err := m.enterHeld(); err != nil || len(m.calls) == 0 {
		return err
	}
	if !m.acquirer.Admit() {
		return m.fail(m.calls[0], m.acquirer.errors.Closed("taking", m.calls[0].name.Key()))
	}
	defer m.acquirer.UnderWay.End()
	for together := range slices.Chunk(m.calls, maxTogether) {
		m.calls, m.waits = together, 0
		if err := m.takeTogether(); err != nil {
			return err
		}
		m.kept = len(m.locks)
	}
	return nil
}

// takeTogether takes the locks of some calls, which follow one another.
func (m *multiRequest) takeTogether() error {
	for {
		busy, err := m.askUntilItMustWait()
		if busy == nil || err != nil {
			return err
		}
		if err = m.waitFor(busy); err != nil {
			return err
		}
	}
}

// enterHeld enters the locks that the context holds, and leaves the calls for the others.
func (m *multiRequest) enterHeld() error {
	others := m.calls[:0]
	for _, c := range m.calls {
		c.ctx = m.under()
		h, err := c.reenterHeld()
		switch {
		case err != nil:
			return m.fail(c, err)
		case h == nil:
			others = append(others, c)
		default:
			m.observeTaken(h)
			m.locks = append(m.locks, h)
		}
	}
	m.calls, m.kept = others, len(m.locks)
	return nil
}

// holdsWhileWaiting says that the call keeps, while a lock is busy, those that sort before it. All calls wait in that order, so none
// waits for another one in a circle; where they give one key different permits, waitFor ends that.
func (m *multiRequest) holdsWhileWaiting() bool { return m.waits >= len(m.calls) }

// comesAfter says that the call sorts after a lock that was taken: of permits come first those of which there are fewer, for others can
// do better without them.
func (c *request) comesAfter(h *lease.Handle) bool {
	return cmp.Or(cmp.Compare(h.Acquired().Form.Permits(), c.form.Permits()), cmp.Compare(h.Acquired().Name.Lock(), c.name.Lock())) < 0
}

// askUntilItMustWait asks for the locks that are missing, and asks again as long as it may. It returns a busy one, for which the call has
// to wait, or nil: it has all.
func (m *multiRequest) askUntilItMustWait() (busy *request, err error) {
	for busy, err = m.askForMissing(); err == store.ErrWithheld; busy, err = m.askForMissing() {
		if wait := m.settings.Wait; wait != nil && m.group.Waited()-m.acquirer.Timeout >= *wait { // connections break again and again
			err = m.acquirer.errors.Unavailable("taking", busy.name.Key(), conn.ErrNoAnswer)
			break
		}
		m.acquirer.asking.Add(1)
		m.pauseBelow = min(2*m.pauseBelow+askAgainDelay, askAgainDelayMax)
		_ = conn.Pause(m.group.Base, min(rand.N(m.pauseBelow), max(m.leftToAskAgain(), askAgainDelay))) // never without a pause
		m.acquirer.asking.Add(-1)
	}
	if err != nil {
		return nil, m.fail(busy, err)
	}
	return busy, nil
}

// leftToAskAgain is for how long the call still asks again. MaxWaiters does not count calls that do so: under a small one none does. Nor
// does a call under other locks, which it keeps from others meanwhile.
func (m *multiRequest) leftToAskAgain() time.Duration {
	if waiters := m.settings.MaxWaiters; m.underLocks || waiters != nil && *waiters < maxAsking {
		return 0
	}
	most := askAgainFor
	if wait := m.settings.Wait; wait != nil {
		most = min(most, *wait)
	}
	return most - m.group.Waited()
}

// askForMissing asks for the locks that are missing, unless one goes alone. It returns the first one that the call has not got, or nil, and
// an error if the call does not wait for it. What the call does not keep meanwhile it gives back.
func (m *multiRequest) askForMissing() (first *request, err error) {
	had := len(m.taken())
	missing := make([]*request, 0, len(m.calls))
	for _, c := range m.calls {
		if !m.has(c) && !m.reclaims(c) {
			missing = append(missing, c)
		}
	}
	if len(missing) == 0 {
		// it has all
	} else if first = missing[0]; m.under().Err() != nil {
		first.ctx = m.under()
		err = first.gaveUp()
	} else if m.acquirer.IsClosing() {
		err = m.acquirer.errors.Closed("waiting for", first.name.Key())
	} else if first = m.goesAlone(missing); first == nil {
		first, err = m.askRedis(missing)
	}
	kept, spare := m.locks[:m.kept], []*lease.Handle(nil)
	for i, h := range m.taken() {
		if first != nil && !(m.holdsWhileWaiting() && first.comesAfter(h)) {
			spare = append(spare, h)
			continue
		}
		if kept = append(kept, h); i >= had {
			m.observeTaken(h)
		}
	}
	m.locks = kept
	m.giveBack(spare)
	return first, err
}

// goesAlone returns a call to wait for before Redis is asked for several locks, if there is one: the process is giving up its lock, or
// others of the process wait for it; or it is the last one, and nothing is to be given back while it waits.
func (m *multiRequest) goesAlone(missing []*request) *request {
	isLast := len(missing) == 1 && (m.holdsWhileWaiting() || len(m.taken()) == 0)
	for _, c := range missing {
		if !c.settings.Waits() && c.acquirer.pending.of(c.name.Lock()).releases > 0 {
			return c
		}
		if _, queued := c.acquirer.queues.WaitFor(c.name.Lock()); c.settings.Waits() && (isLast || queued && !m.holdsWhileWaiting()) {
			return c
		}
	}
	return nil
}

// askRedis asks Redis for several locks together, for all or none if the call may ask again. It returns what askForMissing does.
func (m *multiRequest) askRedis(missing []*request) (first *request, err error) {
	a := m.acquirer
	allOrNone := !m.holdsWhileWaiting() && m.leftToAskAgain() > 0 && a.asking.Load() < maxAsking
	claims, hold := make([]store.Claim, len(missing)), a.Store.NewHold()
	for i, c := range missing {
		claims[i] = c.claim(hold, store.NotWaiting)
	}
	var memory []lease.Memory
	for i, r := range a.Store.AcquireAll(m.under(), claims, allOrNone) {
		c := missing[i]
		c.ctx = m.under()
		if r.Err == nil && len(missing) > 1 {
			if memory == nil {
				memory = make([]lease.Memory, len(missing))
			}
			c.memory = &memory[i]
		}
		h, failure := c.readAnswer(&claims[i], r.Answer, r.Err)
		busy, isBusy := failure.(*store.Busy)
		switch {
		case h != nil:
			m.locks = append(m.locks, h)
		case c.isOuterUnlocked(failure):
			if c.forgetOuter(); first == nil {
				first, err = c, store.ErrWithheld
			}
		case first != nil:
		case isBusy && c.settings.Waits():
			first = c
		case isBusy:
			first, err = c, c.refuse(notWaiting, takenOf(busy))
		default:
			first, err = c, failure
		}
	}
	return first, err
}

// has says that the call has taken that lock.
func (m *multiRequest) has(c *request) bool {
	return slices.ContainsFunc(m.taken(), func(h *lease.Handle) bool { return h.Acquired().Name == c.name })
}

// reclaims takes a lock over that the process is about to release. It is false when there is no such lock.
func (m *multiRequest) reclaims(c *request) bool {
	c.ctx = m.under()
	h := c.reclaimUnsent()
	if h != nil {
		m.locks = append(m.locks, h)
	}
	return h != nil
}

// waitFor waits for a lock and takes it. When that has taken half as long as the call had waited before, it gives back what it keeps, and
// waits on. So it keeps nobody from a lock for the whole of a [Wait], and keeps its locks for longer each time.
func (m *multiRequest) waitFor(c *request) error {
	waiting := *c // a call of its own, for who has found it in a queue may look at it later, when the other has another context
	c = &waiting
	n, kept, gone := m.observe(c), m.taken(), make(chan struct{})
	tooLong := time.AfterFunc(max(m.group.Waited()/2, keepAtLeast), func() {
		m.giveBack(kept)
		close(gone)
	})
	h, err := c.waitCheckingDeadlock()
	if c.isOuterUnlocked(err) {
		c.forgetOuter()
		h, err = c.waitCheckingDeadlock()
	}
	if !tooLong.Stop() {
		<-gone
		m.locks = m.locks[:m.kept]
	}
	if err = m.add(h, err, n); err != nil {
		return err
	}
	schedule.IsDone(m.under(), m.beingReleased.None()) // until then it would find its own locks busy
	m.waits++
	return nil
}
