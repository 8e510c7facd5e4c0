package adapter

import (
	"context"

	"github.com/latchkey-go/latchkey/core"
)

// Notify tells the Observers of a Locker of an event that only an adapter knows:
// [core.EventRefused], when it does not run a request or task. opts are those of the lock. Form is
// taken from opts, Name too if e has none, and Reason from Err if e has none. It blocks for as long
// as the Observers do. With a bad option it does nothing.
func Notify(ctx context.Context, locker *core.Locker, e core.Event, opts ...core.Option) {
	inside.Notify(ctx, locker, e, opts)
}
