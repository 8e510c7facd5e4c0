package store

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// Locks is what is asked of a [Store], in whose place tests of the rooms above have others.
type Locks interface {
	NewHold() string
	Acquire(context.Context, *Claim) (Acquired, error)
	LateCopies(*Claim) *conn.Resends
	Renew(w Renew, timeout time.Duration, to RenewalRecipient)
	Refresh(context.Context, Renew) (held bool, sent time.Time, err error)
	Release(ctx context.Context, r Release, timeout time.Duration) (Released, error)
	NewBackgroundRelease(r Release, to Recipient) *BackgroundRelease
	Compensate(Release)
	AcquireAll(ctx context.Context, cs []Claim, allOrNone bool) []Result[Acquired]
	ReleaseAll(ctx context.Context, rs []*Release, timeout time.Duration) []Result[Released]
	Inspect(context.Context, Name, bool) (Inspection, error)
	Force(ctx context.Context, n Name, owner *string) (bool, error)
	FindDivided(ctx context.Context, prefix string) error
	IsSilent(time.Duration) bool
	Servers() []*conn.Server
	Stop()
	SharesRedis(other Locks) bool
	Flush()

	// Not of a quorum.
	HandOver(context.Context, HandOver) error
	TakeBack(ctx context.Context, h HandOver, left time.Duration) (sent time.Time, err error)
	CompensateHandOver(context.Context, HandOver)
	Downgrade(context.Context, Renew) (sent time.Time, mayArrive bool, err error)

	// How the two differ, beyond how they do it.
	IsQuorum() bool
	HandOffNeedsRedis() bool
	Margin(lease time.Duration) time.Duration
}
