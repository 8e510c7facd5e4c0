package option

// ContextKey is where a context of string keys has its lock.
const ContextKey = "github.com/latchkey-go/latchkey/core.Lock"
