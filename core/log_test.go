//go:build go1.25

package core_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// records is a log that tests can read.
type records struct {
	slog.Handler
	mu    sync.Mutex
	lines []slog.Record
}

func (r *records) logger() *slog.Logger                     { return slog.New(r) }
func (r *records) Enabled(context.Context, slog.Level) bool { return true }
func (r *records) Handle(_ context.Context, rec slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, rec)
	return nil
}

// settle waits until the lines and events are there that a goroutine of its own brings.
func settle() {
	defer func() { _ = recover() }() // outside of a bubble, where tests wait for the line that they want
	synctest.Wait()
}

func (r *records) all() []string {
	settle()
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, rec := range r.lines {
		all = append(all, rec.Message)
	}
	return all
}

// texts are the errors of the lines that contain a part.
func (r *records) texts(part string) (texts []string) {
	settle()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range r.lines {
		if strings.Contains(rec.Message, part) {
			rec.Attrs(func(a slog.Attr) bool {
				if a.Key == "error" {
					texts = append(texts, a.Value.Resolve().String())
				}
				return true
			})
		}
	}
	return texts
}

func (r *records) count(part string) int {
	n := 0
	for _, line := range r.all() {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

func TestInvariant10OneLogLineASecondOfEachKindInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		logged := &records{}
		l := s.locker(core.Logger(logged.logger()))
		var locks []*core.Lock
		for i := range 50 {
			locks = append(locks, take(t, background, l, string(rune('a'+i))))
		}
		waiting := start(background, s.locker(core.Logger(logged.logger())), "a")
		time.Sleep(time.Second)
		s.outage()
		time.Sleep(28 * time.Second)
		perKind := map[string]int{}
		for _, line := range logged.all() {
			perKind[line]++
		}
		if len(perKind) == 0 {
			t.Error("nothing was logged")
		}
		for kind, n := range perKind {
			if n > 28 {
				t.Errorf("%d lines in 28 s: %s", n, kind)
			}
		}
		time.Sleep(10 * time.Second)
		s.heal()
		for _, k := range locks {
			wantErr(t, k.Unlock(background), core.ErrLost)
		}
		wantErr(t, (<-waiting).err, core.ErrUnavailable)
		time.Sleep(10 * time.Second)
	})
}

func TestNothingIsLoggedInPeace(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		logged := &records{}
		a, b := s.locker(core.Logger(logged.logger())), s.locker(core.Logger(logged.logger()))
		k := take(t, background, a, "k")
		waiting := start(background, b, "k")
		time.Sleep(80 * time.Second) // longer is a matter of TestTheLogSaysWhoHoldsALockForLong
		unlock(t, k)
		unlock(t, (<-waiting).lock)
		time.Sleep(5 * time.Minute)
		if all := logged.all(); len(all) > 0 {
			t.Errorf("logged: %v", all)
		}
	})
}

func TestASecondUnlockIsNotLoggedAsALoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		logged := &records{}
		l := s.locker(core.Logger(logged.logger()))
		k := take(t, background, l, "k")
		unlock(t, k)
		time.Sleep(time.Hour)
		wantErr(t, k.Unlock(background), core.ErrNotHeld)
		if all := logged.all(); len(all) > 0 {
			t.Errorf("logged: %v", all)
		}
	})
}

func TestALossIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		logged := &records{}
		l := s.locker(core.Logger(logged.logger()))
		k := take(t, background, l, "k")
		s.Del("lock:k")
		<-k.Context().Done()
		synctest.Wait()
		if logged.count("lost while held") != 1 {
			t.Errorf("logged: %v", logged.all())
		}
		wantErr(t, k.Unlock(background), core.ErrLost)
	})
}

// A fixed lease that is over is what somebody has wanted: no error wakes anybody for it.
func TestAFixedLeaseThatIsOverIsNoError(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		logged := &records{}
		l := s.locker(core.Logger(logged.logger()))
		k := take(t, background, l, "k", core.FixedLease(time.Second))
		<-k.Context().Done()
		synctest.Wait()
		if len(logged.lines) != 1 || logged.lines[0].Level != slog.LevelWarn {
			t.Errorf("logged: %v", logged.lines)
		}
		wantErr(t, k.Unlock(background), core.ErrLost)
	})
}

// Whoever looks for a key in the log finds all of its lines: not by what Redis calls it.
func TestLogLinesNameTheKey(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		logged := &records{}
		l := s.locker(core.Logger(logged.logger()))
		k := take(t, background, l, "order:{42}%")
		s.outage()
		wantErr(t, k.Unlock(background), core.ErrUnavailable)
		time.Sleep(time.Minute)
		s.heal()
		logged.mu.Lock()
		defer logged.mu.Unlock()
		kinds := map[string]bool{}
		for _, line := range logged.lines {
			kinds[line.Message] = true
			var key string
			line.Attrs(func(a slog.Attr) bool {
				if a.Key == "key" {
					key = a.Value.String()
				}
				return true
			})
			if key != "order:{42}%" {
				t.Errorf("%s: key %q", line.Message, key)
			}
		}
		if !kinds["latchkey: giving back a lock failed and is repeated"] || !kinds["latchkey: giving back a lock was never confirmed; if it was taken it ended with its lease"] {
			t.Errorf("logged: %v", kinds)
		}
	})
}

func TestLoggerDefaultsToSlogs(t *testing.T) {
	logged := &records{}
	before := slog.Default()
	slog.SetDefault(logged.logger())
	defer slog.SetDefault(before)
	bubble(t, func(t *testing.T, s *embedded) {
		l, err := core.New(s.client())
		if err != nil {
			t.Fatal(err)
		}
		k := take(t, background, l, "k")
		s.Del("lock:k")
		wantErr(t, k.Unlock(background), core.ErrLost)
		if logged.count("lost while held") != 1 {
			t.Errorf("logged: %v", logged.all())
		}
		if err := l.Close(background); err != nil {
			t.Error(err)
		}
	})
}
