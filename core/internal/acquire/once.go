package acquire

import (
	"time"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// OnceDigest is in Redis what the digest of a request is for others, all of which are longer.
const OnceDigest = "6f6e6365"

// takesFailures says that the call is one of Once that ends with the error of a run for which it has waited.
func (c *spec) takesFailures() bool {
	a := c.settings.Attempt
	return a != nil && a.Request == OnceDigest && !c.settings.OwnFailures
}

// FailedRun is the error of another call's run, at a time, for calls that have waited for its result since before.
type FailedRun struct {
	Cause error
	at    time.Time
}

func (f FailedRun) Error() string { return f.Cause.Error() }

// FailWaiting tells the calls that wait for a lock of the error of a run.
func (a *Acquirer) FailWaiting(name store.Name, err error) { a.queues.Fail(name.Lock(), err) }
