package option

import (
	"context"
	"time"
)

// HandOver is core's: it hands a *core.Lock over by that ticket, and takes it back when then
// fails.
var HandOver func(ctx context.Context, lock any, ticket string, ttl time.Duration, then func() error) error

// Notify is core's: it has the Observers of a *core.Locker told of a core.Event of calls with some
// options, a []core.Option.
var Notify func(ctx context.Context, locker, event, opts any)

// ReleasesLater is core's: it says so of calls of a *core.Locker with some options, a
// []core.Option.
var ReleasesLater func(locker, opts any) bool
