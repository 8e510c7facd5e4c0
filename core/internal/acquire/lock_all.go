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
	m := &multiCall{acquirer: a, caller: ctx, settings: s, group: &lease.Group{Base: base, Cancel: cancel, Began: time.Now()}}
	calls, err := m.prepare(keys)
	if err == nil {
		err = m.takeAll(calls)
	}
	if err != nil {
		m.giveBack(m.locks)
		schedule.Await(ctx, m.beingReleased.None())
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
func (m *multiCall) takeAll(calls []*call) error {
	missing, err := m.enterHeld(calls)
	if err != nil || len(missing) == 0 {
		return err
	}
	if !m.acquirer.Admit() {
		return m.fail(missing[0], m.acquirer.errors.Closed("taking", missing[0].name.Key()))
	}
	defer m.acquirer.UnderWay.End()
	for together := range slices.Chunk(missing, maxTogether) {
		m.together, m.waits = together, 0
		if err := m.takeTogether(); err != nil {
			return err
		}
		m.kept = len(m.locks)
	}
	return nil
}

// takeTogether takes the locks of some calls, which follow one another.
func (m *multiCall) takeTogether() error {
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

// enterHeld enters the locks that the context holds, and returns the calls for the others, in the memory of all.
func (m *multiCall) enterHeld(calls []*call) (others []*call, err error) {
	others = calls[:0]
	for _, c := range calls {
		c.ctx = m.under()
		h, err := c.reenterHeld()
		switch {
		case err != nil:
			return nil, m.fail(c, err)
		case h == nil:
			others = append(others, c)
		default:
			m.observeTaken(h)
			m.locks = append(m.locks, h)
		}
	}
	m.kept = len(m.locks)
	return others, nil
}

// holdsWhileWaiting says that the call keeps, while a lock is busy, those that sort before it. All calls wait in that order, so none
// waits for another one in a circle; where they give one key different permits, waitFor ends that.
func (m *multiCall) holdsWhileWaiting() bool { return m.waits >= len(m.together) }

// comesAfter says that the call sorts after a lock that was taken: of permits come first those of which there are fewer, for others can
// do better without them.
func (c *call) comesAfter(h *lease.Handle) bool {
	return cmp.Or(cmp.Compare(h.Form().Permits(), c.form.Permits()), cmp.Compare(h.Acquired().Name.Lock(), c.name.Lock())) < 0
}

// askUntilItMustWait asks for the locks that are missing, and asks again as long as it may. It returns a busy one, for which the call has
// to wait, or nil: it has all.
func (m *multiCall) askUntilItMustWait() (busy *call, err error) {
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
func (m *multiCall) leftToAskAgain() time.Duration {
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
func (m *multiCall) askForMissing() (first *call, err error) {
	had := len(m.taken())
	missing := make([]*call, 0, len(m.together))
	for _, c := range m.together {
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
func (m *multiCall) goesAlone(missing []*call) *call {
	isLast := len(missing) == 1 && (m.holdsWhileWaiting() || len(m.taken()) == 0)
	for _, c := range missing {
		if !c.settings.Waits() && c.acquirer.pending.of(c.name.Lock()).releases > 0 {
			return c
		}
		if _, queued := c.acquirer.queues.Oldest(c.name.Lock()); c.settings.Waits() && (isLast || queued && !m.holdsWhileWaiting()) {
			return c
		}
	}
	return nil
}

// askRedis asks Redis for several locks together, for all or none if the call may ask again. It returns what askForMissing does.
func (m *multiCall) askRedis(missing []*call) (first *call, err error) {
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
				memory = lease.MemoryForOneOwner(len(missing))
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

// reclaims takes a lock over that the process is about to release. It is false when there is no such lock.
func (m *multiCall) reclaims(c *call) bool {
	c.ctx = m.under()
	h := c.reclaimUnsent()
	if h != nil {
		m.locks = append(m.locks, h)
	}
	return h != nil
}

// waitFor waits for a lock and takes it. When that has taken half as long as the call had waited before, it gives back what it keeps, and
// waits on. So it keeps nobody from a lock for the whole of a [Wait], and keeps its locks for longer each time.
func (m *multiCall) waitFor(c *call) error {
	waiting := *c // a call of its own, for who has found it in a queue may look at it later, when the other has another context
	n, lent, gone := m.observe(&waiting), m.taken(), make(chan struct{})
	tooLong := time.AfterFunc(max(m.group.Waited()/2, keepAtLeast), func() {
		m.giveBack(lent)
		close(gone)
	})
	h, err := waiting.waitCheckingDeadlock()
	if waiting.isOuterUnlocked(err) {
		afresh := waiting
		afresh.forgetOuter()
		h, err = afresh.waitCheckingDeadlock()
	}
	if !tooLong.Stop() {
		<-gone
		m.locks = m.locks[:m.kept]
	}
	if err = m.add(h, err, n); err != nil {
		return err
	}
	schedule.Await(m.under(), m.beingReleased.None()) // until then it would find its own locks busy
	m.waits++
	return nil
}
