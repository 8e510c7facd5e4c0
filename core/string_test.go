//go:build go1.25

package core_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

// A string under the name of a lock is the lock of another library, or of SET NX by hand: it excludes us, and we exclude it.
func TestAStringIsSomebodyElsesLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		s.Set("lock:k", "theirs")
		s.SetTTL("lock:k", 700*time.Millisecond)
		for what, try := range map[string]func() error{
			"TryLock": func() error { _, err := l.TryLock(background, "k"); return err },
			"Shared":  func() error { _, err := l.TryLock(background, "k", core.Shared()); return err },
			"Permits": func() error { _, err := l.TryLock(background, "k", core.Permits(3)); return err },
			"KeepFor": func() error { _, err := l.TryLock(background, "k", core.KeepFor(time.Hour)); return err },
			"LockAll": func() error { _, err := l.LockAll(background, []string{"a", "k"}, core.NoWait()); return err },
			"Once": func() error {
				_, err := core.Once(background, l, "k", func(context.Context) (int, error) { return 1, nil }, core.KeepFor(time.Hour), core.NoWait())
				return err
			},
		} {
			var busy *core.BusyError
			if err := try(); !errors.As(err, &busy) || busy.Key != "k" || busy.Done || busy.RetryAfter > 700*time.Millisecond {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := l.Resume(background, "k", "ticket"); !errors.Is(err, core.ErrTicket) {
			t.Error(err)
		}
		if s.Exists("lock:{lock:k}:queue") {
			t.Error("the queue has an entry, and nothing that tells of its turn")
		}
		began := time.Now()
		k := take(t, background, l, "k")
		wantTime(t, "its end is seen", time.Since(began), 700*time.Millisecond, 705*time.Millisecond)
		unlock(t, k)

		s.Set("lock:k", "theirs") // without an end
		waiting := start(background, l, "k")
		time.Sleep(3 * time.Second)
		waits(t, waiting)
		s.Del("lock:k")
		began = time.Now()
		o := <-waiting
		wantTime(t, "it asks again and again", time.Since(began), 0, 150*time.Millisecond)
		unlock(t, o.lock)
	})
}

// Whoever sets a string in place of a lock that is held takes it away.
func TestAStringInPlaceOfAHeldLockIsALoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		for what, then := range map[string]func(k *core.Lock) error{
			"Unlock":   func(k *core.Lock) error { return k.Unlock(background) },
			"Handover": func(k *core.Lock) error { _, err := k.Handover(background, time.Minute); return err },
			"Count":    func(k *core.Lock) error { _, err := k.Count(background); return err },
			"renewal":  func(k *core.Lock) error { <-k.Context().Done(); return context.Cause(k.Context()) },
		} {
			k := take(t, background, l, "k")
			s.Del("lock:k")
			if err := s.Set("lock:k", "theirs"); err != nil {
				t.Fatal(err)
			}
			wantErr(t, then(k), core.ErrLost)
			_ = k.Unlock(background)
			synctest.Wait()
			if text, err := s.Get("lock:k"); text != "theirs" {
				t.Errorf("%s: %q, %v", what, text, err)
			}
			s.Del("lock:k")
		}
	})
}

func TestForceUnlockOfAString(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := s.locker()
		s.Set("lock:k", "theirs")
		s.SetTTL("lock:k", time.Minute)
		info, err := l.Inspect(background, "k")
		if want := (core.Info{Locked: true, State: core.StateForeign, TTL: time.Minute}); err != nil || !reflect.DeepEqual(info, want) {
			t.Errorf("%+v, %v", info, err)
		}
		for _, owners := range [][]string{nil, {""}} { // "" is for what has no holder
			s.Set("lock:k", "theirs")
			if freed, err := l.ForceUnlock(background, "k", owners...); !freed || err != nil || s.Exists("lock:k") {
				t.Errorf("%q: %t, %v", owners, freed, err)
			}
		}
	})
}

// Redisson's read-write lock is a hash as well, with fields that are no holders of ours.
func TestInspectTellsAnotherLayout(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		s.HSet("lock:k", "mode", "write", "u:1:write", "1")
		s.SetTTL("lock:k", time.Minute)
		info, err := s.locker().Inspect(background, "k")
		if err != nil || !info.Locked || info.State != core.StateForeign || info.Form != "" {
			t.Errorf("%+v, %v", info, err)
		}
		s.Del("lock:k")
	})
}
