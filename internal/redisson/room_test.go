package redisson

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A room is a critical section that is seen from outside: a count in a file, read,
// incremented and written, and a file that is there while somebody is inside. With the
// count there is who came last, and how often that was one of the other side. Java has
// the same.
type room struct {
	folder string
	stay   time.Duration // how long a visit takes, beside the files
}

func newRoom(tb testing.TB, stay time.Duration) room {
	tb.Helper()
	r := room{folder: tb.TempDir(), stay: stay}
	succeed(tb, os.WriteFile(r.path("count"), []byte("0 nobody 0"), 0o600))
	return r
}

func (r room) path(name string) string { return filepath.Join(r.folder, name) }

// seen is how many have been inside, and how often the sides changed.
func (r room) seen() (count int, last string, changes int, err error) {
	text, err := os.ReadFile(r.path("count"))
	if err == nil {
		_, err = fmt.Sscan(string(text), &count, &last, &changes)
	}
	return count, last, changes, err
}

// visit says whether nobody else was inside.
func (r room) visit() (alone bool, err error) {
	f, err := os.OpenFile(r.path("inside"), os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		alone = true
		_ = f.Close()
	case !errors.Is(err, fs.ErrExist):
		return false, err
	}
	count, last, changes, err := r.seen()
	if err != nil {
		return alone, err
	}
	work(r.stay)
	if last == "Java" {
		changes++
	}
	if err := os.WriteFile(r.path("count"), fmt.Appendf(nil, "%d Go %d", count+1, changes), 0o600); err != nil {
		return alone, err
	}
	err = os.Remove(r.path("inside"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return alone, err
}
