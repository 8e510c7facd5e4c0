package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// takeNotes takes so many that are old enough at once.
func takeNotes(t *testing.T, l *core.Locker, key string, most int) (notes []string, more bool) {
	t.Helper()
	notes, more, err := adapter.TakeNotes(background, l, key, most)
	if err != nil {
		t.Fatal(err)
	}
	return notes, more
}

func addNote(t *testing.T, l *core.Locker, key, note string) {
	t.Helper()
	if err := adapter.AddNote(background, l, key, note, time.Minute); err != nil {
		t.Fatal(err)
	}
}

func TestNotesAreTakenOnceInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEmbedded(t)
		a, b := s.locker(), s.locker()
		texts := []string{"1", `{"a b":"c"}`, "two\nlines", "", "5"}
		for _, text := range texts {
			addNote(t, a, "k", text)
		}
		addNote(t, a, "other", "x")
		first, more := takeNotes(t, b, "k", 2)
		if !more {
			t.Error("two of five were taken, and none is left")
		}
		second, more := takeNotes(t, a, "k", 3)
		if more {
			t.Error("all were taken, and others are left")
		}
		if got := slices.Concat(first, second); !slices.Equal(got, texts) {
			t.Errorf("taken: %q, want %q", got, texts)
		}
		if none, more := takeNotes(t, a, "k", 2); none != nil || more {
			t.Errorf("taken again: %q", none)
		}
		k := take(t, background, a, "other") // the lock has nothing to do with them
		unlock(t, k)
		if x, _ := takeNotes(t, a, "other", 1); !slices.Equal(x, []string{"x"}) {
			t.Errorf("beside the other lock: %q", x)
		}
	})
}

func TestNotesAreKeptAsLongAsTheLastAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEmbedded(t)
		l := s.locker()
		addNote(t, l, "k", "1")
		time.Sleep(50 * time.Second)
		addNote(t, l, "k", "2")
		time.Sleep(50 * time.Second)
		if notes, _ := takeNotes(t, l, "k", 1); !slices.Equal(notes, []string{"1"}) {
			t.Errorf("after 50 s of a minute: %q", notes)
		}
		time.Sleep(11 * time.Second)
		if notes, _ := takeNotes(t, l, "k", 1); notes != nil {
			t.Errorf("after a minute: %q", notes)
		}
	})
}

func TestNotesThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEmbedded(t)
		closed := s.locker()
		if err := closed.Close(background); err != nil {
			t.Fatal(err)
		}
		ended, cancel := context.WithCancel(background)
		cancel()
		quorum := quorumOf(t, []*embedded{newEmbedded(t), newEmbedded(t), newEmbedded(t)})
		for what, c := range map[string]struct {
			ctx    context.Context
			locker *core.Locker
			key    string
			want   error
		}{
			"no key":            {background, s.locker(), "", core.ErrInvalidKey},
			"closed":            {background, closed, "k", core.ErrClosed},
			"the caller left":   {ended, s.locker(), "k", context.Canceled},
			"a quorum has none": {background, quorum, "k", core.ErrUnavailable},
		} {
			added := adapter.AddNote(c.ctx, c.locker, c.key, "x", time.Minute)
			_, _, took := adapter.TakeNotes(c.ctx, c.locker, c.key, 1)
			if !errors.Is(added, c.want) || !errors.Is(took, c.want) {
				t.Errorf("%s: %v, %v", what, added, took)
			}
		}
		s.SetError("LOADING")
		defer s.SetError("")
		if err := adapter.AddNote(background, s.locker(), "k", "x", time.Minute); !errors.Is(err, core.ErrUnavailable) {
			t.Error(fmt.Errorf("while Redis fails: %w", err))
		}
	})
}
