package connectlock

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// refusal is connect's error, whose text is fixed, and the reason for interceptors outside.
type refusal struct {
	answer *connect.Error
	reason error
}

func (r *refusal) Error() string   { return r.answer.Error() }
func (r *refusal) Unwrap() []error { return []error{r.answer, r.reason} }

// keyError says that a call has no key.
type keyError struct{ error }

func (e *keyError) Unwrap() error { return e.error }

// refuse returns the answer to a call that does not run, and reports it to Observers and the log.
func (g *guard[M]) refuse(ctx context.Context, err error) error {
	answer := answerOf(err)
	locker := g.locker()
	if locker != nil {
		adapter.Notify(ctx, locker, core.Event{Kind: core.EventRefused, Err: err}, g.options...)
	}
	if answer.answer.Code() == connect.CodeInternal {
		g.told.Do(func() {
			adapter.LoggerOf(locker).ErrorContext(context.WithoutCancel(ctx),
				"latchkey: a call was refused because the interceptor is misconfigured", "procedure", g.procedure, "error", err)
		})
	}
	return answer
}

// answerOf returns what a client may be told of err. A busy lock is Aborted, the code of a conflict with another call: to be
// tried again by whoever knows whether it still makes sense. Clients are set up to repeat Unavailable by themselves,
// which would not make the queue shorter.
func answerOf(err error) *refusal {
	code, text, after := connect.CodeInternal, "the service is set up wrongly", time.Duration(0)
	var busy *core.BusyError
	var other *core.LockError
	var key *keyError
	switch {
	case errors.As(err, &key), errors.Is(err, core.ErrInvalidKey):
		code, text = connect.CodeInvalidArgument, "a required part of the request is missing or malformed"
	case errors.Is(err, core.ErrNoPermit) && errors.As(err, &busy):
		code, text, after = connect.CodeResourceExhausted, "too many calls for the same resource are being processed", busy.RetryAfter
	case errors.As(err, &busy):
		code, after = connect.CodeAborted, busy.RetryAfter
		text = "another call for the same resource is being processed, or was processed just now"
	case errors.Is(err, core.ErrNotAcquired): // the call's context ended while it waited
		code, text = connect.CodeCanceled, "canceled while waiting for another call"
		if errors.Is(err, context.DeadlineExceeded) {
			code, text = connect.CodeDeadlineExceeded, "deadline exceeded while waiting for another call"
		}
	case errors.Is(err, core.ErrUpgrade): // of a guard inside of another
	case isCore(err):
		code, text, after = connect.CodeUnavailable, "the service cannot process this call at the moment", time.Second
		if errors.As(err, &other) { // Redis is overloaded
			after = max(after, other.RetryAfter)
		}
	}
	answer := connect.NewError(code, errors.New(text))
	if after > 0 {
		answer.Meta().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
		if detail, err := connect.NewErrorDetail(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)}); err == nil {
			answer.AddDetail(detail)
		}
	}
	return &refusal{answer, err}
}

// conceal returns the error of a handler as the client may see it. connect answers with the text of any error, and
// CodeUnknown, also core's: of a lock that the handler wanted, or of its own that was lost. all is the failure and what
// became of the lock.
func conceal(failure, all error) error {
	var chosen *connect.Error
	if errors.As(failure, &chosen) || !isCore(all) {
		return failure
	}
	return answerOf(all)
}

// isCore reports whether err is one of core's.
func isCore(err error) bool {
	var busy *core.BusyError
	var other *core.LockError
	return errors.As(err, &busy) || errors.As(err, &other)
}
