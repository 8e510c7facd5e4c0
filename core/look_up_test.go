//go:build go1.25

package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

// Nobody waits for who is looked up for the log, but Close: what is under way then ends, and nothing begins any more.
func TestLookUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		k := take(t, background, s.locker(), "k")
		type answer struct {
			after          time.Duration
			asked, isTaken bool
			waiting        int
		}
		var told []answer
		looksUp := func(key string) {
			began := time.Now()
			adapter.LookUp(l, key, func(info core.Info, waiting int, asked bool) {
				told = append(told, answer{time.Since(began), asked, info.Locked, waiting})
			})
			if took := time.Since(began); took > 0 {
				t.Errorf("it has blocked for %v", took)
			}
		}
		wants := func(what string, want answer) {
			t.Helper()
			synctest.Wait()
			if len(told) != 1 || told[0] != want {
				t.Errorf("%s: %+v; want %+v, once", what, told, want)
			}
			told = nil
		}
		waiting := start(background, l, "k", core.Wait(time.Minute))
		time.Sleep(time.Millisecond)
		looksUp("k")
		wants("at first", answer{asked: true, isTaken: true, waiting: 1})
		looksUp("free")
		wants("again in the same second", answer{})
		looksUp("k")
		wants("again, and others wait", answer{waiting: 1})
		time.Sleep(950 * time.Millisecond) // a line each second asks for each, also when the one before was written late
		s.fail("inspect", hang)
		looksUp("k")
		time.Sleep(time.Minute)
		wants("Redis is silent", answer{after: 2 * time.Second, waiting: 1})
		wantErr(t, (<-waiting).err, core.ErrNotAcquired)
		looksUp("")
		wants("no key", answer{})

		s.fail("inspect", lateReply(500*time.Millisecond))
		looksUp("k")
		began := time.Now()
		closing, cancel := context.WithTimeout(background, time.Minute)
		defer cancel()
		if err := l.Close(closing); err != nil || time.Since(began) != 500*time.Millisecond {
			t.Errorf("Close: %v after %v", err, time.Since(began))
		}
		wants("while it closes", answer{after: 500 * time.Millisecond, asked: true, isTaken: true})
		time.Sleep(time.Second)
		looksUp("k")
		wants("when it is closed", answer{})
		unlock(t, k)
	})
}

// Who writes the line may have to wait for ever. Close does not.
func TestCloseLeavesWhoLooksUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l, wakes := s.open(core.Timeout(time.Second)), make(chan struct{})
		defer close(wakes)
		adapter.LookUp(l, "k", func(core.Info, int, bool) { <-wakes })
		synctest.Wait()
		began := time.Now()
		wantErr(t, l.Close(background))
		wantTime(t, "Close", time.Since(began), 0, time.Second)
	})
}
