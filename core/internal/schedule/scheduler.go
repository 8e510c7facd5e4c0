// Package schedule runs what a process does by itself: events at their times, and
// background work that its owner can wait for.
//
//	var workers schedule.Workers
//	s := schedule.New(&workers, flush)
//	s.Set(event, schedule.Now().Add(time.Second))
//	…
//	s.Stop()
//	<-workers.Stop()
//
// What events of about one time enqueue is sent by one flush: round the times of those that may as
// well come together.
package schedule

import (
	"sync"
	"time"
)

// maxRound is how many events are called in one round: others may need the Scheduler meanwhile.
const maxRound = 256

// Event is what a [Scheduler] can call. It embeds a [Timer], which provides what is
// unexported.
type Event interface {
	// Due is called once at or after the time set, by the goroutine that calls all
	// events of the Scheduler, so it must not block. It may set any event, its own
	// too, to come again. now is the present time. The Scheduler holds no lock: the
	// event may have been removed or moved meanwhile and must look for itself.
	Due(now Time)

	timer() *Timer
}

// Timer is an [Event]'s place in a [Scheduler]. The zero value is ready; an event
// belongs to one Scheduler, and must not be copied while it is scheduled.
type Timer struct {
	place int32 // in the heap, from 1 on; 0: not scheduled
}

func (e *Timer) timer() *Timer { return e }

// Scheduler calls events at their times from one goroutine, which runs while something
// is scheduled and 200 ms longer. Its methods do not block and are safe for concurrent
// use, those for one event included.
type Scheduler struct {
	workers *Workers
	flush   func()

	mu      sync.Mutex
	events  heap
	running bool
	stopped bool
	timer   *time.Timer // wakes the goroutine
	wakeAt  Time        // what the timer was set to
	endAt   Time        // when the goroutine ends if nothing is scheduled until then
}

// New returns a Scheduler whose goroutine is one of the workers. flush is called by it
// after the events of about one time, and must not block. New starts nothing.
func New(w *Workers, flush func()) *Scheduler {
	return &Scheduler{workers: w, flush: flush, timer: time.NewTimer(0)}
}

// Set schedules an event for a time, soon if that is past, or moves it there. After
// Stop it does nothing.
func (s *Scheduler) Set(e Event, at Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.events.set(item{at, e})
	switch {
	case !s.running:
		s.running = true
		s.workers.Start(s.run)
	case at < s.wakeAt:
		s.wake(at, Now())
	}
}

// Remove takes an event out. It does nothing to one that is not scheduled, or whose
// time has come: that one's Due may be running, or about to.
func (s *Scheduler) Remove(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	place := int(e.timer().place)
	if s.stopped || place == 0 {
		return
	}
	if s.events.remove(place - 1); len(s.events) > 0 {
		return
	}
	now := Now()
	if s.endAt = now.Add(linger); s.endAt < s.wakeAt {
		s.wake(s.endAt, now)
	}
}

// Stop drops all events for good, and ends the goroutine, as soon as the events that it
// is calling have returned. It does not wait for that: [Workers.Stop] does.
func (s *Scheduler) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped, s.events, s.endAt = true, nil, 0
	s.wake(0, 0)
}

// wake has the goroutine look at a time. s.mu is held.
func (s *Scheduler) wake(at, now Time) {
	s.wakeAt = at
	s.timer.Reset(at.Sub(now))
}

// run flushes once for events that take several rounds: what flushes sees how many there are.
func (s *Scheduler) run() {
	var room []Event
	more := false // perhaps, after a full round
	for {
		due, now, ok := s.next(room)
		for _, e := range due {
			e.Due(now)
		}
		room = due
		called := more || len(due) > 0
		if more = len(due) == maxRound; called && !more {
			s.flush()
		}
		switch {
		case !ok:
			return
		case len(due) == 0:
			<-s.timer.C
		}
	}
}

// next takes out what is due, in the memory of what was. If nothing is, it sets the timer. It is false
// when the goroutine is to end.
func (s *Scheduler) next(room []Event) (due []Event, now Time, ok bool) {
	clear(room)
	due = room[:0]
	s.mu.Lock()
	defer s.mu.Unlock()
	now = Now()
	for len(s.events) > 0 && len(due) < maxRound && s.events[0].at <= now {
		due = append(due, s.events.remove(0))
	}
	if len(due) > 0 {
		s.endAt = now.Add(linger)
		return due, now, true
	}
	at := s.endAt
	if len(s.events) > 0 {
		at = s.events[0].at
	}
	if s.running = at > now; s.running {
		s.wake(at, now)
	}
	return due, now, s.running
}

// Time is a time on the monotonic clock, in nanoseconds since some time long past: a
// third of the size of a time.Time. Times compare by their value. 0 is no time.
type Time int64

// epoch lies well before any clock that a test may set.
var epoch = time.Now().Add(-64 * 365 * 24 * time.Hour)

// Now returns the present time.
func Now() Time { return Time(time.Since(epoch)) }

// At converts a time. One without a monotonic reading is taken by the clock of this
// machine as it was when the process began.
func At(t time.Time) Time { return Time(t.Sub(epoch)) }

// Add returns the time d after t.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns how long after u t is.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Wall returns the time by the clock of this machine, in so far as that was not set
// since the process began. It has a monotonic reading.
func (t Time) Wall() time.Time { return epoch.Add(time.Duration(t)) }
