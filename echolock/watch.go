package echolock

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/latchkey-go/latchkey/internal/guard"
)

// watch has what is written reported. Not by response, which does not notice Flush, and of which c.JSON sets the
// Status also when it has begun with another. It returns a function that compares what was reported with what echo
// knows in the end, of response and of the one that is in its place then.
func watch(response *echo.Response, outcome *guard.Outcome) (compare func(last *echo.Response)) {
	var watched http.ResponseWriter
	direct := true // no middleware inside changes the size of the body, such as by compression
	watched = guard.Watch(response.Writer, outcome, func() guard.Known {
		direct = direct && (watched == nil || response.Writer == watched)
		return guard.Known{Status: http.StatusOK}
	})
	response.Writer = watched
	return func(last *echo.Response) {
		for _, r := range []*echo.Response{response, last} {
			switch {
			case r.Committed && direct:
				outcome.Committed(r.Status, r.Size)
			case r.Committed:
				outcome.Committed(r.Status, -1)
			}
		}
	}
}
