package conn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// answer is what came of a command.
type answer struct {
	value any
	err   error
}

// dispatch is a command that somebody waits for. It knows which copies have left, and what to do when one has
// that nobody awaits any more.
type dispatch struct {
	pipeline *pipeline    // that the present copy goes by
	queued   Queued       // the command, and the present copy if that goes with others
	context  *sendContext // under which the present copy goes
	slot     *waitSlot    // where its caller waits
	answer   answer       // to the present copy, or why there is none
	known    atomic.Uint32
	progress progress  // of the present copy
	until    time.Time // when it is to be answered at the latest, where not all can be sent

	first sendContext // of the first copy, in one allocation with it; of several commands that of the first has this for all
}

// What is known of the copies of a command, in dispatch.known:
const (
	taken     uint32 = 1 << iota // The present copy does not wait any more until it can be sent.
	written                      // It has left.
	uncertain                    // An earlier copy may have done its work, or may yet.
	abandoned                    // Nobody waits for the command any more: it is compensated, at once or when a copy leaves.
)

// progress is what the caller of a command has seen of the present copy.
type progress uint8

const (
	notBegun progress = iota // The caller's context had ended before the first copy.
	awaited                  // There is no answer, and the copy may leave yet.
	answered
)

// wrote is called when a copy is written. nil is a command that nobody gives up.
func (d *dispatch) wrote() {
	if d != nil && d.known.Or(written)&(written|uncertain|abandoned) == abandoned {
		d.compensate()
	}
}

// take is called before the present copy is sent. It is false when nobody waits for it any more. nil is a command that
// nobody gives up.
func (d *dispatch) take() bool { return d == nil || d.known.Or(taken)&abandoned == 0 }

// process sends a command by itself: a script by its digest, and whole where Redis has not seen it.
func (q *Queued) process(ctx *sendContext, p *pipeline, client redis.UniversalClient) (any, error) {
	for whole := false; ; whole = true {
		cmd := &once{direct: p.direct}
		cmd.set(ctx, q.Command.Script, whole, q.dispatch, q.Command.line(cmd.line[:]))
		cmd.SetErr(recovered(func() error { return client.Process(ctx, cmd) }))
		p.noteScript(q.Command.Script, cmd.Err())
		if whole || !isUnknownScript(cmd.Err()) {
			return q.Command.withoutName(cmd.reply())
		}
	}
}

// errExited is why there is no answer when a hook of the client's has ended the goroutine that sent.
var errExited = errors.New("a hook of the client's has ended its goroutine")

// recovered sends something. A hook of the client's that panics is a failure like others: whoever would recover above could
// not know what became of the command, and on other goroutines than a caller's nobody would.
func recovered(send func() error) (err error) {
	defer func() {
		if hook := recover(); hook != nil {
			err = fmt.Errorf("a hook of the client's has panicked: %v", hook)
		}
	}()
	return send()
}

func (d *dispatch) compensate() {
	if c := d.queued.Command.Compensator; c != nil {
		c.Compensate(d.pipeline.server)
	}
}

// refused says that nothing came of the present copy. If that has no answer, the error may be the refusal of
// another command, with which the caller has cancelled his context.
func (d *dispatch) refused() bool {
	return d.progress == answered && isRefusal(d.answer.err) && !(IsClosed(d.answer.err) && d.is(written))
}

func (d *dispatch) is(known uint32) bool { return d != nil && d.known.Load()&known != 0 }

// beginCopy makes another copy the present one. It reports whether something may have come of an earlier one, or
// may yet.
func (d *dispatch) beginCopy() (mayArriveTwice bool) {
	if d.is(written) && !d.refused() {
		d.known.Or(uncertain)
	}
	d.known.And(^(written | taken))
	return d.is(uncertain)
}

// abandon gives the command up and returns what was known of it. If a copy may have arrived, and if one leaves later, the
// command is compensated.
func (d *dispatch) abandon() (known uint32) {
	if known = d.known.Or(abandoned); known&(written|uncertain) != 0 {
		d.compensate()
	}
	return known
}

// conclude ends the command with the answer to its last copy. The command is compensated when its outcome is
// unknown, and when the last copy did nothing but an earlier one may yet arrive.
func (d *dispatch) conclude(s *Server, sent, end time.Time) (Reply, error) {
	a := d.answer
	switch {
	case a.err == nil:
		if d.is(uncertain) && !d.queued.Command.Script.did(a.value) {
			d.abandon()
		}
		return Reply{a.value, sent}, nil
	case d.refused() && !d.is(uncertain):
		return Reply{}, &Failure{Refused, a.err}
	}
	known, outcome, err := d.abandon(), Unknown, a.err
	if isWaiting := d.progress == awaited && known&taken == 0; known&(written|uncertain) == 0 && (isWaiting || d.progress != awaited) {
		outcome = NotSent
		if isWaiting && d.slot != nil && err == ErrNoAnswer {
			err = d.pipeline.refuse()
		}
	}
	if d.progress == answered || err == ErrNoAnswer {
		err = s.explain(err, &d.queued, end)
	}
	return Reply{}, &Failure{outcome, err}
}

// context is that under which the copy goes that is sent now.
func (q *Queued) context(now time.Time) *sendContext {
	if q.dispatch != nil {
		return q.dispatch.context
	}
	return &sendContext{caller: context.Background(), deadline: now.Add(q.Timeout)}
}

// receive takes the answer to the copy that was sent then, of which there is one.
func (q *Queued) receive(sent time.Time, a answer) {
	if d := q.dispatch; d != nil {
		d.slot.arrived <- arrival{d, a}
	} else {
		q.To.Receive(Reply{a.value, sent}, a.err)
	}
}

// sendContext is the context under which go-redis sends a copy of some commands: it has the caller's values,
// and lasts as long as he waits. A context of package context takes several allocations more.
type sendContext struct {
	caller   context.Context
	deadline time.Time

	mu   sync.Mutex
	err  error         // why nobody waits any more; nil: somebody does
	late time.Duration // by so much it was, after the deadline
	done chan struct{} // closed then; nil: nobody has asked for it
}

// end says that nobody waits any more, and why.
func (c *sendContext) end(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err, c.late = why, time.Since(c.deadline)
	if c.done != nil {
		close(c.done)
	}
}

// over tells since when the context has ended and its deadline has passed.
func (c *sendContext) over() (since time.Time, isOver bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deadline.Add(max(0, c.late)), c.err != nil
}

func (c *sendContext) Deadline() (time.Time, bool) { return c.deadline, true }
func (c *sendContext) Value(key any) any           { return c.caller.Value(key) }

func (c *sendContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *sendContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	return c.done
}

// waitSlot is the memory that a wait for answers takes. It serves another caller once the answers have come.
type waitSlot struct {
	arrived chan arrival // has room for all answers, and for one of no command: the time is over
	context *sendContext // ends with the time instead, if its caller does not wait here
	timer   *time.Timer
	cancel  func() // ends the context because the caller's has ended
}

// arrival is the answer to a command.
type arrival struct {
	*dispatch
	answer
}

// slotFor returns a slot for so many answers, until so much time is over.
func (s *Server) slotFor(answers int, c *sendContext, left time.Duration) *waitSlot {
	if answers == 1 {
		if slot, ok := s.slots.Get().(*waitSlot); ok {
			slot.context = c
			slot.timer.Reset(left)
			return slot
		}
	}
	slot := &waitSlot{arrived: make(chan arrival, answers+1), context: c}
	slot.cancel = func() { slot.context.end(context.Canceled) }
	slot.timer = time.AfterFunc(left, func() {
		if slot.context != nil {
			slot.context.end(context.DeadlineExceeded)
		} else {
			slot.arrived <- arrival{}
		}
	})
	return slot
}

// giveBack is for a slot whose answers have come, and whose context nobody else will end. If the time is
// over the slot's timer may still be at work.
func (s *Server) giveBack(slot *waitSlot) {
	if slot.timer.Stop() && cap(slot.arrived) == 2 {
		slot.context = nil
		s.slots.Put(slot)
	}
}

// await notes the answers to commands, until all have come or ctx or the time has ended.
func (s *Server) await(ctx context.Context, slot *waitSlot, ds []dispatch) {
	var missing, why error = nil, context.Canceled
	for range ds {
		select {
		case a := <-slot.arrived:
			if a.dispatch != nil {
				a.dispatch.answer, a.progress = a.answer, answered
				continue
			}
			missing, why = ErrNoAnswer, context.DeadlineExceeded
		case <-ctx.Done():
			missing = Ended(ctx)
		}
		break
	}
	ds[0].context.end(why)
	if missing == nil {
		s.giveBack(slot)
		return
	}
	slot.timer.Stop()
	for i := range ds {
		if ds[i].progress == awaited {
			ds[i].answer = answer{err: missing}
		}
	}
}
