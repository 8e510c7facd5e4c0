package core

import (
	"context"
	"time"
)

// A holder that unlocks while another call of its process waits hands the lock
// over: one script releases the one hold and takes the other, instead of two that
// every process competes for between them. It does so for these at most in a row;
// then the lock is free for all.
const (
	handoversMax    = 32
	handoverTimeMax = 10 * time.Millisecond
)

// offer chooses the call that is to get the lock next, if one waits and it is not
// the others' turn. The call then waits for handed. inLine: the process stands in
// line for the lock.
func (ls *lines) offer(lock string) (w *waiter, inLine bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln := ls.find(lock, "")
	if ln == nil || ln.members.Len() == 0 {
		return nil, false
	}
	w = ln.members.Front().Value.(*waiter)
	if !w.parked || w.gone || ln.handovers >= handoversMax || thisMoment() > ln.ours.add(handoverTimeMax) {
		return nil, false
	}
	ln.handovers++
	w.parked, w.offered = false, true
	return w, ls.inLine(lock)
}

// park says that the head waits and can be offered the lock.
func (ln *line) park(w *waiter) {
	ln.lines.mu.Lock()
	defer ln.lines.mu.Unlock()
	w.park()
}

func (w *waiter) park() {
	w.parked = true
	if w.gift == nil {
		w.gift = make(chan *Lock, 1)
	}
}

// unpark ends that. It returns a lock that has arrived, or says that one is on
// its way.
func (ln *line) unpark(w *waiter) (k *Lock, offered bool) {
	ln.lines.mu.Lock()
	defer ln.lines.mu.Unlock()
	w.parked = false
	select {
	case k = <-w.gift:
	default:
	}
	return k, w.offered
}

// handed ends an offer: with a lock, or with nil when it came to nothing. It is
// false when the call has gone meanwhile.
func (w *waiter) handed(k *Lock) bool {
	w.line.lines.mu.Lock()
	defer w.line.lines.mu.Unlock()
	if w.gone {
		return false
	}
	w.offered = false
	w.gift <- k
	return true
}

// refuse says that the call does not want the lock any more. It returns one that
// was handed over just now.
func (w *waiter) refuse() *Lock {
	w.line.lines.mu.Lock()
	defer w.line.lines.mu.Unlock()
	w.gone = true
	select {
	case k := <-w.gift:
		return k
	default:
		return nil
	}
}

// handOver gives the lock to the next call of this process. It is false when the
// lock has to be released; unknown says that it may have been already.
func (k *Lock) handOver(ctx context.Context, failed bool) (done, unknown bool) {
	s := k.lease
	l := s.locker
	s.mu.Lock()
	last := len(s.handles) == 0
	s.mu.Unlock()
	if !l.handsOver || !last || k.doubled() || s.keepFor > 0 && !failed {
		return false, false
	}
	w, inLine := l.lines.offer(s.lock)
	if w == nil {
		return false, false
	}
	r, hold := w.request, l.nextHold()
	owner := hold[len(holdField):]
	undo := func(n *node) { l.withdraw([]*node{n}, r.names, owner, hold, r.settings.lease) }
	sent := time.Now()
	// If it takes long, there must be time for a release.
	values, err := l.backend.ask(ctx, r.acquireCall(owner, hold, inLine, k), l.timeout/2, strays{undo: undo})
	switch {
	case err != nil:
		w.handed(nil)
		_, unsent := err.(*unsentError)
		return false, !unsent && !isRefusal(err)
	case number(values[0]) == 1:
		next, err := r.granted(w.ctx, values, owner, hold, sent)
		if err != nil {
			next = nil // it has been withdrawn
		}
		if !w.handed(next) && next != nil {
			next.drop()
		}
		return true, false
	default: // it is gone, or shared by others: that is for the release to find out
		w.handed(nil)
		return false, false
	}
}

// drop releases a lock that nobody wants, in the background.
func (k *Lock) drop() {
	if k.lease.leave(k) == nil {
		k.cancel(nil)
		k.lease.giveBack([]*Lock{k})
	}
	k.lease.settleUp(true)
}
