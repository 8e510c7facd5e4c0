package core

import (
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

// once is a command that go-redis must not send again by itself: a lost reply
// would run a script twice, on a cluster even with retries switched off. It
// notices when go-redis is about to write it.
type once struct {
	*redis.Cmd
	load interface{ wrote() }
}

// NoRetry keeps go-redis from sending the command again.
func (once) NoRetry() bool { return true }

// Args is what go-redis reads right before it writes the command.
func (o once) Args() []any {
	o.load.wrote()
	return o.Cmd.Args()
}

// flight knows whether a command has left, and what to do about one that left
// but is not awaited any more.
type flight struct {
	node *node
	undo func(*node) // nil: nothing

	mu        sync.Mutex
	written   bool
	abandoned bool
}

func (f *flight) wrote() {
	if f == nil {
		return
	}
	f.mu.Lock()
	late := f.abandoned && !f.written
	f.written = true
	f.mu.Unlock()
	if late && f.undo != nil {
		f.undo(f.node)
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
		f.undo(f.node)
	}
	return written
}

// wanted is false for a command that was given up before it left.
func (f *flight) wanted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.abandoned
}

// conclude gives the answer of a call its kind: an error that leaves the outcome
// unknown has it undone. ended is why the call's context has ended, nil if it has not.
func (f *flight) conclude(ended error, a answer) ([]any, error) {
	switch {
	case a.err == nil:
		return a.values, nil
	case ended != nil && errors.Is(a.err, ended):
		a.err = fmt.Errorf("%w: %v", errNoAnswer, a.err)
	case isRefusal(a.err):
		return nil, a.err // nothing was done
	}
	if !f.abandon() {
		return nil, &unsentError{a.err}
	}
	return nil, a.err
}
