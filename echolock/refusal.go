package echolock

import (
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
)

type onRefused func(c echo.Context, err error) error

// everywhere answers refusals where nobody else does; nil: the problem body.
var everywhere atomic.Pointer[onRefused]

// SetOnRefused has f answer the refusals of all guards of this package that have no
// OnRefused of their own: the house's error format, once for the process, as
// [core.SetDefault] sets the Locker. It is looked up for each request. nil takes it away.
// Safe for concurrent use. See [Config] for what f finds and has to do.
func SetOnRefused(f func(c echo.Context, err error) error) {
	if f == nil {
		everywhere.Store(nil)
		return
	}
	own := onRefused(f)
	everywhere.Store(&own)
}

// OnRefused is Config.OnRefused as an option of the By functions.
func OnRefused(f func(c echo.Context, err error) error) core.Option {
	return core.ForWrapper(onRefused(f))
}

// Strict is Config.Strict as an option of [ByParam].
func Strict() core.Option { return guard.Strict() }

// StatusOf returns the HTTP status that a refusal has, from the error that OnRefused gets or
// that a call of core or of a keyfunc has returned, and when trying again makes sense: in
// whole seconds, 0 where it does not. 400 and 413: there is no key; 409: the lock is busy, or
// what Config.Status says; 499: the client has left; 500: the program is set up wrongly, or
// err is of another kind; 503: Redis does not answer, the Locker closes or the lock was lost.
func StatusOf(err error) (status int, retryAfter time.Duration) { return guard.StatusOf(err) }

// answerer chooses who answers a refusal: nil for the problem body.
func (f onRefused) answerer() onRefused {
	if f == nil {
		if set := everywhere.Load(); set != nil {
			return *set
		}
	}
	return f
}
