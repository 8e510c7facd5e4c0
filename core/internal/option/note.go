package option

import (
	"context"
	"time"
)

// What core does beside a lock for adapters; locker is a *core.Locker.
var (
	AddNote   func(ctx context.Context, locker any, key, note string, keep time.Duration) error
	TakeNotes func(ctx context.Context, locker any, key string, most int) (notes []string, more bool, err error)
)
