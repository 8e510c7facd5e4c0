package conn

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// A connection may have been closed behind the pool's back: by Redis after a time of
	// idleness, by a balancer, in a restart. The first command on it finds out, and cannot
	// tell whether Redis has seen it. All connections of a pool may be such, so the pauses
	// between copies begin short, and grow by so much.
	repeatDelay = 250 * time.Microsecond
	// migrationDelay is the pause while a slot moves.
	migrationDelay = 20 * time.Millisecond
)

// Resends permits a command to be sent again. One belongs to one command, which may go to
// several Servers.
type Resends struct{ twice atomic.Bool }

// MayArriveTwice reports whether a copy may have arrived, or may yet, beside the one that was
// answered. Of nil it is false.
func (c *Resends) MayArriveTwice() bool { return c != nil && c.twice.Load() }

// Reply is what a script has returned.
type Reply struct {
	// Value as go-redis gives it, of this one call.
	Value any
	// Sent is a time before the command left this process, or the copy of it that was
	// answered.
	Sent time.Time
}

// Do runs a script and returns its reply. It returns as soon as ctx ends or the timeout
// is over, although go-redis does not interrupt a command in flight. Until then a
// command that has Resends is sent again when its connection breaks, and once more when
// it did not leave at all. The error is a [*Failure].
func (s *Server) Do(ctx context.Context, c *Command, timeout time.Duration) (Reply, error) {
	if ctx.Err() != nil {
		return Reply{}, &Failure{NotSent, Ended(ctx)}
	}
	end := time.Now().Add(timeout)
	d := &struct {
		dispatch
		first attempt // most commands have one
	}{dispatch: dispatch{server: s, command: c}}
	sent := time.Now()
	return d.follow(ctx, s.try(ctx, &d.dispatch, &d.first, end), sent, end)
}

// follow takes the answer to the first copy, which was sent at a time, and sends others until
// the command is done, or may not be sent again.
func (d *dispatch) follow(ctx context.Context, a answer, sent, end time.Time) (Reply, error) {
	resends := d.command.Resends
	delay, retried := repeatDelay, false
	for {
		if a.err == nil || a.over || resends == nil {
			return d.conclude(a, sent)
		}
		refused, wait := isRefusal(a.err), time.Duration(0)
		switch {
		case IsMigrating(a.err):
			wait = migrationDelay
		case isBroken(a.err):
			wait, delay = delay, delay+repeatDelay
		case !refused && !retried && !d.departed():
			retried = true
		default:
			return d.conclude(a, sent)
		}
		if time.Until(end) <= wait {
			return d.conclude(a, sent)
		}
		if wait > 0 && Pause(ctx, wait) != nil {
			return d.conclude(answer{err: Ended(ctx), over: true}, sent)
		}
		if d.again(refused) {
			resends.twice.Store(true)
		}
		sent = time.Now()
		a = d.server.try(ctx, d, new(attempt), end)
	}
}

// try sends one copy and waits for the answer.
func (s *Server) try(ctx context.Context, d *dispatch, a *attempt, end time.Time) answer {
	s.silence.ask(s.config.Timeout)
	if err, over := s.locate(ctx, time.Until(end)); err != nil {
		return answer{err: err, over: over}
	}
	var p *pipeline
	if !s.replicates(d.command) {
		p = s.pipelineTo(s.ClientFor(d.command.key()))
	}
	if p != nil && p.bounded && (ctx.Done() == nil || s.silence.answers()) && p.enter(nil) {
		return p.sendDirectly(ctx, d, a, end)
	}
	a.begin(ctx, d, end)
	if p == nil || p.enter(&a.queued) {
		a.pipeline = p
		s.config.Workers.Begin(a)
	}
	select {
	case got := <-a.wait.answered:
		a.finish()
		return got.by(end)
	case <-a.over:
	case <-ctx.Done():
		a.cancel()
		return answer{err: Ended(ctx), over: true}
	}
	select {
	case got := <-a.wait.answered:
		return got.by(end)
	default:
		return answer{err: ErrNoAnswer, over: true}
	}
}

// by gives an error its kind that came of the end of the time.
func (a answer) by(end time.Time) answer {
	if a.err == nil {
		return a
	}
	if isTimeout(a.err) && !time.Now().Before(end) {
		a.err = fmt.Errorf("%w: %v", ErrNoAnswer, a.err)
	}
	return a
}

// run sends one command, by whatever way it has to go.
func (s *Server) run(a *attempt) (any, error) {
	d := a.queued.dispatch
	if s.replicates(d.command) {
		return s.runReplicated(a, d.command, d)
	}
	return process(a, s.client, d, &a.cmd)
}

// process sends a script by its digest, and whole where Redis has not seen it.
func process(ctx context.Context, client redis.UniversalClient, d *dispatch, cmd *once) (any, error) {
	cmd.set(ctx, d.command.line(cmd.room[:], false), d)
	if isUnknownScript(client.Process(ctx, cmd)) {
		cmd = new(once) // hooks of the client's may have kept the other
		cmd.set(ctx, d.command.line(cmd.room[:], true), d)
		_ = client.Process(ctx, cmd)
	}
	return cmd.Result()
}

func isUnknownScript(err error) bool { return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") }
