package guard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
)

const (
	errNoLocker setupError = "no Locker: call core.SetDefault, or set Config.Locker"
	errNested   setupError = "a guard inside of another wants its lock in another form and would wait for itself: let the outer one have the lock alone, or leave one of them out"
)

// StatusOf returns the status of the answer to a request that was refused with err, and
// when trying again makes sense: in whole seconds, 0 for never.
func StatusOf(err error) (status int, retryAfter time.Duration) {
	r := refusalOf(err)
	return r.Status, time.Duration(r.RetryAfter) * time.Second
}

// ReasonOf returns why a request was refused with err: a word and a text, both fixed.
func ReasonOf(err error) (code, text string) {
	r := refusalOf(err)
	return r.Code, r.Detail
}

// refusalOf is the answer to a request that was refused with err, which may have a status of
// its own.
func refusalOf(err error) *Refusal {
	if known := (*refused)(nil); errors.As(err, &known) {
		return known.refusal
	}
	return refusalFor(err)
}

// refusalFor is the answer to a request that must not run because of err.
func refusalFor(err error) *Refusal {
	var busy *core.BusyError
	switch {
	case errors.As(err, &busy) && busy.Done:
		return conflict(busy.RetryAfter, "done", "A request for the same resource was processed just now.", err)
	case errors.As(err, &busy):
		return occupied(busy.RetryAfter, err)
	case errors.Is(err, core.ErrNotAcquired) && errors.Is(err, context.Canceled):
		return clientGone(err)
	case errors.Is(err, core.ErrNotAcquired): // the request's deadline came first
		return occupied(time.Second, err)
	case errors.Is(err, core.ErrUnavailable), errors.Is(err, core.ErrClosed), errors.Is(err, core.ErrLost),
		errors.Is(err, core.ErrMaxHold):
		return &Refusal{
			Status:     http.StatusServiceUnavailable,
			RetryAfter: 1,
			Code:       "unavailable",
			Detail:     "The service cannot process this request at the moment.",
			Err:        err,
		}
	case errors.Is(err, adapter.ErrReused):
		r := &Refusal{Status: http.StatusUnprocessableEntity, Code: "reused", Detail: "Another request was sent with this Idempotency-Key: use a new one.", Err: err}
		return r.problemOf("Idempotency-Key is already used")
	case errors.Is(err, adapter.ErrOutcomeUnknown):
		r := &Refusal{Status: http.StatusConflict, Code: "outcome_unknown", Detail: "This request may have been processed: nobody knows.", Err: err}
		return r.problemOf("The outcome of an earlier request is unknown")
	case errors.Is(err, errNotReplayable):
		r := &Refusal{Status: http.StatusConflict, Code: "not_replayable", Detail: "This request was processed, but the answer cannot be sent again.", Err: err, reason: "answered"}
		return r.problemOf("The answer is not replayable")
	case errors.Is(err, core.ErrUpgrade):
		return setup(fmt.Errorf("%w: %w", errNested, err))
	case isSetup(err):
		return setup(err)
	}
	if r := noKey(err); r != nil {
		return r
	}
	return setup(err)
}

// refusalForKey is refusalFor where err comes from the key function, which may be one of
// the user's own.
func refusalForKey(err error) *Refusal {
	if r := noKey(err); r != nil {
		return r
	}
	return noKeyAs(keyfunc.ErrMalformed, err)
}

// noKeyAs is the refusal of one kind, whatever err says.
func noKeyAs(kind, err error) *Refusal {
	r := noKey(kind)
	r.Err = err
	return r
}

func setup(err error) *Refusal {
	return &Refusal{
		Status: http.StatusInternalServerError,
		Code:   "internal",
		Detail: "The service cannot process this request.",
		Err:    err,
		reason: "setup",
	}
}

func clientGone(err error) *Refusal {
	return &Refusal{Status: statusClientGone, Code: "gone", Detail: "The client has left.", Err: err, reason: "canceled"}
}

// occupied is the refusal of a request that others are in the way of.
func occupied(after time.Duration, err error) *Refusal {
	r := conflict(after, "busy", "Another request for the same resource is being processed.", err)
	if errors.Is(err, core.ErrNoPermit) {
		r.Status, r.Code, r.Detail = http.StatusTooManyRequests, "too_many", "Too many requests for the same resource are being processed."
	}
	return r
}

// isBusy reports whether the lock is, so that the set-up may say with which status.
func (r *Refusal) isBusy() bool {
	return (r.Status == http.StatusConflict || r.Status == http.StatusTooManyRequests) && r.RetryAfter > 0
}

// idempotencyProblem is the type of the problems that the draft knows, and of ours.
const idempotencyProblem = "https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header"

// errNotReplayable is why a request is refused that was answered before.
var errNotReplayable = errors.New("latchkey: the answer of the first request cannot be sent again")

// problemOf makes it a problem of an idempotent request.
func (r *Refusal) problemOf(title string) *Refusal {
	r.kind, r.title = idempotencyProblem, title
	return r
}

func conflict(after time.Duration, code, detail string, err error) *Refusal {
	return &Refusal{
		Status:     http.StatusConflict,
		RetryAfter: max(1, int((after+time.Second-1)/time.Second)),
		Code:       code,
		Detail:     detail,
		Err:        err,
	}
}

// isSetup reports whether the program is set up wrongly, which no client can mend.
func isSetup(err error) bool {
	var setup setupError
	return errors.As(err, &setup) || errors.Is(err, keyfunc.ErrNotSetUp)
}

// noKey is the refusal of a request that has no key; nil when err is about something else.
func noKey(err error) *Refusal {
	for _, why := range []struct {
		kind         error
		code, detail string
	}{
		{keyfunc.ErrTooLarge, "too_large", "The request body is too large."},
		{keyfunc.ErrMissing, "missing", "A required part of the request is missing."},
		{keyfunc.ErrRepeated, "repeated", "A part of the request is given more than once."},
		{keyfunc.ErrLetterCase, "letter_case", "The name of a part of the request is in another letter case."},
		{keyfunc.ErrPath, "path", "The path has escapes, or empty or dot segments, so that it can be read in two ways."},
		{keyfunc.ErrNotJSON, "not_json", "The body is not declared as JSON: it needs one Content-Type, application/json."},
		{keyfunc.ErrAmbiguous, "ambiguous", "A part of the request can be read in two ways."},
		{keyfunc.ErrMalformed, "malformed", "A part of the request is malformed."},
		{core.ErrInvalidKey, "too_long", "A part of the request is too long."},
	} {
		if !errors.Is(err, why.kind) {
			continue
		}
		r := &Refusal{Status: http.StatusBadRequest, Code: why.code, Detail: why.detail, Err: err, reason: "invalid_key"}
		switch {
		case errors.Is(err, errNoKey):
			r.Detail = "This request needs an Idempotency-Key."
			r.problemOf("Idempotency-Key is missing")
		case errors.Is(err, errBadKey):
			r.Detail = fmt.Sprintf("An Idempotency-Key is 1 to %d visible ASCII characters.", maxKeyBytes)
			r.problemOf("Idempotency-Key is malformed")
		}
		if why.kind == keyfunc.ErrTooLarge {
			r.Status = http.StatusRequestEntityTooLarge
		}
		return r
	}
	return nil
}
