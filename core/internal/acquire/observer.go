package acquire

import (
	"context"

	"github.com/latchkey-go/latchkey/core/internal/lease"
	"github.com/latchkey-go/latchkey/core/internal/option"
)

// Observers hear what becomes of calls.
type Observers interface {
	// Wants is called by a call that wants the lock of a key, of so many. It goes on with the context. The observer is nil where nobody hears.
	Wants(ctx context.Context, key string, keys int, s *option.Settings) (context.Context, Observer)
	GrantMissed()
	Compensating(key string)
	Compensated(key string)
}

// Observer hears what becomes of one call, and then of its lease.
type Observer interface {
	lease.Observer
	Failed(error)
}

// concluded tells an observer, unless it is nil, what a call has come to: the lock, or an error. It returns that.
func concluded(o Observer, h *lease.Handle, err error) (*lease.Handle, error) {
	if err == nil {
		h.Observe(h.Context(), o)
	} else if o != nil {
		o.Failed(err)
	}
	return h, err
}
