package adapter

import (
	"context"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/internal/option"
)

// ContextKey is a second place where ownership is looked for, besides the
// context's own: the *core.Lock stored under this string key. Frameworks whose
// request object is a context that shows string keys only, as gin's does, store
// the lock there, so that locks taken under that object re-enter.
const ContextKey = option.ContextKey

// LocksOf returns the locks that ctx holds, the innermost first, as [core.FromContext] and
// [core.FromContextKey] find them. It does not block.
func LocksOf(ctx context.Context) []*core.Lock { return inside.LocksOf(ctx) }
