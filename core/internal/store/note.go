package store

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// ErrNoNotes says that a quorum keeps no notes: its members would not have the same.
var ErrNoNotes = errors.New("core: a quorum keeps no notes")

// AddNote leaves a note beside a lock, where all are kept for that long from now on. It blocks for Timeout at most, and returns early when ctx ends; after an
// error the note may be there.
func (s *Store) AddNote(ctx context.Context, n Name, note string, keep time.Duration) error {
	if !s.Can.Grant {
		return ErrNoNotes
	}
	c := &conn.Command{Script: s.scripts.addNote, Keys: 1, Words: []any{n.notes(), note, keep.Milliseconds()}}
	_, _, err := do(ctx, s.servers[0], c, s.config.Timeout, yes)
	return err
}

// TakeNotes takes the oldest notes from beside a lock, so many at most, and says whether others
// are left. It blocks and fails as AddNote does; after an error notes may be
// lost.
func (s *Store) TakeNotes(ctx context.Context, n Name, most int) (notes []string, more bool, err error) {
	if !s.Can.Grant {
		return nil, false, ErrNoNotes
	}
	c := &conn.Command{Script: s.scripts.takeNotes, Keys: 1, Words: []any{n.notes(), most}}
	taken, _, err := do(ctx, s.servers[0], c, s.config.Timeout, decodeNotes)
	return taken.notes, taken.more, err
}

type takenNotes struct {
	notes []string
	more  bool
}

func decodeNotes(reply any) (taken takenNotes, err error) {
	r := read(reply)
	taken.more = r.number(0) == 1
	for i := 1; i < len(r.values); i++ {
		taken.notes = append(taken.notes, r.text(i))
	}
	return taken, r.err
}
