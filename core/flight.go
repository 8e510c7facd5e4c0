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
// but is not awaited any more. The copies of a call share one.
type flight struct {
	node *node
	undo func(*node) // nil: nothing

	mu        sync.Mutex
	written   bool
	copied    bool // the present copy was written
	unknown   bool // what became of an earlier copy
	abandoned bool
}

func (f *flight) wrote() {
	if f == nil {
		return
	}
	f.mu.Lock()
	late := f.abandoned && !f.written
	f.written, f.copied = true, true
	f.mu.Unlock()
	if late && f.undo != nil {
		f.undo(f.node)
	}
}

// departed says whether the present copy has left.
func (f *flight) departed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.copied
}

// again begins another copy; refused says that nothing came of the present one. It
// reports whether something may have come of one of them, or may yet.
func (f *flight) again(refused bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unknown = f.unknown || f.copied && !refused
	f.copied = false
	return f.unknown
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

// conclude gives the last answer to a call its kind: an error that leaves the outcome
// unknown has it undone, and so has the answer to a copy that did nothing, if an
// earlier one may arrive after it.
func (f *flight) conclude(a answer) ([]any, error) {
	switch {
	case a.err == nil && (!f.unknown || isGrant(a.values)):
		return a.values, nil
	case a.err == nil || isRefusal(a.err):
		if f.unknown {
			f.abandon()
		}
		return a.values, a.err
	case !f.abandon() && !a.over:
		return nil, &unsentError{a.err}
	}
	return nil, a.err
}
