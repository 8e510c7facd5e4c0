// Package hertzlock guards handlers of hertz with a distributed lock: of all requests
// with the same key, one at a time runs, across every process.
//
// It is an example of an adapter that is written with what latchkey exports. Copy it.
package hertzlock

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cloudwego/hertz/pkg/app"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// errFailed makes core drop the dedup window after a handler that failed.
var errFailed = errors.New("hertzlock: the handler failed")

// By locks by a key. Put it on the routes, or a group of them, after authentication.
// The context.Context of the handlers behind it is cancelled when the lock is lost, and
// locks that are taken with it re-enter.
//
// Unless opts say otherwise a request waits up to 3 s. A nil Locker is [core.Default],
// looked up for each request. By panics when key is nil or an option is bad.
//
// Give the server the option WithSenseClientDisconnection(true), so that a client that
// leaves ends its wait.
func By(locker *core.Locker, key keyfunc.Func[keyfunc.Request], opts ...core.Option) app.HandlerFunc {
	if key == nil {
		panic("hertzlock: the key function is nil")
	}
	if err := adapter.Validate(opts...); err != nil {
		panic("hertzlock: bad option: " + err.Error())
	}
	opts = append([]core.Option{adapter.Fallback(core.Wait(3*time.Second), core.MaxWaiters(256))}, opts...)
	return func(ctx context.Context, c *app.RequestContext) {
		r := &request{ctx: ctx, c: c}
		name, err := key(r)
		if err == nil {
			err = r.checkPath()
		}
		switch {
		case err != nil && r.misplaced != nil:
			refuse(c, r.misplaced)
			return
		case errors.Is(err, keyfunc.ErrSkip):
			c.Next(ctx)
			return
		case err != nil:
			refuse(c, err)
			return
		}
		locker := cmp.Or(locker, core.Default())
		if locker == nil {
			refuse(c, errors.New("hertzlock: no Locker: call core.SetDefault"))
			return
		}
		// The bytes of the request are overwritten by the next one, and the lock's name
		// is needed longer: a release goes on in the background when Redis is slow. The
		// name may consist of them where somebody made a text of them without a copy.
		name = strings.Clone(name)
		ran, err := adapter.Do(ctx, locker, name, func(ctx context.Context) error { return next(ctx, c) }, opts...)
		if !ran {
			refuse(c, err)
		} // else the handler has answered; what went wrong with the lock, core has logged
	}
}

// next runs the rest of the chain under ctx, and reports whether it has failed.
func next(ctx context.Context, c *app.RequestContext) error {
	failures := len(c.Errors)
	c.Next(ctx)
	if c.Response.StatusCode() >= http.StatusBadRequest || len(c.Errors) > failures || isSilent(ctx, c) {
		return errFailed
	}
	return nil
}

// isSilent reports whether the handler has answered nothing, although its context is over: that is no success. A bare
// status of 200 cannot be told from nothing.
func isSilent(ctx context.Context, c *app.RequestContext) bool {
	r := &c.Response
	return ctx.Err() != nil && r.StatusCode() == http.StatusOK && !r.IsBodyStream() && len(r.Body()) == 0
}

// refuse answers with a fixed text, and leaves the reason in c.Errors for the middleware
// outside.
func refuse(c *app.RequestContext, err error) {
	status, retryAfter := httplock.StatusOf(err)
	if retryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	}
	_ = c.Error(err)
	c.Abort()
	c.String(status, http.StatusText(status))
}
