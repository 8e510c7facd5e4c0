package adapter

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/internal/option"
)

// AddNote leaves a text in Redis, beside the lock of a key, for whoever comes to have the key:
// such as which job to start next. It has nothing to do with who holds the lock. Notes are kept in
// the order in which they came; all of a key are gone when none has come for keep, that of the
// last one.
//
// It blocks for one request, at most for [core.Timeout] or until ctx ends. It fails with
// [core.ErrInvalidKey], [core.ErrUnavailable], [core.ErrClosed] or the context's error; the note may
// be there all the same. A quorum keeps none: ErrUnavailable. It is safe for concurrent use.
func AddNote(ctx context.Context, l *core.Locker, key, note string, keep time.Duration) error {
	return option.AddNote(ctx, l, key, note, keep)
}

// TakeNotes takes the oldest notes from beside the lock of a key, most of them at most. Each is
// given to one caller. more says whether others are left. It blocks and fails as [AddNote] does;
// notes may be lost then.
func TakeNotes(ctx context.Context, l *core.Locker, key string, most int) (notes []string, more bool, err error) {
	return option.TakeNotes(ctx, l, key, most)
}
