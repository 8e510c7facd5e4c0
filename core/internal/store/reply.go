package store

import (
	"fmt"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// verdict is what a script says: the first value of its reply.
type verdict int64

const (
	saidNone           verdict = iota // there is no such hold, owner or lock
	saidAcquired                      // a lock was taken or entered
	saidBusy                          // somebody else has it
	saidGone                          // the lock to enter
	saidGivenUp                       // the claim was, before it arrived
	saidOtherKind                     // the name is that of something else
	saidOtherForm                     // the owner has the lock in one that does not include this one
	saidAnswered                      // the request was
	saidReused                        // the lock is of another request
	saidUnknownOutcome                // of the last attempt
	saidDone
	saidEnded       // the hold has, and the lock is not free
	saidNextInQueue // it has ended, and the queue is next
	saidState       // the fields of the lock
	saidHasOthers   // the lock is exclusive as before: there are other holds
)

// reply is what a script returns: {status, text, ttl, time, detail, number, lease}, of which the last are absent where
// they say nothing. The scripts tell what detail and number are.
type reply struct {
	value any
	err   error // no script of ours has given it: what was read is absent
}

func (r *reply) text() string         { return at[string](r, 1) }
func (r *reply) ttl() time.Duration   { return time.Duration(at[int64](r, 2)) * time.Millisecond }
func (r *reply) time() time.Duration  { return time.Duration(at[int64](r, 3)) * time.Microsecond }
func (r *reply) detail() int64        { return at[int64](r, 4) }
func (r *reply) fields() []any        { return at[[]any](r, 4) } // instead of a detail
func (r *reply) number() int          { return int(at[int64](r, 5)) }
func (r *reply) lease() time.Duration { return time.Duration(at[int64](r, 6)) * time.Millisecond }

func (r *reply) verdict() verdict {
	if r.value == "10" { // a list costs both sides more, where there are many
		return saidDone
	}
	_ = r.text() // each has one
	return verdict(at[int64](r, 0))
}

func at[T any](r *reply, i int) (value T) {
	if list, _ := r.value.([]any); i < len(list) {
		if value, ok := list[i].(T); ok {
			return value
		}
	}
	r.foreign()
	return value
}

func (r *reply) foreign() { r.err = unexpected(r.value) }

// did tells a reply of a script that has done what it was asked.
func did(value any) bool {
	if text, ok := value.(string); ok {
		_, err := parseToken(text)
		return err == nil
	}
	r := reply{value: value}
	said := r.verdict()
	return r.err == nil && (said == saidAcquired || said == saidDone)
}

// yes reads the reply of a script that has done it, or found nothing. A downgrade that other holds prevent has renewed the lease.
func yes(from conn.Reply) (bool, error) {
	r := reply{value: from.Value}
	said := r.verdict()
	if said != saidDone && said != saidNone && said != saidHasOthers {
		r.foreign()
	}
	return said != saidNone, r.err
}

// parseToken reads a fencing token, which is greater than 0.
func parseToken(s string) (int64, error) {
	token, err := strconv.ParseUint(s, 10, 63)
	if err != nil || token == 0 {
		return 0, unexpected(s)
	}
	return int64(token), nil
}

func unexpected(reply any) error {
	switch v := reply.(type) {
	case string:
		return conn.Failed(fmt.Errorf("an unexpected reply: %.64q", v))
	case []any:
		return conn.Failed(fmt.Errorf("an unexpected reply of %d values", len(v)))
	}
	return conn.Failed(fmt.Errorf("an unexpected reply: %T", reply))
}
