package guard

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

const errNoLocker setupError = "no Locker: call core.SetDefault, or set Config.Locker"

// StatusOf returns the status of the answer to a request that was refused with err, and
// when trying again makes sense: in whole seconds, 0 for never.
func StatusOf(err error) (status int, retryAfter time.Duration) {
	var known *refused
	r := refusalFor(err)
	if errors.As(err, &known) {
		r = known.refusal // it may have a status of its own
	}
	return r.Status, time.Duration(r.RetryAfter) * time.Second
}

// refusalFor is the answer to a request that must not run because of err.
func refusalFor(err error) *Refusal {
	var busy *core.BusyError
	switch {
	case errors.As(err, &busy) && busy.Done:
		return conflict(busy.RetryAfter, "A request for the same resource was processed just now.", err)
	case errors.As(err, &busy):
		return conflict(busy.RetryAfter, "Another request for the same resource is being processed.", err)
	case errors.Is(err, core.ErrNotAcquired) && errors.Is(err, context.Canceled):
		return &Refusal{Status: statusClientGone, Err: err}
	case errors.Is(err, core.ErrNotAcquired): // the request's deadline came first
		return conflict(time.Second, "Another request for the same resource is being processed.", err)
	case errors.Is(err, core.ErrUnavailable), errors.Is(err, core.ErrClosed), errors.Is(err, core.ErrLost),
		errors.Is(err, core.ErrMaxHold):
		return &Refusal{
			Status:     http.StatusServiceUnavailable,
			RetryAfter: 1,
			Detail:     "The service cannot process this request at the moment.",
			Err:        err,
		}
	case isSetup(err):
		return setup(err)
	}
	if status, detail := whyNoKey(err); status != 0 {
		return noKey(status, detail, err)
	}
	return setup(err)
}

// refusalForKey is refusalFor where err comes from the key function, which may be one of
// the user's own.
func refusalForKey(err error) *Refusal {
	if status, _ := whyNoKey(err); status == 0 && !isSetup(err) {
		return noKey(http.StatusBadRequest, malformed, err)
	}
	return refusalFor(err)
}

func setup(err error) *Refusal {
	return &Refusal{Status: http.StatusInternalServerError, Err: err, reason: "setup"}
}

func noKey(status int, detail string, err error) *Refusal {
	return &Refusal{Status: status, Detail: detail, Err: err, reason: "invalid_key"}
}

const malformed = "A part of the request is malformed."

func conflict(after time.Duration, detail string, err error) *Refusal {
	return &Refusal{
		Status:     http.StatusConflict,
		RetryAfter: max(1, int((after+time.Second-1)/time.Second)),
		Detail:     detail,
		Err:        err,
	}
}

// isSetup reports whether the program is set up wrongly, which no client can mend.
func isSetup(err error) bool {
	var setup setupError
	return errors.As(err, &setup) || errors.Is(err, keyfunc.ErrNotSetUp)
}

// whyNoKey explains to the client, in fixed texts, why there is no key. The status is 0 when
// err is about something else.
func whyNoKey(err error) (status int, detail string) {
	for _, why := range []struct {
		kind   error
		status int
		detail string
	}{
		{keyfunc.ErrTooLarge, http.StatusRequestEntityTooLarge, "The request body is too large."},
		{keyfunc.ErrMissing, http.StatusBadRequest, "A required part of the request is missing."},
		{keyfunc.ErrRepeated, http.StatusBadRequest, "A part of the request is given more than once."},
		{keyfunc.ErrLetterCase, http.StatusBadRequest, "The name of a part of the request is in another letter case."},
		{keyfunc.ErrPath, http.StatusBadRequest, "The path has escapes, or empty or dot segments, so that it can be read in two ways."},
		{keyfunc.ErrNotJSON, http.StatusBadRequest, "The body is not declared as JSON: it needs one Content-Type, application/json."},
		{keyfunc.ErrAmbiguous, http.StatusBadRequest, "A part of the request can be read in two ways."},
		{keyfunc.ErrMalformed, http.StatusBadRequest, malformed},
		{core.ErrInvalidKey, http.StatusBadRequest, "A part of the request is too long."},
	} {
		if errors.Is(err, why.kind) {
			return why.status, why.detail
		}
	}
	return 0, ""
}
