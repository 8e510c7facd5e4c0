package core

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/option"
)

func init() {
	option.AddNote = func(ctx context.Context, locker any, key, note string, keep time.Duration) error {
		return locker.(*Locker).addNote(ctx, key, note, keep)
	}
	option.TakeNotes = func(ctx context.Context, locker any, key string, most int) ([]string, bool, error) {
		return locker.(*Locker).takeNotes(ctx, key, most)
	}
}

func (l *Locker) addNote(ctx context.Context, key, note string, keep time.Duration) error {
	const doing = "leaving a note beside"
	n, err := l.usableName(doing, key)
	if err != nil {
		return err
	}
	if err := l.store.AddNote(ctx, n, note, keep); err != nil {
		return unanswered(ctx, doing, key, err)
	}
	return nil
}

func (l *Locker) takeNotes(ctx context.Context, key string, most int) ([]string, bool, error) {
	const doing = "taking notes from beside"
	n, err := l.usableName(doing, key)
	if err != nil {
		return nil, false, err
	}
	notes, more, err := l.store.TakeNotes(ctx, n, most)
	if err != nil {
		return nil, false, unanswered(ctx, doing, key, err)
	}
	return notes, more, nil
}
