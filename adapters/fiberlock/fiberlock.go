// Package fiberlock guards handlers of fiber with a distributed lock: of all requests
// with the same key, one at a time runs, across every process.
//
// It is an example of an adapter that is written with what latchkey exports. Copy it.
package fiberlock

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// errFailed makes core drop the dedup window after a handler that failed.
var errFailed = errors.New("fiberlock: the handler failed")

// By locks by a key. Put it on the route, after authentication; by a path parameter it
// does nothing but refuse in app.Use, where the route is not known. Handlers work under
// c.Context(), which is cancelled when the lock is lost; c itself is never done.
//
// Unless opts say otherwise a request waits up to 3 s. A nil Locker is [core.Default],
// looked up for each request. By panics when key is nil or an option is bad.
//
// fasthttp does not tell that a client has left: its request waits on, and then runs,
// unless middleware outside ends the context.
func By(locker *core.Locker, key keyfunc.Func[keyfunc.Request], opts ...core.Option) fiber.Handler {
	if key == nil {
		panic("fiberlock: the key function is nil")
	}
	if err := adapter.Validate(opts...); err != nil {
		panic("fiberlock: bad option: " + err.Error())
	}
	opts = append([]core.Option{adapter.Fallback(core.Wait(3*time.Second), core.MaxWaiters(256))}, opts...)
	return func(c fiber.Ctx) error {
		r := &request{c: c}
		name, err := key(r)
		if err == nil {
			err = r.checkPath()
		}
		switch {
		case err != nil && r.misplaced != nil:
			return refuse(c, r.misplaced)
		case errors.Is(err, keyfunc.ErrSkip):
			return c.Next()
		case err != nil:
			return refuse(c, err)
		}
		locker := cmp.Or(locker, core.Default())
		if locker == nil {
			return refuse(c, errors.New("fiberlock: no Locker: call core.SetDefault"))
		}
		// Texts of fiber are overwritten by the next request, and the lock's name is
		// needed longer: a release goes on in the background when Redis is slow.
		name = strings.Clone(name)
		var failure error
		ran, err := adapter.Do(c.Context(), locker, name, func(ctx context.Context) error {
			failure = next(c, ctx)
			if failure == nil && (c.Response().StatusCode() >= http.StatusBadRequest || isSilent(c, ctx)) {
				return errFailed
			}
			return failure
		}, opts...)
		switch {
		case !ran:
			return refuse(c, err)
		case failure != nil && isCore(err):
			return conceal(c, failure, err)
		default:
			return failure // what went wrong with the lock meanwhile, core has logged
		}
	}
}

// next runs the rest of the chain under ctx. Afterwards the request has its own context
// back, for the middleware outside: the lock's is cancelled by then.
func next(c fiber.Ctx, ctx context.Context) error {
	outer, before := c.Context(), c.Locals(adapter.ContextKey)
	defer func() {
		c.SetContext(outer)
		c.Locals(adapter.ContextKey, before)
	}()
	c.SetContext(ctx)
	if lock, held := core.FromContext(ctx); held {
		c.Locals(adapter.ContextKey, lock) // a lock that is taken with c itself re-enters
	}
	return c.Next()
}

// isSilent reports whether the handler has answered nothing, although its context is over: that is no success. A bare
// status of 200 cannot be told from nothing.
func isSilent(c fiber.Ctx, ctx context.Context) bool {
	r := c.Response()
	return ctx.Err() != nil && r.StatusCode() == http.StatusOK && !r.IsBodyStream() && len(r.Body()) == 0
}

// refusal is fiber's error, whose text is fixed, and the reason for the ErrorHandler of
// the application, which may answer in its own form.
type refusal struct {
	answer *fiber.Error
	reason error
}

func (r *refusal) Error() string   { return r.answer.Message }
func (r *refusal) Unwrap() []error { return []error{r.answer, r.reason} }

func refuse(c fiber.Ctx, err error) error {
	status, retryAfter := httplock.StatusOf(err)
	if retryAfter > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(int(retryAfter.Seconds())))
	}
	return &refusal{fiber.NewError(status), err}
}

// conceal returns the error of a handler as the client may see it. fiber's own
// ErrorHandler sends the text of any error, and core's have the key in them: of a lock
// that the handler wanted, or of its own that was lost. all is the failure and what
// became of the lock.
func conceal(c fiber.Ctx, failure, all error) error {
	var chosen *fiber.Error
	if errors.As(failure, &chosen) {
		return failure
	}
	return refuse(c, all)
}

// isCore reports whether err is one of core's.
func isCore(err error) bool {
	kinds := []error{core.ErrNotAcquired, core.ErrLost, core.ErrNotHeld, core.ErrClosed, core.ErrMaxHold, core.ErrUnavailable, core.ErrInvalidKey}
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}
