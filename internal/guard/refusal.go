package guard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Refusal is the answer to a request that must not run, and the error for those who answer in
// place of it. The text of the error may be shown to anybody; StatusOf and ReasonOf know it.
type Refusal struct {
	Status     int    // of HTTP
	RetryAfter int    // in whole seconds, 0 for none
	Code       string // a fixed word for the client's program
	Detail     string // a fixed text for the client
	Part       string // the program's name of the part without which there is no key; empty: it is not known, or does not matter

	title   string        // of the problem of an idempotent request; empty: it is another one
	event   string        // the reason that Observers get; empty: what the cause says
	cause   error         // for the server
	waited  time.Duration // before the refusal
	options []core.Option // of the lock; nil: those of all requests
	stored  *storedAnswer // is sent in place of all this
}

func (r *Refusal) Error() string { return r.Detail }
func (r *Refusal) Unwrap() error { return r.cause }

// LogValue has package slog log the cause, too.
func (r *Refusal) LogValue() slog.Value { return slog.StringValue(core.Detail(r)) }

// statusClientGone is never seen by a client; it keeps access logs honest.
const statusClientGone = 499

// Each refusal that is not about the key.
var (
	done = Refusal{Status: http.StatusConflict, Code: "done",
		Detail: "A request for the same resource was processed just now."}
	occupied = Refusal{Status: http.StatusConflict, Code: "busy",
		Detail: "Another request for the same resource is being processed."}
	tooMany = Refusal{Status: http.StatusTooManyRequests, Code: "too_many",
		Detail: "Too many requests for the same resource are being processed."}
	unavailable = Refusal{Status: http.StatusServiceUnavailable, Code: "unavailable", RetryAfter: 1,
		Detail: "The service cannot process this request at the moment."}
	clientGone = Refusal{Status: statusClientGone, Code: "gone", event: "canceled",
		Detail: "The client has left."}
	misconfigured = Refusal{Status: http.StatusInternalServerError, Code: "internal", event: "setup",
		Detail: "The service cannot process this request."}
	reused = Refusal{Status: http.StatusUnprocessableEntity, Code: "reused",
		title:  "Idempotency-Key is already used",
		Detail: "Another request was sent with this Idempotency-Key: use a new one."}
	outcomeUnknown = Refusal{Status: http.StatusConflict, Code: "outcome_unknown",
		title:  "The outcome of an earlier request is unknown",
		Detail: "This request may have been processed: nobody knows."}
	notReplayable = Refusal{Status: http.StatusConflict, Code: "not_replayable", event: "answered",
		title:  "The answer is not replayable",
		Detail: "This request was processed, but the answer cannot be sent again."}
)

// because returns the refusal with its cause.
func (r Refusal) because(err error) *Refusal {
	r.cause = err
	return &r
}

// after returns a refusal that trying again makes sense after.
func (r Refusal) after(d time.Duration) Refusal {
	r.RetryAfter = max(1, int((d+time.Second-1)/time.Second))
	return r
}

// isBusy reports whether the lock is, so that the configuration may have another status.
func (r *Refusal) isBusy() bool {
	return (r.Status == http.StatusConflict || r.Status == http.StatusTooManyRequests) && r.RetryAfter > 0
}

// setupError says how to fix the configuration.
type setupError string

func (e setupError) Error() string { return string(e) }

const (
	errNoLocker setupError = "no Locker: give one to With, or call core.SetDefault"
	errNested   setupError = "a guard inside of another wants its lock in another form and would wait for itself: " +
		"let the outer one have the lock alone, or leave one of them out"
)

// errNotReplayable is why a request is refused that was answered before.
var errNotReplayable = errors.New("latchkey: the answer of the first request cannot be sent again")

// isSetup reports whether the program is misconfigured, which no client can fix.
func isSetup(err error) bool {
	var setup setupError
	return errors.As(err, &setup) || errors.Is(err, keyfunc.ErrNotSetUp) || errors.Is(err, keyfunc.ErrBodyRead)
}

// refusalFor is the answer to a request that must not run because of err, or was refused
// with err, which may have a status of its own.
func refusalFor(err error) *Refusal {
	if known := (*Refusal)(nil); errors.As(err, &known) {
		return known
	}
	retry := time.Second // the request's deadline came first
	busy := (*core.BusyError)(nil)
	if errors.As(err, &busy) {
		retry = busy.RetryAfter
	}
	var failed *core.LockError
	switch is := func(target error) bool { return errors.Is(err, target) }; {
	case busy != nil && busy.Done:
		return done.after(retry).because(err)
	case busy == nil && is(core.ErrNotAcquired) && is(context.Canceled):
		return clientGone.because(err)
	case is(core.ErrNotAcquired) && is(core.ErrNoPermit):
		return tooMany.after(retry).because(err)
	case is(core.ErrNotAcquired):
		return occupied.after(retry).because(err)
	case is(core.ErrOverloaded) && errors.As(err, &failed):
		return unavailable.after(failed.RetryAfter).because(err)
	case is(core.ErrUnavailable), is(core.ErrClosed), is(core.ErrLost), is(core.ErrMaxHold):
		return unavailable.because(err)
	case is(adapter.ErrReused):
		return reused.because(err)
	case is(adapter.ErrOutcomeUnknown):
		return outcomeUnknown.because(err)
	case is(errNotReplayable):
		return notReplayable.because(err)
	case is(core.ErrUpgrade):
		return misconfigured.because(fmt.Errorf("%w: %w", errNested, err))
	case isSetup(err):
		return misconfigured.because(err)
	}
	if r, ok := withoutKey(err); ok {
		return r.because(err)
	}
	return misconfigured.because(err)
}

// refusalForKey is refusalFor where err comes from the key function, which may be one of
// the user's own.
func refusalForKey(err error) *Refusal {
	r, ok := withoutKey(err)
	if !ok {
		r, _ = withoutKey(keyfunc.ErrMalformed)
	}
	return r.because(err)
}

var badKeyText = fmt.Sprintf("An Idempotency-Key is 1 to %d visible ASCII characters.", maxKeyBytes)

// noKey are the reasons for which a request has no key: the first that an error is counts.
var noKey = []struct {
	err                 error
	code, detail, title string
}{
	{keyfunc.ErrTooLarge, "too_large", "The request body is too large.", ""},
	{errNoKey, "missing", "This request needs an Idempotency-Key.", "Idempotency-Key is missing"},
	{errBadKey, "malformed", badKeyText, "Idempotency-Key is malformed"},
	{keyfunc.ErrMissing, "missing", "A required part of the request is missing.", ""},
	{keyfunc.ErrRepeated, "repeated", "A part of the request is given more than once.", ""},
	{keyfunc.ErrLetterCase, "letter_case", "The name of a part of the request is in another letter case.", ""},
	{keyfunc.ErrPath, "path", "The path has escapes, or empty or dot segments, so that it can be read in two ways.", ""},
	{keyfunc.ErrNotJSON, "not_json", "The body is not declared as JSON: it needs one Content-Type, application/json.", ""},
	{keyfunc.ErrAmbiguous, "ambiguous", "A part of the request can be read in two ways.", ""},
	{keyfunc.ErrMalformed, "malformed", "A part of the request is malformed.", ""},
	{core.ErrInvalidKey, "too_long", "A part of the request is too long.", ""},
}

// withoutKey is the refusal of a request that has no key; not ok when err is about something else.
func withoutKey(err error) (r Refusal, ok bool) {
	for _, why := range noKey {
		if errors.Is(err, why.err) {
			r = Refusal{Status: http.StatusBadRequest, Code: why.code, Detail: why.detail, title: why.title, event: "invalid_key"}
			r.Part = keyfunc.PartName(err)
			if why.err == keyfunc.ErrTooLarge {
				r.Status = http.StatusRequestEntityTooLarge
			}
			return r, true
		}
	}
	return r, false
}

// StatusOf returns the status of the answer to a request that was refused with err, and
// when trying again makes sense: in whole seconds, 0 for never.
func StatusOf(err error) (status int, retryAfter time.Duration) {
	r := refusalFor(err)
	return r.Status, time.Duration(r.RetryAfter) * time.Second
}

// ReasonOf returns why a request was refused with err: a word and a text, both fixed.
func ReasonOf(err error) (code, text string) {
	r := refusalFor(err)
	return r.Code, r.Detail
}

// PartOf returns the name of the part of a request without which it was refused with err.
func PartOf(err error) string { return refusalFor(err).Part }

// IsFixed reports that nobody else may answer in place of Write: the client has left, or there
// is a stored answer.
func (r *Refusal) IsFixed() bool { return r.Status == statusClientGone || r.stored != nil }

const (
	problemType = "application/problem+json"
	// idempotencyProblem is the type of the problems that the draft knows, and of ours.
	idempotencyProblem = "https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header"
)

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
	Code   string `json:"code,omitempty"`
	Part   string `json:"part,omitempty"`
}

// Body returns the body.
func (r *Refusal) Body() *Body {
	title := cmp.Or(r.title, http.StatusText(r.Status))
	p := problem{Type: "about:blank", Title: title, Status: r.Status, Detail: r.Detail, Code: r.Code, Part: r.Part}
	if r.title != "" {
		p.Type = idempotencyProblem
	}
	return &Body{problem: p}
}

// MarshalJSON writes the body.
func (b *Body) MarshalJSON() ([]byte, error) {
	b.used = true
	return json.Marshal(b.problem)
}

// String is for error handlers that want a line of text.
func (b *Body) String() string { return b.problem.Detail }

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

// Write answers with the refusal. A client that has left gets the status only.
func (r *Refusal) Write(w http.ResponseWriter) {
	switch {
	case r.stored != nil:
		r.stored.write(w)
		return
	case r.IsFixed():
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
