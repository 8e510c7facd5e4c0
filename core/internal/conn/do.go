package conn

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// The pauses between copies of a command grow by so much.
	repeatDelay    = 250 * time.Microsecond
	repeatDelayMax = 20 * time.Millisecond
	// A server that refuses for a while is asked after repeatDelayMax, and then after so many times as long each time.
	refusedGrowth = 4
)

// repeats says when the next copy of a command goes.
type repeats struct {
	pause time.Duration
	stale int // connections of the pool that may be dead, and one; negative: they were not counted yet
}

func newRepeats() repeats { return repeats{repeatDelay, -1} }

// after says whether an error is worth another copy, by a client, and how long to wait before.
//
// A connection may have been closed behind the pool's back: by Redis after a time of idleness, by a balancer, in a
// restart. Or it leads to a replica by now. The first command on it finds out, and cannot tell whether Redis has seen it.
// All idle connections may be such, so that many copies go at once, and one more by a new one.
func (r *repeats) after(err error, client redis.UniversalClient) (wait time.Duration, again bool) {
	broken := isBroken(err)
	if wait = r.pause; broken || redis.IsReadOnlyError(err) { // go-redis closes the connection after either
		if r.stale < 0 {
			r.stale = idle(client) + 1
		}
		if r.stale > 0 {
			r.stale--
			return 0, true
		}
	}
	switch {
	case broken, hasPrefix(err, "TRYAGAIN"):
		r.pause = min(wait+repeatDelay, repeatDelayMax)
	case Passes(err):
		r.pause = max(refusedGrowth*wait, repeatDelayMax)
	default:
		return 0, false
	}
	return wait, true
}

// idle is how many connections of its pool a client has that are not in use. That of a cluster would look for the nodes
// first, without a deadline.
func idle(client redis.UniversalClient) int {
	if single, ok := client.(*redis.Client); ok {
		return int(single.PoolStats().IdleConns)
	}
	return 0
}

// Resends permits a command to be sent again. One belongs to one command, which may go to several Servers.
type Resends struct{ twice atomic.Bool }

// MayArriveTwice reports whether a copy may have arrived, or may yet, beside the one that was answered. Of
// nil it is false.
func (c *Resends) MayArriveTwice() bool { return c != nil && c.twice.Load() }

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
// its connection breaks and when what refused it [Passes], and once more when it did not leave at all. The
// error is a [*Failure].
func (s *Server) Do(ctx context.Context, c *Command, timeout time.Duration) (Reply, error) {
	ds, sent, end := s.first(ctx, timeout, c)
	return s.follow(ctx, ds, sent, end)
}

// DoAll is Do for several commands, and has done with each one: in their order, as soon as all have been
// answered. Those to one server share a round trip, and a command where their script merges.
func (s *Server) DoAll(ctx context.Context, cs []*Command, timeout time.Duration, done func(i int, r Reply, err error)) {
	ds, sent, end := s.first(ctx, timeout, cs...)
	for i := range ds {
		r, err := s.follow(ctx, ds[i:i+1], sent, end)
		done(i, r, err)
	}
}

// first sends the first copies, unless ctx has ended.
func (s *Server) first(ctx context.Context, timeout time.Duration, cs ...*Command) (ds []dispatch, sent, end time.Time) {
	var a *attempt
	if len(cs) == 1 {
		lone := new(struct { // one allocation for both
			ds [1]dispatch
			attempt
		})
		ds, a = lone.ds[:], &lone.attempt
	} else {
		ds, a = make([]dispatch, len(cs)), new(attempt)
	}
	sent = time.Now()
	end = sent.Add(timeout)
	ended := ctx.Err() != nil || len(cs) == 0
	for i, c := range cs {
		d := &ds[i]
		d.queued = Queued{Command: c, To: d}
		if ended {
			d.answer, d.over = answer{err: Ended(ctx)}, true
		}
	}
	if !ended {
		s.try(ctx, ds, a, sent, end)
	}
	return ds, sent, end
}

// follow takes the answer to the first copy of one command, which was sent at a time, and sends others until
// it is done, or may not be sent again.
func (s *Server) follow(ctx context.Context, one []dispatch, sent, end time.Time) (Reply, error) {
	d := &one[0]
	resends := d.queued.Command.Resends
	next, retried := newRepeats(), false
	for d.answer.err != nil && !d.over && resends != nil {
		refused, written := d.refused(), d.departed()
		wait, again := next.after(d.answer.err, s.ClientFor(d.queued.Command.key()))
		if !again && (refused || retried || written) || time.Until(end) <= wait {
			break
		}
		retried = retried || !again
		if wait > 0 && Pause(ctx, wait) != nil {
			d.answer, d.over = answer{err: Ended(ctx)}, true
			break
		}
		if d.again(refused) {
			resends.Copied()
		}
		sent = time.Now()
		s.try(ctx, one, new(attempt), sent, end)
	}
	return d.conclude(sent)
}

// try sends a copy of each command and waits for the answers.
func (s *Server) try(ctx context.Context, ds []dispatch, a *attempt, sent, end time.Time) {
	a.caller, a.deadline = ctx, end
	for i := range ds {
		ds[i].attempt = a
	}
	s.silence.ask(sent, s.config.Timeout)
	if err, over := s.locate(ctx, end.Sub(sent)); err != nil {
		for i := range ds {
			ds[i].answer, ds[i].over = answer{err: err}, over
		}
		return
	}
	if len(ds) == 1 {
		p := s.pipelineFor(ds[0].queued.Command)
		ds[0].pipeline = p
		if p.direct.Load() && (ctx.Done() == nil || s.silence.answers(sent)) && p.enter() {
			ds[0].answer = p.sendDirectly(ctx, &ds[0], sent, end)
			return
		}
	}
	left := time.Until(end)
	t := s.ticketFor(len(ds), nil, left)
	for i := range ds {
		d := &ds[i]
		d.ticket, d.queued.Timeout, d.over = t, left, true
	}
	if len(ds) == 1 {
		ds[0].pipeline.add(&ds[0].queued)
	} else {
		qs := make([]*Queued, len(ds))
		for i := range ds {
			qs[i] = &ds[i].queued
		}
		for p, qs := range s.together(qs) {
			for _, q := range qs {
				q.dispatch().pipeline = p
			}
			p.add(qs...)
		}
	}
	s.await(ctx, t, ds, end)
}

// process sends the present copy by itself: a script by its digest, and whole where Redis has not seen it.
func (d *dispatch) process(client redis.UniversalClient) (any, error) {
	a, c, cmd := d.attempt, d.queued.Command, new(once)
	cmd.set(a, c.Script, false, d, c.line(cmd.room[:]))
	if isUnknownScript(client.Process(a, cmd)) {
		cmd = new(once)
		cmd.set(a, c.Script, true, d, c.line(cmd.room[:]))
		_ = client.Process(a, cmd)
	}
	return c.named(cmd.answer())
}
