package fiberlock

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/gofiber/fiber/v3"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/httplock"
)

// refusal is fiber's error, whose text is fixed, and the reason for the ErrorHandler of
// the application, which may answer in its own form.
type refusal struct {
	answer *fiber.Error
	reason error
}

func (r *refusal) Error() string   { return r.answer.Message }
func (r *refusal) Unwrap() []error { return []error{r.answer, r.reason} }

// refuse returns the answer to a request that does not run, and reports it to Observers and the log.
func (g *guard) refuse(c fiber.Ctx, err error, opts []core.Option) error {
	answer := answerOf(c, err)
	locker := g.locker()
	if locker != nil {
		adapter.Notify(c.Context(), locker, core.Event{Kind: core.EventRefused, Status: answer.answer.Code, Err: err}, opts...)
	}
	if answer.answer.Code == http.StatusInternalServerError {
		g.told.Do(func() {
			adapter.LoggerOf(locker).ErrorContext(context.WithoutCancel(c.Context()),
				"latchkey: a request was refused because the middleware is misconfigured", "route", c.Route().Path, "error", err)
		})
	}
	return answer
}

// answerOf returns what a client may be told of err.
func answerOf(c fiber.Ctx, err error) *refusal {
	status, retryAfter := httplock.StatusOf(err)
	if retryAfter > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(int(retryAfter.Seconds())))
	}
	_, text := httplock.ReasonOf(err)
	return &refusal{fiber.NewError(status, text), err}
}

// conceal returns the error of a handler as the client may see it. fiber's own ErrorHandler answers 500 to any error but its
// own, also to core's: of a lock that the handler wanted, or of its own that was lost. all is the failure and what
// became of the lock.
func conceal(c fiber.Ctx, failure, all error) error {
	var chosen *fiber.Error
	var busy *core.BusyError
	var other *core.LockError
	if errors.As(failure, &chosen) || !errors.As(all, &busy) && !errors.As(all, &other) {
		return failure
	}
	return answerOf(c, all)
}
