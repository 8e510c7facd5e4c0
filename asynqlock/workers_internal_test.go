//go:build go1.25

package asynqlock

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// Another process may take a task that was promoted, and a place is not kept for it for ever.
func TestPromotedTaskThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(10, time.Second)
		free := w.spare()
		w.expect(w.stateOf("k"))
		w.expect(w.stateOf("k"))
		if spare := w.spare(); spare != free-2 {
			t.Errorf("two are expected, and %d workers of %d are to spare", spare, free)
		}
		w.join([]string{"k"})
		w.leave([]string{"k"}, acquired)
		if spare := w.spare(); spare != free-1 {
			t.Errorf("one is expected, and %d workers of %d are to spare", spare, free)
		}
		time.Sleep(3*time.Second + 1)
		w.dropOverdue()
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
			w.taskBegins()
		}
		for range 5 {
			w.taskEnds()
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

// parks has tasks of a key parked, each with an ID of its own.
func parks(w *workers, key string, ids ...string) {
	for _, id := range ids {
		w.park(&parkedTask{taskRef: taskRef{"default", id}, key: key, due: time.Now().Add(time.Minute)})
	}
}

func TestKeysWithoutParkedTasksAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(10, time.Second)
		parks(w, "k", "1", "2")
		n := w.takeNext()
		w.parkAgain(n)
		w.beginScan()
		for range 2 {
			w.doesNotCome(w.takeNext())
		}
		if n := w.takeNext(); n != nil || !w.idle() && len(w.expectations) == 0 || len(w.keys) > 0 {
			t.Errorf("keys that are remembered: %v, %v", w.keys, n)
		}
	})
}

// However often a task was parked, and however many nobody has run, each is in the list once, and
// until asynq runs it itself.
func TestATaskIsParkedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(10, time.Second)
		for range 5 {
			parks(w, "k", "1", "2", "3")
			time.Sleep(time.Second)
		}
		if n := w.parked.all.Len(); n != 3 || w.keys["k"].parked.Len() != n || len(w.parked.byRef) != n {
			t.Errorf("%d parked tasks, want 3", n)
		}
		time.Sleep(time.Minute)
		w.beginScan()
		if !w.idle() || len(w.keys)+len(w.parked.byRef) > 0 {
			t.Errorf("parked tasks that asynq has run: %v", w.parked.byRef)
		}
	})
}

// A scan goes through the keys for which something may have changed, and not through all.
func TestAScanLeavesBusyKeysAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 4000
		w := newWorkers(10, time.Second)
		for k := range keys {
			key := strconv.Itoa(k)
			parks(w, key, key)
			w.keys[key].flow = blocked // somebody has waited in vain
		}
		for range 10 {
			w.taskBegins() // other tasks have all workers
		}
		if n := w.takeNext(); n != nil || w.parked.ready.Len() > 0 || w.parked.needWorker.Len() != keys {
			t.Fatalf("taken: %v; %d keys to look at, and %d without a worker", n, w.parked.ready.Len(), w.parked.needWorker.Len())
		}
		w.beginScan()
		if w.parked.ready.Len() > 0 {
			t.Errorf("the next scan goes through %d keys", w.parked.ready.Len())
		}
		for range 10 {
			w.taskEnds()
		}
		time.Sleep(2 * time.Second)
		var taken []string
		for n := w.takeNext(); n != nil; n = w.takeNext() {
			taken = append(taken, n.key)
		}
		if len(taken) != 8 || taken[0] != "0" || taken[7] != "7" {
			t.Errorf("taken: %v; want one for each of 8 workers to spare, of the keys that have waited longest", taken)
		}
		w.join([]string{"0"})
		w.leave([]string{"0"}, oneTooMany)
		if w.parked.ready.Len() > 8 {
			t.Errorf("%d keys to look at when one task has come", w.parked.ready.Len())
		}
	})
}

// A key is looked at again when one of its tasks has left, and when one has got the key.
func TestAKeyIsLookedAtWhenSomethingChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(1, time.Second) // none is to spare
		k := []string{"k"}
		parks(w, "k", "1", "2")
		w.join(k)
		w.join(k)
		w.leave(k, refused)
		if n := w.takeNext(); n != nil {
			t.Fatalf("%s is run while another one waits", n.id)
		}
		w.leave(k, refused)
		if n := w.takeNext(); n != nil || w.parked.needWorker.Len() != 1 {
			t.Fatal("one is run although no worker is to spare, or its key is not looked at")
		}
		w.join(k)
		w.leave(k, acquired)
		if n := w.takeNext(); n == nil || n.id != "1" {
			t.Error("none is run although the key is free")
		}
	})
}

// A hot key has the usual number of waiting tasks, however busy the workers are.
func TestRoomWhereAllWorkersAreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(10, time.Second)
		for range 10 {
			w.taskBegins()
		}
		parks(w, "k", "1", "2", "3", "4", "5")
		for range 2 { // in short order
			w.join([]string{"k"})
			w.leave([]string{"k"}, acquired)
		}
		w.join([]string{"k"})
		w.expect(w.stateOf("k"))
		if room := w.room(w.stateOf("k")); room != usualWaiters-2 {
			t.Errorf("one waits, one is expected: room for %d more", room)
		}
		w.join([]string{"k"})
		w.leave([]string{"k"}, refused)
		if room := w.room(w.stateOf("k")); room > 0 {
			t.Errorf("somebody has waited in vain, others do: room for %d more", room)
		}
	})
}

// A task that is promoted comes at the next check of asynq. Its key must not lie idle until then.
func TestNextTaskIsOnItsWayWhileTheKeyIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(10, time.Second)
		parks(w, "k", "1", "2", "3", "4", "5", "6")
		for range 3 {
			time.Sleep(600 * time.Millisecond)
			w.join([]string{"k"})
			w.leave([]string{"k"}, acquired)
		}
		if room := w.room(w.stateOf("k")); room != 2 {
			t.Errorf("%d tasks are promoted, want 2: one comes as late as the key is used for", room)
		}
	})
}

// A task that is refused because too many wait has not seen whether those get the key.
func TestOneTooManyDoesNotBlockItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(10, time.Second)
		p := &parking{workers: w}
		parks(w, "k", "1")
		var leave func()
		for range 10 {
			_, _, leave = p.join([]string{"k"})
		}
		_, _, tooMany := p.join([]string{"k"})
		tooMany()
		if w.keys["k"].flow == blocked {
			t.Error("the key is blocked")
		}
		leave()
		if w.keys["k"].flow != blocked {
			t.Error("a task has waited in vain, and the key is not blocked")
		}
	})
}
