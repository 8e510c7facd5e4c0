package life

import (
	"testing"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
)

// world is a lease, and what core has to do with it. Two worlds that are equal have one future.
type world struct {
	Life
	handles  [3]HandleState // the first, and two that re-enter
	now      schedule.Time
	due      schedule.Time // at which the scheduler calls; 0: never
	called   bool          // by the scheduler, which has waits it, just now
	sent     schedule.Time // the renewal that is under way; 0: none is
	releases int           // that are not answered
	chosen   bool          // the next call was chosen
	told     State         // how the lease has ended
	overdue  bool          // that was told
}

const length, lastTime = 4, 9

func times(sent schedule.Time) Times { return Times{Ends: sent + length, RenewAt: sent + 1} }

// does follows the effects of an event.
func (w *world) does(t *testing.T, e Effects) {
	t.Helper()
	if e.Ended != 0 {
		if w.told != 0 || e.Ended != w.state || !e.Ended.IsEnd() {
			t.Fatalf("it has ended %s: %+v", names[e.Ended], w)
		}
		w.told = e.Ended
	}
	if e.Renew {
		if w.sent != 0 || w.handles[0] == HandingOver || w.handles[0] == Abandoned {
			t.Fatalf("it is renewed: %+v", w)
		}
		w.sent = w.now
	}
	if e.Overdue {
		if w.overdue {
			t.Fatalf("it is overdue twice: %+v", w)
		}
		w.overdue = true
	}
}

// holds fails where something is wrong that must never be.
func (w *world) holds(t *testing.T) {
	t.Helper()
	var count [HandedOver + 1]int
	for _, h := range w.handles {
		count[h]++
	}
	passing := count[HandingOver] + count[Abandoned]
	waits := w.state.IsReliedOn() && !w.called // for the scheduler
	wrong := ""
	switch {
	case w.state.IsEnd() != (w.told != 0) || w.told != 0 && w.told != w.state:
		wrong = "what was told"
	case w.told != 0 && w.due != 0:
		wrong = "it is looked at after its end"
	case waits && (w.due == 0 || w.due > w.StopAt()):
		wrong = "nobody looks at it before its end"
	case waits && !w.overdue && w.OverdueAt() != 0 && w.due > w.OverdueAt():
		wrong = "nobody looks at it before it is overdue"
	case waits && w.state == Held && w.times.RenewAt != 0 && w.sent == 0 && (!w.overdue || w.times.Granted) && w.due > w.times.RenewAt:
		wrong = "nobody renews it"
	case w.state == Held && (count[In] == 0 || passing > 0), w.state == BeingHandedOver && (passing != 1 || count[In]+count[Entering] > 0):
		wrong = "who holds it"
	case w.state == PerhapsFree && (count[In]+passing > 0 || count[Entering] == 0):
		wrong = "who enters it"
	case w.state == Leaving && (w.releases == 0 || count[In]+count[Entering]+passing > 0), w.state == Released && w.releases > 0:
		wrong = "who leaves it"
	case w.told == 0 && w.Holds() != count[In]+count[Entering]+passing:
		wrong = "the number of handles"
	}
	if wrong != "" {
		t.Fatalf("%s: %s: %+v", names[w.state], wrong, w)
	}
}

// steps are all that can happen next. Each is false where it cannot.
var steps = map[string]func(t *testing.T, w *world) bool{
	"time": func(_ *testing.T, w *world) bool { w.now++; return w.now <= lastTime },
	"check": func(t *testing.T, w *world) bool {
		if w.does(t, w.Check(w.now)); w.state.IsReliedOn() && w.now >= w.StopAt() {
			t.Fatalf("it is not lost: %+v", w)
		}
		return true
	},
	"call": func(_ *testing.T, w *world) bool {
		if w.due == 0 || w.now < w.due || w.called {
			return false
		}
		w.due, w.called = 0, true
		return true
	},
	"due": func(t *testing.T, w *world) bool {
		if !w.called {
			return false
		}
		w.called = false
		w.does(t, w.Due(w.now))
		return true
	},
	"renewed":     answer(func(w *world, sent schedule.Time) (e Effects) { w.Renewed(times(sent)); return e }),
	"not renewed": answer(func(w *world, _ schedule.Time) (e Effects) { w.NotRenewed(w.now + 1); return e }),
	"not found": answer(func(w *world, sent schedule.Time) Effects {
		if w.WasBeingHandedOver(sent) {
			w.NotRenewed(w.now + 1)
			return Effects{}
		}
		return w.LeaseNotFound(w.now)
	}),
	"refreshed": func(_ *testing.T, w *world) bool { w.Renewed(times(w.now)); return true },
	"asked":     func(t *testing.T, w *world) bool { w.does(t, w.LeaseNotFound(w.now)); return true },
	"close":     func(t *testing.T, w *world) bool { w.does(t, w.Close()); return true },
	"join 1":    join(1), "join 2": join(2), "entered 1": entered(1), "entered 2": entered(2),
	"leave 0": leave(0), "leave 1": leave(1), "leave 2": leave(2),
	"left": func(t *testing.T, w *world) bool {
		if w.releases == 0 {
			return false
		}
		w.releases--
		w.does(t, w.Left())
		return true
	},
	"release finds nothing": func(t *testing.T, w *world) bool {
		if w.releases == 0 {
			return false
		}
		w.does(t, w.HoldNotFound(w.now))
		return true
	},
	"chosen": func(_ *testing.T, w *world) bool {
		w.chosen = w.chosen || w.MayBeHandedOffInMemory(w.now)
		return w.chosen
	},
	"hand off": func(t *testing.T, w *world) bool {
		if !w.chosen || w.releases == 0 {
			return false
		}
		w.does(t, w.HandOffInMemory())
		w.releases--
		return true
	},
	"park": func(t *testing.T, w *world) bool {
		_, e := w.BeginHandover(w.now, &w.handles[0], w.now+2)
		w.does(t, e)
		return true
	},
	"parked": passing(func(w *world) (e Effects) { w.HandoverEndsBy(w.now + length + 1); return e }),
	"unpark": passing(func(w *world) (e Effects) { w.CancelHandover(w.now, &w.handles[0]); return e }),
	"handed over": passing(func(w *world) Effects {
		return w.HandOverByTicket(&w.handles[0])
	}),
}

func answer(a func(w *world, sent schedule.Time) Effects) func(t *testing.T, w *world) bool {
	return func(t *testing.T, w *world) bool {
		sent := w.sent
		w.sent = 0
		w.RenewalAnswered()
		w.does(t, a(w, sent))
		return sent != 0
	}
}

func join(i int) func(t *testing.T, w *world) bool {
	return func(t *testing.T, w *world) bool {
		if w.handles[i] != Out {
			return false
		}
		_, e := w.Join(w.now, &w.handles[i])
		w.does(t, e)
		return true
	}
}

func entered(i int) func(t *testing.T, w *world) bool {
	return func(t *testing.T, w *world) bool {
		if w.handles[i] != Entering {
			return false
		}
		w.does(t, w.Entered(w.now, &w.handles[i], times(w.now-1)))
		return true
	}
}

func leave(i int) func(t *testing.T, w *world) bool {
	return func(t *testing.T, w *world) bool {
		leaves, e := w.Leave(w.now, &w.handles[i])
		w.does(t, e)
		if leaves && !w.state.IsLost() {
			w.releases++
		}
		return true
	}
}

func passing(event func(w *world) Effects) func(t *testing.T, w *world) bool {
	return func(t *testing.T, w *world) bool {
		if h := w.handles[0]; h != HandingOver && h != Abandoned {
			return false
		}
		w.does(t, event(w))
		return true
	}
}

// All histories of some events: a lease that is held is looked at before its end, and before it is overdue. There is one
// renewal at a time. Its end is told once, and is final. It has the handles that its state says.
func TestEveryShortHistory(t *testing.T) {
	all := map[world]bool{}
	var next []world
	for _, at := range []Times{times(1), {Ends: 1 + length}, {Ends: 1 + length, RenewAt: 2, Granted: true}} {
		for _, overdueAt := range []schedule.Time{0, 3} {
			w := world{now: 1}
			w.Life = New(&w.handles[0], at, overdueAt)
			w.due = w.NextDue()
			next = append(next, w)
		}
	}
	seen := map[State]int{}
	for range 9 {
		now := next
		next = nil
		for _, from := range now {
			for _, step := range steps {
				w, due := from, from.NextDue()
				if !step(t, &w) {
					continue
				}
				if next := w.NextDue(); next != due {
					w.due = next
				}
				if all[w] {
					continue
				}
				w.holds(t)
				all[w] = true
				seen[w.state]++
				next = append(next, w)
			}
		}
	}
	for state := Held; state <= Closed; state++ {
		if seen[state] == 0 {
			t.Errorf("no history leads to %s", names[state])
		}
	}
}
