package lease

import (
	"context"
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/life"
	"github.com/latchkey-go/latchkey/core/internal/option"
	"github.com/latchkey-go/latchkey/core/internal/schedule"
	"github.com/latchkey-go/latchkey/core/internal/store"
	"github.com/latchkey-go/latchkey/internal/limitedlog"
)

// Backend is what the leases of a Locker, and the calls that want them, share.
type Backend struct {
	Store     store.Locks
	Timeout   time.Duration   // of one request
	Log       *limitedlog.Log // what no caller can be told
	Scheduler *schedule.Scheduler
}

// Problem logs what may have done harm.
func (b *Backend) Problem(ctx context.Context, kind string, args ...any) {
	b.Log.Limited(ctx, slog.LevelError, kind, args...)
}

// Warn logs what may recover by itself.
func (b *Backend) Warn(ctx context.Context, kind string, args ...any) {
	b.Log.Limited(ctx, slog.LevelWarn, kind, args...)
}

// ReportRelease logs that a release has failed of which nobody else hears.
func (b *Backend) ReportRelease(ctx context.Context, err error, keys ...string) {
	for _, key := range keys {
		b.Warn(ctx, "a release failed after the work was done", "key", key, "error", err)
	}
}

// Errors makes the errors that callers see of what has happened to a lock.
type Errors interface {
	Lost(key string, ended life.State) error
	Overdue(key string) error
	NotHeld(key string) error
	Closed(doing, key string) error
	HandedOver(key string) error
	CannotBe(done, key, why string) error
	Unavailable(doing, key string, cause error) error
	Unanswered(ctx context.Context, doing, key string, cause error) error // of a request that does no harm when its outcome is unknown
}

// Observer hears what becomes of a lease. The mutex of the lease is not held, but for the last one.
type Observer interface {
	Acquired(ctx context.Context, reentry bool) context.Context // returns the context to work under
	Overdue(err error)
	Lost(reason string, err error)
	RenewalFailed(err error)
	Released()
	Releasing(mode option.ReleaseMode, unconfirmed error) // before Released; why Redis has not confirmed it
}
