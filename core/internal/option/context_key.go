package option

import "context"

// ContextKey is where a context of string keys has its lock.
const ContextKey = "github.com/latchkey-go/latchkey/core.Lock"

// Held calls visit with each lock that a context holds, a *core.Lock, the innermost first.
var Held func(ctx context.Context, visit func(lock any))
