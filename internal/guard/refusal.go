package guard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// statusClientGone is never seen by a client; it keeps access logs honest.
const statusClientGone = 499

var errNoLocker = errors.New("no Locker: call core.SetDefault, or set Config.Locker")

// Refusal is the answer to a request that must not run.
type Refusal struct {
	// Status is the HTTP status.
	Status int
	// RetryAfter is in whole seconds, 0 for none.
	RetryAfter int
	// Detail is a fixed text for the client.
	Detail string
	// Err is the reason, for the server only.
	Err error

	reason string // as Observers are told; empty: what Err says
}

// Gone reports that the client has left, so that there is nobody to answer.
func (r *Refusal) Gone() bool { return r.Status == statusClientGone }

const problemType = "application/problem+json"

// Body is the body of a refusal, as RFC 9457 defines it. It has no key, owner,
// address or Redis error in it. Where the framework's error handler writes the
// answer it notices whether it was used.
type Body struct {
	problem problem
	used    bool
}

type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// Body returns the body.
func (r *Refusal) Body() *Body {
	return &Body{problem: problem{Type: "about:blank", Title: http.StatusText(r.Status), Status: r.Status, Detail: r.Detail}}
}

// MarshalJSON writes the body.
func (b *Body) MarshalJSON() ([]byte, error) {
	b.used = true
	return json.Marshal(b.problem)
}

// String is for error handlers that want a line of text.
func (b *Body) String() string { return cmp.Or(b.problem.Detail, b.problem.Title) }

// Header names the type of the body, unless an error handler wrote another one.
func (b *Body) Header(h http.Header) {
	if b.used {
		h.Set("Content-Type", problemType)
	}
}

// RetryHeader sets Retry-After where trying again makes sense.
func (r *Refusal) RetryHeader(h http.Header) {
	if r.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(r.RetryAfter))
	}
}

// Write answers with the refusal. To a client that has left it writes the status
// only.
func (r *Refusal) Write(w http.ResponseWriter) {
	if r.Gone() {
		w.WriteHeader(r.Status)
		return
	}
	text, err := r.Body().MarshalJSON()
	if err != nil {
		panic(err) // strings and an integer always marshal
	}
	r.RetryHeader(w.Header())
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(r.Status)
	_, _ = w.Write(text) // a client that left meanwhile needs no answer
}

// refuseKey answers a request from which no key can be derived.
func refuseKey(err error) *Refusal {
	r := &Refusal{Status: http.StatusBadRequest, Detail: "A part of the request is malformed.", Err: err, reason: "invalid_key"}
	switch {
	case errors.Is(err, keyfunc.ErrTooLarge):
		r.Status, r.Detail = http.StatusRequestEntityTooLarge, "The request body is too large."
	case errors.Is(err, keyfunc.ErrMissing):
		r.Detail = "A required part of the request is missing."
	case errors.Is(err, keyfunc.ErrAmbiguous):
		r.Detail = "A part of the request is given more than once, or in a form that can be read in two ways; JSON needs the Content-Type application/json."
	}
	return r
}

// refuseSetup answers when the middleware is set up wrongly.
func (g *Guard) refuseSetup(err error) *Refusal {
	g.log(slog.LevelError, "latchkey: a request was refused because the middleware is set up wrongly", err)
	return &Refusal{Status: http.StatusInternalServerError, Err: err, reason: "setup"}
}

// refuseLock answers when the lock could not be taken.
func (g *Guard) refuseLock(ctx context.Context, err error) *Refusal {
	var busy *core.BusyError
	switch {
	case errors.As(err, &busy):
		return g.conflict(busy.RetryAfter, err)
	case errors.Is(ctx.Err(), context.Canceled):
		return &Refusal{Status: statusClientGone, Err: err}
	case errors.Is(err, core.ErrNotAcquired): // the request's deadline came first
		return g.conflict(time.Second, err)
	case errors.Is(err, core.ErrInvalidKey):
		return refuseKey(err)
	case errors.Is(err, core.ErrUnavailable), errors.Is(err, core.ErrClosed), errors.Is(err, core.ErrLost),
		errors.Is(err, core.ErrMaxHold):
		g.log(slog.LevelWarn, "latchkey: requests are refused", err)
		return &Refusal{
			Status:     http.StatusServiceUnavailable,
			RetryAfter: 1,
			Detail:     "The service cannot process this request at the moment.",
			Err:        err,
		}
	default:
		return g.refuseSetup(err)
	}
}

func (g *Guard) conflict(after time.Duration, err error) *Refusal {
	status := g.config.Status
	if status == 0 {
		status = http.StatusConflict
	}
	return &Refusal{
		Status:     status,
		RetryAfter: max(1, int((after+time.Second-1)/time.Second)),
		Detail:     "Another request for the same resource is being processed, or was processed just now.",
		Err:        err,
	}
}
