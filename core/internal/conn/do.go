package conn

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// The pauses between copies of a command grow by so much.
	repeatDelay    = 250 * time.Microsecond
	repeatDelayMax = 20 * time.Millisecond
	// A server that refuses for a while, or a pool that has no connection left, is asked after repeatDelayMax, and then after so
	// many times as long each time.
	refusedGrowth = 4
)

// repeats says when the next copy of a command goes.
type repeats struct {
	pause       time.Duration
	stale       int  // connections of the pool that may be dead, and one; negative: they were not counted yet
	unsentAgain bool // a command that never left was sent once more
	isLast      bool // the pause before the present copy was cut short by the end of the time
}

func newRepeats() repeats { return repeats{pause: repeatDelay, stale: -1} }

// atOnce says whether an error of a client is worth another copy without a pause.
//
// A connection may have been closed behind the pool's back: by Redis after a time of idleness, by a balancer, in a
// restart. Or it leads to a replica by now. The first command on it finds out, and cannot tell whether Redis has seen it.
// All idle connections may be such, so that many copies go at once, and one more by a new one.
func (r *repeats) atOnce(err error, client redis.UniversalClient) bool {
	switch {
	case isBroken(err), redis.IsReadOnlyError(err): // go-redis closes the connection
	case hasPrefix(err, "READONLY"): // and not when a proxy says so, which begins with ERR
		closeIdle(client)
	default:
		return false
	}
	if r.stale < 0 {
		r.stale = idle(client) + 1
	}
	if r.stale == 0 {
		return false
	}
	r.stale--
	return true
}

// after says whether the end of a copy is worth another one, and how long to wait before.
func (r *repeats) after(d *dispatch, client redis.UniversalClient) (wait time.Duration, again bool) {
	err := d.answer.err
	if r.atOnce(err, client) {
		return 0, true
	}
	switch wait = r.pause; {
	case isBroken(err), hasPrefix(err, "TRYAGAIN"):
		r.pause = min(wait+repeatDelay, repeatDelayMax)
	case IsTransient(err), errors.Is(err, redis.ErrPoolExhausted):
		r.pause = max(refusedGrowth*wait, repeatDelayMax)
	case errors.As(err, new(*Overloaded)):
		return 0, false
	default:
		again = !r.unsentAgain && !d.refused() && !d.is(written)
		r.unsentAgain = true
		return 0, again
	}
	return wait, true
}

// Resends permits a command to be sent again. One belongs to one command, which may go to several Servers.
type Resends struct {
	twice      atomic.Bool
	unanswered atomic.Int32
}

// MayArriveTwice reports whether a copy may have arrived, or may yet, beside the one that was answered. Of
// nil it is false.
func (c *Resends) MayArriveTwice() bool { return c.HasCopies() || c != nil && c.unanswered.Load() > 0 }

// HasCopies is MayArriveTwice without the Servers that have not answered yet.
func (c *Resends) HasCopies() bool { return c != nil && c.twice.Load() }

// AddUnanswered counts so many more Servers that have not answered; with less than 0, that many fewer.
func (c *Resends) AddUnanswered(servers int) { c.unanswered.Add(int32(servers)) }

// Copied notes that a copy may arrive twice of a command that did the same.
func (c *Resends) Copied() { c.twice.Store(true) }

// Reply is what a script has returned.
type Reply struct {
	// Value as go-redis gives it, of this one call.
	Value any
	// Sent is a time before the command left this process, or the copy of it that was answered.
	Sent time.Time
}

// Do runs a script and returns its reply. It returns as soon as ctx ends or the timeout is over, although
// go-redis does not interrupt a command in flight. Until then a command that has Resends is sent again when
// its connection breaks and when what refused it [IsTransient], and once more when it did not leave at all. The
// error is a [*Failure].
func (s *Server) Do(ctx context.Context, c *Command, timeout time.Duration) (Reply, error) {
	ds, sent, end := s.sendFirst(ctx, timeout, c)
	return s.resendUntilDone(ctx, ds, sent, end)
}

// DoAll is Do for several commands, and has done with each one: in their order, as soon as all have been
// answered. Those to one server share a round trip, and a command where their script merges.
func (s *Server) DoAll(ctx context.Context, cs []*Command, timeout time.Duration, done func(i int, r Reply, err error)) {
	ds, sent, end := s.sendFirst(ctx, timeout, cs...)
	for i := range ds {
		r, err := s.resendUntilDone(ctx, ds[i:i+1], sent, end)
		done(i, r, err)
	}
}

// sendFirst sends the first copies, unless ctx has ended.
func (s *Server) sendFirst(ctx context.Context, timeout time.Duration, cs ...*Command) (ds []dispatch, sent, end time.Time) {
	sent = time.Now()
	end = sent.Add(timeout)
	ds = make([]dispatch, len(cs))
	for i := range ds {
		ds[i].queued = Queued{Command: cs[i], dispatch: &ds[i]}
	}
	if ctx.Err() == nil && len(cs) > 0 {
		s.sendCopies(ctx, ds, &ds[0].first, sent, end)
	}
	return ds, sent, end
}

// resendUntilDone takes the answer to the first copy of one command, which was sent at a time, and sends others until
// the command is done, or may not be sent again.
func (s *Server) resendUntilDone(ctx context.Context, one []dispatch, sent, end time.Time) (Reply, error) {
	d, next := &one[0], newRepeats()
	resends := d.queued.Command.Resends
	for d.answer.err != nil && d.progress == answered && resends != nil {
		wait, again := next.after(d, s.ClientFor(d.queued.Command.key()))
		if left := time.Until(end); wait >= left { // one more, when some time is left for its answer
			again, wait, next.isLast = again && left > 0 && !next.isLast, left*3/4, true
		}
		if !again {
			break
		}
		if wait > 0 && Pause(ctx, wait) != nil {
			d.answer, d.progress = answer{err: Ended(ctx)}, awaited
			break
		}
		if d.beginCopy() {
			resends.Copied()
		}
		sent = time.Now()
		s.sendCopies(ctx, one, new(sendContext), sent, end)
	}
	if d.progress == notBegun {
		d.answer.err = Ended(ctx)
	}
	return d.conclude(s, sent, end)
}

// sendCopies sends a copy of each command and waits for the answers.
func (s *Server) sendCopies(ctx context.Context, ds []dispatch, c *sendContext, sent, end time.Time) {
	c.caller, c.deadline = ctx, end
	until := sent.Add(end.Sub(sent) / waitPart)
	if leaves, has := ctx.Deadline(); has && leaves.Before(until) {
		until = leaves
	}
	isPrompt := s.silence.ask(sent, s.config.Timeout)
	reached, err := s.awaitTopology(ctx, end.Sub(sent))
	for i := range ds {
		d := &ds[i]
		d.context, d.pipeline, d.until, d.answer, d.progress = c, s.pipelineFor(d.queued.Command), until, answer{err: err}, reached
	}
	if err != nil {
		return
	}
	d, p, isLone := &ds[0], ds[0].pipeline, len(ds) == 1
	if isLone && p.direct.mayGo() && (ctx.Done() == nil || isPrompt) {
		if t, enters := p.tryEnter(sent); enters {
			d.answer = p.sendDirectly(ctx, d, t, end)
			return
		}
	}
	left := time.Until(end)
	slot := s.slotFor(len(ds), nil, left)
	for i := range ds {
		ds[i].slot, ds[i].queued.Timeout = slot, left
	}
	if isLone {
		p.enqueue(&d.queued)
	} else {
		together := map[*pipeline][]*Queued{}
		for i := range ds {
			together[ds[i].pipeline] = append(together[ds[i].pipeline], &ds[i].queued)
		}
		for p, qs := range together {
			p.enqueue(qs...)
		}
	}
	s.await(ctx, slot, ds)
}
