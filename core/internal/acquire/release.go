package acquire

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/store"
)

// Release ends the hold of a handle. In the background the error is what is known before Redis is asked. A mode is an offer: where
// others depend on when the release is done, it is awaited.
func (a *Acquirer) Release(ctx context.Context, h *lease.Handle, work store.Work, mode option.ReleaseMode) error {
	left, leaves, err := h.Leave()
	if !leaves && err == nil {
		return nil // it was handed over
	}
	h.EndContext()
	if err != nil || a.handOffInMemory(left) {
		return err
	}
	r := release{acquirer: a, Departure: left}
	if mode == option.BackgroundRelease && left.IsAlone() {
		r.sendInBackground(work)
		return nil
	}
	return left.Retire(r.send(lasting(ctx), work))
}

// ReleaseLost releases what Redis has of a hold of which the lease is lost.
func (a *Acquirer) ReleaseLost(ctx context.Context, h *lease.Handle) {
	(&release{acquirer: a, Departure: lease.Departure{Handle: h}}).send(ctx, store.Failed)
}

// MayBeFree has the calls that wait for a lock ask for it.
func (a *Acquirer) MayBeFree(lock string) { a.queues.Signal(lock, 0) }

// lasting is for a release, which goes on when its caller gives up. The values stay, for the
// client's hooks.
func lasting(ctx context.Context) context.Context {
	switch {
	case ctx == nil:
		return context.Background()
	case ctx.Done() == nil:
		return ctx
	default:
		return context.WithoutCancel(ctx)
	}
}

// release is that of a handle that has left, and is not handed off.
type release struct {
	acquirer *Acquirer
	lease.Departure
	command  store.Release // from prepare on
	enqueues *entry        // of calls of this process that go on waiting; nil: none
	over     time.Time     // when it goes on in the background
}

// prepare is called before the release is sent, which is confirmed, or goes on in the background, within Timeout.
func (r *release) prepare(work store.Work) {
	r.command = r.ReleaseCommand(work)
	r.over = time.Now().Add(r.acquirer.Timeout)
	r.command.Until = r.over.Add(r.Acquired().Lease)
	if r.IsLast && r.command.Form.Alone() && r.command.Answer == nil {
		r.enqueues = r.acquirer.entryToEnqueue(r.command.Name)
	}
	if r.enqueues != nil {
		r.command.Enqueues = r.enqueues.Entry
	}
}

// send releases the hold. The release is sent until it is confirmed, or Timeout is over, and goes on in the background then.
func (r *release) send(ctx context.Context, work store.Work) lease.Outcome {
	r.prepare(work)
	released, err := r.acquirer.Store.Release(ctx, r.command, r.acquirer.Timeout)
	return r.confirm(ctx, released, err)
}

// releaseDelay is between a release that has failed and the next one.
const releaseDelay = 20 * time.Millisecond

// confirm takes the answer to the release, and sends it again while there is none.
func (r *release) confirm(ctx context.Context, released store.Released, err error) lease.Outcome {
	a, name := r.acquirer, r.command.Name
	mayBeDone := false // by a copy that was not answered
	for ; err != nil; released, err = a.Store.Release(ctx, r.command, time.Until(r.over)) {
		isRefused := conn.OutcomeOf(err) == conn.Refused && !conn.IsTransient(err) // for good
		if isRefused || time.Until(r.over) <= releaseDelay || conn.Pause(ctx, releaseDelay) != nil {
			a.Store.Compensate(r.command)
			return lease.Outcome{MayBeFree: true, Err: a.errors.Unavailable("releasing", name.Key(), err)}
		}
		mayBeDone = mayBeDone || conn.OutcomeOf(err) == conn.Unknown
	}
	if r.enqueues != nil {
		r.enqueues.releaseAnswered(released.Clock)
	}
	if !released.Found && !mayBeDone {
		return lease.Outcome{MayBeFree: true, NotFound: true}
	}
	if released.Heard > 0 && a.queues.NeedsWatch(name.Lock()) {
		a.listener.Watch(name.Lock(), name.Channel())
		if !a.queues.Watch(name.Lock()) { // the calls have left meanwhile, or one has seen to it
			a.listener.Unwatch(name.Channel())
		}
	}
	// Where several hold the lock no release enqueues an entry: the last to arrive would enqueue one that has the lock by
	// now. The head of such a queue has asked, or is about to.
	isGranted := released.QueueIsNext && (r.enqueues != nil || !r.command.Form.Alone() && a.isNotified(name))
	return lease.Outcome{MayBeFree: !isGranted}
}

// backgroundRelease is a release that nobody waits for. Until it is on its way the next call of this process can have the lock.
type backgroundRelease struct {
	release
	sent *store.BackgroundRelease
	late *time.Timer // when it counts as not answered
}

// sendInBackground begins to release the hold, and does not wait.
func (r release) sendInBackground(work store.Work) {
	b, a := &backgroundRelease{release: r}, r.acquirer
	b.prepare(work)
	if a.Store.IsQuorum() { // its members vote, for which somebody has to wait
		a.pending.begin(b.command.Name.Lock(), b.over, nil)
		a.workers.Start(func() { b.end(a.Store.Release(context.Background(), b.command, a.Timeout)) })
		return
	}
	b.sent = a.Store.NewBackgroundRelease(b.command, b)
	a.pending.begin(b.command.Name.Lock(), b.over, b)
	b.late = time.AfterFunc(a.Timeout, func() { a.workers.Start(func() { b.end(store.Released{}, conn.ErrNoAnswer) }) })
	b.sent.Begin()
}

// withdraw takes it back. It is false when it is on its way.
func (b *backgroundRelease) withdraw() bool {
	if !b.sent.Withdraw() || !b.late.Stop() {
		return false
	}
	if b.enqueues != nil {
		b.enqueues.releaseWithdrawn()
	}
	return true
}

// ReleaseAnswered takes the answer. Without one the release is sent again, by a goroutine of its own.
func (b *backgroundRelease) ReleaseAnswered(released store.Released, err error) {
	switch {
	case !b.late.Stop():
	case err == nil:
		b.end(released, nil)
	default:
		b.acquirer.workers.Start(func() { b.end(released, err) })
	}
}

func (b *backgroundRelease) end(released store.Released, err error) {
	outcome := b.confirm(context.Background(), released, err)
	outcome.Mode = option.BackgroundRelease
	b.acquirer.pending.end(b.command.Name.Lock())
	if err := b.Retire(outcome); err != nil {
		b.acquirer.ReportRelease(b.Context(), err, b.command.Name.Key())
	}
}
