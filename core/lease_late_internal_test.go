package core

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
)

// late is a lease whose time is over, and nobody has noticed yet.
func late(t *testing.T, l *Locker) (*lease, *handle) {
	t.Helper()
	name, err := l.nameOf("k")
	if err != nil {
		t.Fatal(err)
	}
	h := &handle{}
	h.under.call = t.Context()
	s := &lease{engine: &l.engine, name: name, handles: h}
	s.Fixed = true // nothing is given back
	s.times.deadline = schedule.Now().Add(-time.Millisecond)
	return s, h
}

// Redis does not know the lock, for it was released: nothing is lost. Only the release itself can tell a loss.
func TestLockThatIsGoneAfterItsUnlock(t *testing.T) {
	unconnected(t, func(t *testing.T, l *Locker) {
		s, h := late(t, l)
		if last, err := s.takeOut(h), s.vanished(false); !last || !errors.Is(err, ErrNotHeld) || s.err != nil {
			t.Errorf("a question that came before: %v", err)
		}
		if err := s.vanished(true); !errors.Is(err, ErrLost) {
			t.Errorf("its release: %v", err)
		}
	})
}

// A re-entry that is answered late does not schedule a lease that is lost.
func TestLostLeaseIsNotScheduled(t *testing.T) {
	unconnected(t, func(t *testing.T, l *Locker) {
		s, _ := late(t, l)
		s.err = context.Canceled
		s.mu.Lock()
		s.reschedule()
		s.mu.Unlock()
		if place := reflect.ValueOf(&s.Entry).Elem().Field(0).Int(); place != 0 {
			t.Error("it is scheduled")
		}
		l.scheduler.Remove(s)
	})
}
