package core

import (
	"sync"

	"github.com/redis/go-redis/v9"
)

// once is a command that go-redis must not send again by itself: a lost reply
// would run a script twice, on a cluster even with retries switched off. It
// notices when go-redis is about to write it.
type once struct {
	*redis.Cmd
	flight *flight
}

// NoRetry keeps go-redis from sending the command again.
func (once) NoRetry() bool { return true }

// Args is what go-redis reads right before it writes the command.
func (o once) Args() []any {
	o.flight.wrote()
	return o.Cmd.Args()
}

// flight knows whether a command has left, and what to do about one that left
// but is not awaited any more.
type flight struct {
	undo func() // nil: nothing

	mu        sync.Mutex
	written   bool
	abandoned bool
}

func (f *flight) wrote() {
	f.mu.Lock()
	late := f.abandoned && !f.written
	f.written = true
	f.mu.Unlock()
	if late && f.undo != nil {
		f.undo()
	}
}

// abandon gives the command up and reports whether it has left. If so, and if it
// leaves later, it is undone.
func (f *flight) abandon() bool {
	f.mu.Lock()
	f.abandoned = true
	written := f.written
	f.mu.Unlock()
	if written && f.undo != nil {
		f.undo()
	}
	return written
}
