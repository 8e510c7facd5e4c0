package conn

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	windowAtFirst = 64
	restPart      = 16 // by a part of it a window that is not used shrinks with each answer
	// A window shrinks to such a part of what was in flight when an answer was late, and when one was lost.
	lateShare = 0.7
	lostShare = 0.5
	// latePart is the part of the timeout by which an answer may take longer than the distance: else it is late.
	latePart = 4
	lateMax  = 250 * time.Millisecond
	// promptPart is the part of that by which it may take longer, for the window to grow as fast as it can.
	promptPart = 4
	// waitPart is the part of the timeout for which a command waits until it can be sent. Who is refused sooner can go elsewhere.
	waitPart = 4
	// usualPart is the part of the last answer in the usual time of one.
	usualPart = 8
	// The distance may be found to have grown by a part of it, and so often.
	fartherPart      = 64
	fartherPartAlone = 4 // where nothing else was in flight
	fartherAfter     = 100 * time.Millisecond
	// leastFor is for how long the window is at its least before the distance may be twice what is late: one that is longer would be
	// no good to callers, and what they wait for in vain has to count as late.
	leastFor = 10 * time.Second
)

// window bounds the commands in flight to a server, so that they do not queue there for longer than their callers wait. It is
// the congestion window of TCP (Jacobson, Congestion Avoidance and Control, 1988) with delay as its signal (Brakmo and
// Peterson, TCP Vegas, 1995). It grows while it is used and answers are prompt. It shrinks once in a round trip, to a part
// of what was in flight and not of itself, for a window that is not used says nothing.
type window struct {
	late     time.Duration // An answer that takes so much longer than the distance is late.
	limit    float64
	inFlight int
	turn     int32     // of round trips that count
	shrunk   time.Time // last. How long answers take to what was sent before is known
	timed    time.Time // when a round trip was sent that is in flight: one at a time is timed before it is answered. Zero: none

	usual     time.Duration // how long an answer takes lately
	distance  time.Duration // how long one takes from a server that is not busy
	farther   time.Time     // when the distance has last grown
	least     time.Time     // since when the window is at its least; zero: it is not
	wasPrompt bool          // the last answer was
	isSilent  bool          // the last round trip had no answer, or there was none yet
}

func newWindow(late time.Duration) window {
	return window{late: late, limit: windowAtFirst, wasPrompt: true, isSilent: true}
}

// trip is a round trip of some commands. The zero trip has none.
type trip struct {
	commands int32 // that are in flight with it
	turn     int32
	isTimed  bool
	sent     time.Time // zero: nothing was
	took     time.Duration
	ending   ending
}

// ending is how a round trip has ended.
type ending int8

const (
	endedOtherwise ending = iota // not by an answer, nor for want of one
	endedByAnswer                // also by an error of the server
	endedLate                    // there was no answer in time
)

func (t *trip) end(err error) {
	t.took = time.Since(t.sent)
	switch {
	case err == nil:
		t.ending = endedByAnswer
	case isTimeout(err), errors.Is(err, ErrNoAnswer):
		t.ending = endedLate
	case errors.As(err, new(redis.Error)):
		t.ending = endedByAnswer
	}
}

// room is how many commands more may be in flight: none, while an answer is late.
func (w *window) room(now time.Time) int {
	if w.isLate(now, w.late) {
		return 0
	}
	return max(0, int(w.limit)-w.inFlight)
}

// isLate says that an answer that is not there yet takes so much longer than the distance.
func (w *window) isLate(now time.Time, by time.Duration) bool {
	return !w.timed.IsZero() && now.Sub(w.timed) > w.distance+by
}

// isMute says that no answer comes from the server, however little it is asked.
func (w *window) isMute(now time.Time) bool {
	return w.isSilent || int(w.limit) > w.inFlight && w.isLate(now, w.late)
}

// prompt is by how much longer than the distance a prompt answer may take.
func (w *window) prompt() time.Duration { return w.late / promptPart }

// isPrompt says that the last answer was, and that none is late.
func (w *window) isPrompt(now time.Time) bool { return w.wasPrompt && !w.isLate(now, w.prompt()) }

// expected is how long an answer takes to what is sent while there is room.
func (w *window) expected() time.Duration { return min(w.usual, w.distance+w.late) }

// begin counts the commands of a round trip, until end.
func (w *window) begin(now time.Time, commands int) trip {
	w.inFlight += commands
	t := trip{commands: int32(commands), turn: w.turn, isTimed: w.timed.IsZero()}
	if t.isTimed {
		w.timed = now
	}
	return t
}

// end takes how a round trip has ended.
func (w *window) end(t trip) {
	inFlight := float64(w.inFlight)
	if t.turn == w.turn {
		w.inFlight -= int(t.commands)
		if t.isTimed {
			w.timed = time.Time{}
		}
	}
	if t.ending == endedOtherwise {
		return
	}
	now := t.sent.Add(t.took)
	if t.ending == endedByAnswer {
		w.noteDistance(now, t.took, int(inFlight) == int(t.commands))
	}
	w.usual = max(t.took, w.usual+(t.took-w.usual)/usualPart)
	queued := t.took - w.distance
	switch w.isSilent, w.wasPrompt = t.ending == endedLate, t.ending == endedByAnswer && queued <= w.prompt(); {
	case queued > w.late && !t.sent.After(w.shrunk):
	case queued > w.late:
		share := lateShare
		if t.ending == endedLate {
			share = lostShare
		}
		w.limit, w.shrunk = max(1, min(w.limit, share*inFlight)), now
	case t.ending == endedLate: // its caller was in a hurry
	case w.wasPrompt && t.sent.After(w.timed) && w.isLate(now, w.prompt()): // what was sent before went where no answer comes from
		w.turn, w.inFlight, w.timed = w.turn+1, 0, time.Time{}
	case 2*inFlight < w.limit && w.limit > windowAtFirst: // it is not used
		w.limit = max(windowAtFirst, w.limit-w.limit/restPart)
	case 2*inFlight < w.limit && w.wasPrompt:
		w.limit = min(windowAtFirst, w.limit+float64(t.commands))
	case 2*inFlight < w.limit:
	case w.wasPrompt:
		w.limit += float64(t.commands)
	default:
		w.limit += float64(t.commands) / w.limit
	}
	if w.limit > 1 {
		w.least = time.Time{}
	} else if w.least.IsZero() {
		w.least = now
	}
}

// noteDistance notes how long a round trip took. The shortest of many counts: others are long because the machine is busy, or
// the server.
func (w *window) noteDistance(now time.Time, took time.Duration, isAlone bool) {
	part := time.Duration(fartherPart)
	if isAlone {
		part = fartherPartAlone
	}
	switch {
	case w.distance == 0, took < w.distance:
		w.distance = took
	case now.Sub(w.farther) > fartherAfter:
		most := max(w.distance, w.late)
		if !w.least.IsZero() && now.Sub(w.least) > leastFor {
			most = max(w.distance, 2*w.late)
		}
		w.distance, w.farther = min(took, w.distance+w.distance/part, most), now
	}
}

// Overloaded is why a command was not sent: the server is asked for more than it can do in time.
type Overloaded struct {
	Waiting int           // so many commands wait until they can be sent
	Answer  time.Duration // how long an answer takes lately
	After   time.Duration // when those that wait could be done
}

func (o *Overloaded) Error() string {
	return fmt.Sprintf("redis is asked for more than it can do: %d commands wait, an answer takes %v",
		o.Waiting, o.Answer.Round(time.Millisecond))
}
