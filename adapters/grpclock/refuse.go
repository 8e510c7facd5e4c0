package grpclock

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/latchkey-go/latchkey/core"
)

// refusal is a fixed text for the client, and the reason for interceptors outside.
type refusal struct {
	status *status.Status
	reason error
}

// Error does not print the reason, which names the key.
func (r *refusal) Error() string              { return r.status.Err().Error() }
func (r *refusal) Unwrap() error              { return r.reason }
func (r *refusal) GRPCStatus() *status.Status { return r.status }

// keyError says that a call has no key.
type keyError struct{ error }

func (e *keyError) Unwrap() error { return e.error }

// refuse says to the client what err may say. A busy lock is Aborted, the code of a
// conflict with another call and HTTP's 409: to be tried again by whoever knows whether
// it still makes sense. ResourceExhausted is about quotas, and clients are set up to
// repeat Unavailable by themselves, which would not make the queue shorter.
func refuse(err error) error {
	code, text, after := codes.Internal, "the service is set up wrongly", time.Duration(0)
	var busy *core.BusyError
	var key *keyError
	switch {
	case errors.As(err, &key), errors.Is(err, core.ErrInvalidKey):
		code, text = codes.InvalidArgument, "a required part of the request is missing or malformed"
	case errors.As(err, &busy):
		code, text, after = codes.Aborted, "another call for the same resource is being processed, or was processed just now", busy.RetryAfter
	case errors.Is(err, core.ErrNotAcquired): // the call's context ended while it waited
		code, text = codes.Canceled, "canceled while waiting for another call"
		if errors.Is(err, context.DeadlineExceeded) {
			code, text = codes.DeadlineExceeded, "deadline exceeded while waiting for another call"
		}
	case isCore(err):
		code, text, after = codes.Unavailable, "the service cannot process this call at the moment", time.Second
	}
	s := status.New(code, text)
	if after > 0 {
		if detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)}); err == nil {
			s = detailed
		}
	}
	return &refusal{s, err}
}

// conceal returns the error of a handler as the client may see it. gRPC sends the text
// of any error, and core's have the key in them: of a lock that the handler wanted, or
// of its own that was lost. all is the failure and what became of the lock.
func conceal(failure, all error) error {
	if _, chosen := status.FromError(failure); chosen || !isCore(all) {
		return failure
	}
	return refuse(all)
}

// isCore reports whether err is one of core's.
func isCore(err error) bool {
	kinds := []error{core.ErrNotAcquired, core.ErrLost, core.ErrNotHeld, core.ErrClosed, core.ErrMaxHold, core.ErrUnavailable, core.ErrInvalidKey}
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}
