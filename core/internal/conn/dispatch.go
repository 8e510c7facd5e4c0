package conn

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// once is a command that go-redis must not send again by itself: a lost reply would run a script twice, on a
// cluster even with retries switched off.
type once struct {
	redis.Cmd
	script scriptWord
	room   [9]any // for the words of most commands
}

// set makes it EVALSHA, or EVAL where Redis does not know the script yet. The line has room for two words in front.
func (o *once) set(ctx context.Context, s *Script, whole bool, load interface{ wrote() }, line []any) {
	line[0], line[1], o.script = "evalsha", &o.script, scriptWord{s.digest, load}
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
	text []byte
	load interface{ wrote() }
}

func (w *scriptWord) String() string { return string(w.text) }
func (w *scriptWord) MarshalBinary() ([]byte, error) {
	w.load.wrote()
	return w.text, nil
}

// answer is the reply: nil is one, and no error.
func (o *once) answer() (any, error) {
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
	pipeline *pipeline // that the present copy goes by
	queued   Queued    // the command, and the present copy if that goes with others
	attempt  *attempt  // under which the present copy does so; nil: none was to be sent
	ticket   *ticket   // where its caller waits
	answer   answer    // that he has had

	mu        sync.Mutex
	written   bool
	copied    bool // the present copy was written
	unknown   bool // what became of an earlier copy
	abandoned bool
	over      bool // nobody waited any longer; the caller's own
}

// wrote is called when a copy is written. nil: nobody gives the command up.
func (d *dispatch) wrote() {
	if d == nil {
		return
	}
	d.mu.Lock()
	late := d.abandoned && !d.written
	d.written, d.copied = true, true
	d.mu.Unlock()
	if late {
		d.compensate()
	}
}

// Run sends the present copy, and then what waits.
func (d *dispatch) Run() { d.pipeline.sendOn([]*Queued{&d.queued}) }

// Receive takes the answer to the present copy, of which there is one.
func (d *dispatch) Receive(r Reply, err error) {
	d.ticket.arrived <- arrival{d, r.Value, err}
}

func (d *dispatch) compensate() {
	if c := d.queued.Command.Compensator; c != nil {
		c.Compensate(d.pipeline.server)
	}
}

// refused says that nothing came of the present copy.
func (d *dispatch) refused() bool {
	err := d.answer.err // if nobody waits any more why may be the refusal of another command
	return !d.over && isRefusal(err) && !(IsClosed(err) && d.departed())
}

// departed says whether the present copy has left.
func (d *dispatch) departed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.copied
}

// again begins another copy; refused says that nothing came of the present one. It reports whether something
// may have come of one of them, or may yet.
func (d *dispatch) again(refused bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unknown = d.unknown || d.copied && !refused
	d.copied = false
	return d.unknown
}

// abandon gives the command up and reports whether it has left. If so, and if it leaves later, it is
// compensated.
func (d *dispatch) abandon() bool {
	d.mu.Lock()
	d.abandoned = true
	written := d.written
	d.mu.Unlock()
	if written {
		d.compensate()
	}
	return written
}

// unwanted says that the command was given up before it left.
func (d *dispatch) unwanted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.abandoned
}

// conclude ends the command with the answer to its last copy. The command is compensated when its outcome is
// unknown, and when the last copy did nothing but an earlier one may yet arrive.
func (d *dispatch) conclude(sent time.Time) (Reply, error) {
	a := d.answer
	switch refused := d.refused(); {
	case refused && !d.unknown:
		return Reply{}, &Failure{Refused, a.err}
	case a.err == nil:
		if d.unknown && !d.queued.Command.Script.did(a.value) {
			d.abandon()
		}
		return Reply{a.value, sent}, nil
	case !d.abandon() && (!d.over || d.attempt == nil):
		return Reply{}, &Failure{NotSent, a.err}
	}
	return Reply{}, &Failure{Unknown, a.err}
}
