package store

import (
	"fmt"
	"strconv"
	"time"
)

// status is what a script says: the first value of its reply.
type status int64

const (
	saidTaken status = -1 - iota // a free lock was; a bare text, the token
	saidFreed                    // a lock was, for all; a bare number, how many have heard
)

const (
	saidNone           status = iota // there is no such hold, owner or lock
	saidGranted                      // a lock was taken or entered
	saidBusy                         // somebody else has it
	saidGone                         // the lock to enter
	saidWithdrawn                    // the claim was, before it arrived
	saidOtherKind                    // the name is that of something else
	saidOtherForm                    // the owner has the lock in one that does not include this one
	saidAnswered                     // the request was
	saidReused                       // the lock is of another request
	saidUnknownOutcome               // of the last attempt
	saidDone
	saidRemaining // the hold has ended, and so many remain
	saidWindowed  // it has ended, and the dedup window is open
	saidPassed    // it has ended, and the queue is next
	saidState     // the fields of the lock
	saidHasOthers // the lock cannot be handed over: there are other holds
)

// least is how many values a reply has at least.
var least = map[status]int{
	saidNone: 1, saidGranted: 7, saidBusy: 6, saidGone: 1, saidWithdrawn: 1, saidOtherKind: 1, saidOtherForm: 1, saidAnswered: 2, saidReused: 1, saidUnknownOutcome: 1,
	saidDone: 1, saidRemaining: 6, saidWindowed: 3, saidPassed: 4, saidState: 5, saidHasOthers: 1,
}

// reply is what a script returns: {status, text, ttl, time, detail, number, lease}, of which the last
// are absent where they say nothing. The scripts tell what detail and number are.
type reply struct {
	status status
	text   string
	token  int64 // the text of one that grants the lock
	ttl    time.Duration
	time   time.Duration // by the clock of Redis
	detail int64
	fields []any // instead of a detail
	number int64
	lease  time.Duration
}

// parse reads a reply. An error says that no script of ours has given it.
func parse(value any) (r reply, err error) {
	switch v := value.(type) {
	case string:
		r.token, err = parseToken(v)
		r.status = saidTaken
		return r, err
	case int64:
		return reply{status: saidFreed, number: v}, nil
	}
	values, ok := value.([]any)
	if !ok {
		return r, unexpected(value)
	}
	r.status = -1
	texts, numbers := [7]*string{1: &r.text}, [7]*int64{0: (*int64)(&r.status), 2: (*int64)(&r.ttl), 3: (*int64)(&r.time), 4: &r.detail, 5: &r.number, 6: (*int64)(&r.lease)}
	for i, value := range values[:min(len(values), len(numbers))] {
		switch v := value.(type) {
		case string:
			ok = texts[i] != nil
			if ok {
				*texts[i] = v
			}
		case int64:
			ok = numbers[i] != nil
			if ok {
				*numbers[i] = v
			}
		default:
			r.fields, ok = value.([]any)
			ok = ok && i == 4
		}
		if !ok {
			return r, unexpected(value)
		}
	}
	r.ttl, r.time, r.lease = r.ttl*time.Millisecond, r.time*time.Microsecond, r.lease*time.Millisecond
	switch want, known := least[r.status]; {
	case !known && len(values) > 0:
		err = unexpected(value)
	case len(values) < max(want, 1):
		err = fmt.Errorf("a reply of %d values, expected %d", len(values), max(want, 1))
	case r.status == saidGranted:
		r.token, err = parseToken(r.text)
	}
	return r, err
}

// did tells a reply of a script that has done what it was asked.
func did(value any) bool {
	r, err := parse(value)
	return err == nil && (r.status == saidTaken || r.status == saidGranted || r.status == saidDone)
}

// yes reads the reply of a script that has done it, or found nothing.
func yes(value any) (bool, error) {
	r, err := parse(value)
	if err == nil && r.status != saidDone && r.status != saidNone {
		err = unexpected(value)
	}
	return r.status == saidDone, err
}

// parseToken reads a fencing token, which is greater than 0.
func parseToken(s string) (int64, error) {
	token, err := strconv.ParseUint(s, 10, 63)
	if err != nil || token == 0 {
		return 0, unexpected(s)
	}
	return int64(token), nil
}

// unexpected is a reply that no script of ours gives.
func unexpected(reply any) error {
	if s, ok := reply.(string); ok {
		return fmt.Errorf("an unexpected reply: %.64q", s)
	}
	return fmt.Errorf("an unexpected reply: %T", reply)
}
