package store

import (
	"context"
	"slices"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// Force frees a lock or ends its dedup window, and reports whether there was anything to free: of whoever holds it when
// owner is nil, else if that owner does; an empty one stands for a dedup window. It blocks for Timeout at most, and
// returns early when ctx ends; after an error, a [*conn.Failure], it may have been done.
func (s *Store) Force(ctx context.Context, n Name, owner *string) (bool, error) {
	words := []any{n.Lock(), n.clock()}
	if owner != nil {
		if IsOwnField(*owner) {
			return false, nil // a field of ours is no owner
		}
		words = append(words, *owner)
	}
	c := &conn.Command{Script: s.scripts.force, Keys: 2, Words: words}
	return question[bool]{c, s.config.Timeout, yes, decideForce, nil}.ask(ctx, s)
}

// decideForce: done when a majority has answered; freed if one of them was.
func decideForce(b *ballot[bool]) (freed, decided bool, err error) {
	answers, decided, err := b.agreed(func(_, _ bool) bool { return true })
	return slices.Contains(answers, true), decided, err
}
