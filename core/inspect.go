package core

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Info is what Redis says about a lock at one moment.
type Info struct {
	// Locked says that nobody else could take the lock: it is held, or in a
	// dedup window.
	Locked bool
	// Owner is who holds it, empty when it is free or in a dedup window.
	Owner string
	// Count is the number of holds of the owner.
	Count int
	// TTL is how long it lasts without renewal; negative when it does not end.
	TTL time.Duration
}

// Inspect reads the state of a lock, which may have changed when it returns. It
// blocks for one exchange, at most for [Timeout] or until ctx ends. It fails with
// [ErrInvalidKey], [ErrUnavailable], [ErrClosed] or the context's error.
func (l *Locker) Inspect(ctx context.Context, key string) (Info, error) {
	n, err := l.names(key)
	if err != nil {
		return Info{}, err
	}
	if l.isClosing() {
		return Info{}, closed("inspecting", key)
	}
	return l.inspect(ctx, key, n)
}

func (l *Locker) inspect(ctx context.Context, key string, n names) (Info, error) {
	c := inspectScript.call(1, n.lock)
	c.again = new(repetition)
	values, err := l.ask(ctx, "inspecting", key, c)
	if err != nil {
		return Info{}, err
	}
	info := Info{TTL: milliseconds(values[0])}
	if number(values[0]) == -2 {
		return Info{}, nil
	}
	info.Locked = true
	info.Owner, info.Count = ownerOf(values)
	return info, nil
}

// ownerOf finds the owner and his holds in a reply of the inspect script.
func ownerOf(values []any) (owner string, count int) {
	fields, _ := values[1].([]any)
	for i := 0; i+1 < len(fields); i += 2 {
		if field := text(fields[i]); !strings.HasPrefix(field, ownFields) {
			owner = field
			count, _ = strconv.Atoi(text(fields[i+1]))
		}
	}
	return owner, count
}

// ForceUnlock frees a lock whoever holds it, or ends its dedup window, and wakes
// who waits. It reports whether there was anything to free. The holder learns of
// it at its next renewal: its Context is cancelled with [ErrLost]. Until then two
// may be at work, so this is for operators, not for programs. It blocks and fails
// as [Locker.Inspect] does; after [ErrUnavailable] it may have been done.
//
// Between a look at the lock and this call another may have taken it:
// [Locker.ForceUnlockOwner] spares that one.
func (l *Locker) ForceUnlock(ctx context.Context, key string) (bool, error) {
	return l.force(ctx, key)
}

// ForceUnlockOwner is [Locker.ForceUnlock] for a lock that owner holds, as
// [Locker.Inspect] has told it; an empty owner stands for a dedup window. It reports
// false, and does nothing, when the lock is free or somebody else's by now, or when
// there is a holder instead of the window. Redis compares and frees in one step. In
// a quorum each member does so for itself.
func (l *Locker) ForceUnlockOwner(ctx context.Context, key, owner string) (bool, error) {
	return l.force(ctx, key, owner)
}

// force frees a lock, of the given owner if there is one.
func (l *Locker) force(ctx context.Context, key string, owner ...string) (bool, error) {
	n, err := l.names(key)
	if err != nil {
		return false, err
	}
	if l.isClosing() {
		return false, closed("forcing", key)
	}
	words := []any{n.lock, n.channel(), l.publish}
	for _, o := range owner {
		if strings.HasPrefix(o, ownFields) {
			return false, nil // a field of ours is no owner
		}
		words = append(words, o)
	}
	values, err := l.ask(ctx, "forcing", key, forceUnlockScript.call(1, words...))
	if err != nil {
		return false, err
	}
	l.lines.signal(n.lock)
	if number(values[0]) != 1 {
		return false, nil
	}
	l.report.info("a lock was freed by ForceUnlock", "key", key)
	return true, nil
}

// ask is an exchange that does no harm when its outcome is unknown.
func (l *Locker) ask(ctx context.Context, doing, key string, c *call) ([]any, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("core: %s lock %q: %w", doing, key, ended(ctx))
	}
	values, err := l.backend.ask(ctx, c, l.timeout, strays{})
	switch {
	case err == nil:
		return values, nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil, fmt.Errorf("core: %s lock %q: %w", doing, key, err)
	default:
		return nil, unavailable(doing, key, err)
	}
}
