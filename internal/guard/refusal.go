package guard

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// statusClientGone is never seen by a client; it keeps access logs honest.
const statusClientGone = 499

// Refusal is the answer to a request that must not run.
type Refusal struct {
	// Status is the HTTP status.
	Status int
	// RetryAfter is in whole seconds, 0 for none.
	RetryAfter int
	// Code is a fixed word for the client's program.
	Code string
	// Detail is a fixed text for the client.
	Detail string
	// Err is the reason. Serve returns it so that its text may be shown to anybody; StatusOf
	// and ReasonOf know it.
	Err error

	kind, title string        // of the problem; empty: those of the status
	kept        *kept         // the answer of an earlier attempt, in place of all this
	reason      string        // as Observers are told; empty: what Err says
	waited      time.Duration // before it
	options     []core.Option // of its lock; nil: those of all requests
}

// refused is the error of a refusal, with the answer that it gets. Its text may be shown to
// anybody; why it was refused is behind Unwrap.
type refused struct {
	refusal *Refusal
	cause   error
}

func (e *refused) Error() string { return e.refusal.Detail }
func (e *refused) Unwrap() error { return e.cause }

// LogValue has package slog log the cause, too.
func (e *refused) LogValue() slog.Value { return slog.StringValue(core.Detail(e)) }

// IsFixed reports that nobody else may answer in place of Write: the client has left, or the
// answer is that of an earlier attempt.
func (r *Refusal) IsFixed() bool { return r.Status == statusClientGone || r.kept != nil }

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
	Code   string `json:"code,omitempty"`
}

// Body returns the body.
func (r *Refusal) Body() *Body {
	return &Body{problem: problem{
		Type: cmp.Or(r.kind, "about:blank"), Title: cmp.Or(r.title, http.StatusText(r.Status)), Status: r.Status, Detail: r.Detail, Code: r.Code,
	}}
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

// Write answers with the refusal. To a client that has left it writes the status
// only.
func (r *Refusal) Write(w http.ResponseWriter) {
	switch {
	case r.kept != nil:
		r.kept.write(w)
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
