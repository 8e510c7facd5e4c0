package asynqlock

import (
	"testing"
	"testing/synctest"
	"time"
)

// Another process may take a task that was promoted, and a place is not kept for it for ever.
func TestPromotedTaskThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(10, time.Second)
		free := w.spare()
		w.promote("k")
		w.promote("k")
		if spare := w.spare(); spare != free-2 {
			t.Errorf("two are expected, and %d workers of %d are to spare", spare, free)
		}
		w.join([]string{"k"})
		w.leave([]string{"k"})
		w.acquired([]string{"k"}, time.Millisecond)
		if spare := w.spare(); spare != free-1 {
			t.Errorf("one is expected, and %d workers of %d are to spare", spare, free)
		}
		time.Sleep(3*time.Second + 1)
		w.expireAll()
		if spare := w.spare(); spare != free {
			t.Errorf("nobody is expected any more, and %d workers of %d are to spare", spare, free)
		}
		if len(w.keys) > 0 {
			t.Errorf("keys that are remembered: %v", w.keys)
		}
	})
}

// Where workers are in demand one is free for a moment only, between two tasks.
func TestWorkerThatHasJustBecomeFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(10, time.Second)
		for range 10 {
			w.begin()
		}
		for range 5 {
			w.end()
		}
		if spare := w.spare(); spare >= 0 {
			t.Errorf("%d workers to spare at once", spare)
		}
		time.Sleep(time.Second)
		if spare := w.spare(); spare != 3 {
			t.Errorf("%d workers to spare, want 3: 5 are free, and 2 of them for other keys", spare)
		}
	})
}

func TestKeysWithoutNotesAreForgotten(t *testing.T) {
	w := newWorkers(10, time.Second)
	w.note("k", nil)
	seen := w.noted()
	w.note("k", nil)
	w.none(seen[0])
	if len(w.noted()) != 1 {
		t.Error("a note that has come since then is forgotten")
	}
	w.none(w.noted()[0])
	if len(w.keys) > 0 {
		t.Errorf("keys that are remembered: %v", w.keys)
	}
}

// A hot key has the usual number of waiting tasks, however busy the workers are.
func TestRoomWhereAllWorkersAreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(10, time.Second)
		for range 10 {
			w.begin()
		}
		w.note("k", nil)
		for range 2 { // in short order
			w.join([]string{"k"})
			w.leave([]string{"k"})
			w.acquired([]string{"k"}, time.Millisecond)
		}
		w.join([]string{"k"})
		w.promote("k")
		if room := w.room("k"); room != usualWaiters-2 {
			t.Errorf("one waits, one is expected: room for %d more", room)
		}
		w.refused([]string{"k"})
		if room := w.room("k"); room > 0 {
			t.Errorf("somebody has waited in vain, others do: room for %d more", room)
		}
	})
}
