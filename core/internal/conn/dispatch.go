package conn

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
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
