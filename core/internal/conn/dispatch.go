package conn

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// once is a command that go-redis must not send again by itself: a lost reply would run a script twice, on a
// cluster even with retries switched off.
type once struct {
	redis.Cmd
	script scriptWord
	line   [9]any // memory for the words of most commands
}

// set makes it EVALSHA, or EVAL where Redis does not know the script yet. The line has room for two words in front.
func (o *once) set(ctx context.Context, s *Script, whole bool, command interface{ wrote() }, line []any) {
	line[0], line[1], o.script = "evalsha", &o.script, scriptWord{s.digest, command}
	if whole {
		line[0], o.script.text = "eval", s.text
	}
	o.Cmd = *redis.NewCmd(ctx, slices.Clip(line)...) // hooks of the client's may append to it
}

// NoRetry keeps go-redis from sending the command again.
func (*once) NoRetry() bool { return true }

// scriptWord is a word that go-redis asks for its text when it writes the command to a connection. Hooks, and what finds
// the node of a cluster, read the words also of commands that never leave.
type scriptWord struct {
	text    []byte
	command interface{ wrote() }
}

func (w *scriptWord) String() string { return string(w.text) }
func (w *scriptWord) MarshalBinary() ([]byte, error) {
	w.command.wrote()
	return w.text, nil
}

// reply is what Redis has replied: nil is a reply, and no error.
func (o *once) reply() (any, error) {
	if err := o.Err(); err != redis.Nil {
		return o.Val(), err
	}
	return nil, nil
}

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
	progress progress // of the present copy
}

// What is known of the copies of a command, in dispatch.known:
const (
	written   uint32 = 1 << iota // The present copy has left.
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
	if d != nil && d.known.Or(written) == abandoned {
		d.compensate()
	}
}

// Run sends the present copy, and then what waits.
func (d *dispatch) Run() { d.pipeline.sendOn([]*Queued{&d.queued}) }

// Receive takes the answer to the present copy, of which there is one.
func (d *dispatch) Receive(r Reply, err error) {
	d.slot.arrived <- arrival{d, answer{r.Value, err}}
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

func (d *dispatch) is(known uint32) bool { return d.known.Load()&known != 0 }

// beginCopy makes another copy the present one. It reports whether something may have come of an earlier one, or
// may yet.
func (d *dispatch) beginCopy() (mayArriveTwice bool) {
	if d.is(written) && !d.refused() {
		d.known.Or(uncertain)
	}
	d.known.And(^written)
	return d.is(uncertain)
}

// abandon gives the command up and reports whether a copy may have arrived. If so, and if one leaves later,
// the command is compensated.
func (d *dispatch) abandon() (mayHaveArrived bool) {
	if mayHaveArrived = d.known.Or(abandoned)&(written|uncertain) != 0; mayHaveArrived {
		d.compensate()
	}
	return mayHaveArrived
}

// conclude ends the command with the answer to its last copy. The command is compensated when its outcome is
// unknown, and when the last copy did nothing but an earlier one may yet arrive.
func (d *dispatch) conclude(sent time.Time) (Reply, error) {
	a := d.answer
	switch {
	case d.refused() && !d.is(uncertain):
		return Reply{}, &Failure{Refused, a.err}
	case a.err == nil:
		if d.is(uncertain) && !d.queued.Command.Script.did(a.value) {
			d.abandon()
		}
		return Reply{a.value, sent}, nil
	case !d.abandon() && d.progress != awaited:
		return Reply{}, &Failure{NotSent, a.err}
	}
	return Reply{}, &Failure{Unknown, a.err}
}
