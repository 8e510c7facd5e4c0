package checker

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Visit is what a process knows of one attempt at a lock. Times are in ns, by one
// clock for all; 0 means that it has not happened.
type Visit struct {
	ID     string // unique in a run
	Worker int
	Key    string
	Form   Form // in which it wants the lock
	// Request is what it sends; nil where it takes the lock for itself.
	Request *Request `json:",omitempty"`

	Called   int64  // Lock
	Returned int64  // from Lock
	Refusal  string `json:",omitempty"` // why there is no lock, in one word
	Owner    string `json:",omitempty"`
	Token    int64  `json:",omitempty"` // 0: no lock
	// Deadline is the time up to which Redis keeps the lock for this owner in any
	// case: when the last request was sent that Redis confirmed, plus the lease.
	Deadline int64 `json:",omitempty"`
	// Planned is when the holder means to unlock.
	Planned int64 `json:",omitempty"`
	// Downgraded is when the holder, which was alone, asked to share the lock; Sharing when it learned that others may.
	Downgraded int64 `json:",omitempty"`
	Sharing    int64 `json:",omitempty"`
	// Told is when the holder learned that the lock is lost.
	Told int64 `json:",omitempty"`
	// Late is how long after Deadline the holder still believed in the lock,
	// without the time in which its process did not run.
	Late     time.Duration `json:",omitempty"`
	Released int64         `json:",omitempty"` // the last Unlock was called
	Done     int64         `json:",omitempty"` // it has returned
	Outcome  string        `json:",omitempty"` // Confirmed, or the error in a word
	Broken   string        `json:",omitempty"` // a promise that the process saw broken
}

// Confirmed is the Outcome of a visit whose every step Redis has confirmed.
const Confirmed = "confirmed"

// Granted says whether the visit got the lock.
func (v *Visit) Granted() bool { return v.Token != 0 }

// formAt is how the visit holds the lock then; from its request to share it on others may share it.
func (v *Visit) formAt(t int64) Form {
	if v.Downgraded != 0 && t >= v.Downgraded {
		return Form{Shared: true}
	}
	return v.Form
}

// String tells the visit in a line.
func (v Visit) String() string {
	ms := func(t int64) string {
		if t == 0 || t == math.MaxInt64 {
			return "-"
		}
		return fmt.Sprintf("%.3f", float64(t)/1e6)
	}
	request := ""
	if v.Request != nil {
		request = fmt.Sprintf("; request %+v", *v.Request)
	}
	return fmt.Sprintf("[visit %s, process %d, %s %s: called %s, returned %s %s, owner %s, token %d, told %s, deadline %s, released %s, done %s %s, all in ms%s]",
		v.ID, v.Worker, v.Key, v.Form, ms(v.Called), ms(v.Returned), v.Refusal, v.Owner, v.Token, ms(v.Told), ms(v.Deadline), ms(v.Released), ms(v.Done), v.Outcome, request)
}

// Expect notes an error that is none of those that were to be expected.
func (v *Visit) Expect(err error, kinds ...error) {
	if err == nil {
		return
	}
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return
		}
	}
	v.Broken = fmt.Sprintf("an unexpected error (%v)", err)
}

// End is until when the holder surely had the lock and nobody else may have it:
// until it gave it back, was told of the loss, or the lease may have ended in Redis.
// The last of these serves workers that are stopped or killed, which can be told
// nothing; a worker that runs must be told by then, see visit.Late.
func (v *Visit) End() int64 {
	end := v.Deadline
	for _, t := range []int64{v.Told, v.Released} {
		if t != 0 {
			end = min(end, t)
		}
	}
	return end
}
