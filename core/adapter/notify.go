package adapter

import (
	"context"

	"github.com/latchkey-go/latchkey/core"
)

// Notify has the Observers of a Locker told of an event that only an adapter knows of: of
// [core.EventRefused], when a request or task is not run. Form is taken from opts, which
// are those of the lock, and so is Name where e has none, and Reason from Err. It blocks for as
// long as they do. With an Option that is bad it does nothing.
func Notify(ctx context.Context, locker *core.Locker, e core.Event, opts ...core.Option) {
	inside.Notify(ctx, locker, e, opts)
}
