package schedule

import (
	"container/heap"
	"sync"
	"time"
)

// linger is how long a goroutine without work stays: work tends to come again soon, and
// finds a goroutine that runs, with a stack that has grown already.
const linger = 200 * time.Millisecond

// Scheduler calls events at their times from one goroutine, which runs while something
// is scheduled and 200 ms longer. Its methods do not block and are safe for concurrent
// use, those for one event included.
type Scheduler struct {
	workers *Workers
	flush   func()

	mu      sync.Mutex
	buckets buckets
	byTime  map[Time]*bucket
	spare   *bucket // for the next time: a lone event that comes and goes allocates nothing
	running bool
	stopped bool
	timer   *time.Timer // wakes the goroutine
	wakeAt  Time        // what the timer was set to
	endAt   Time        // when the goroutine ends if nothing is scheduled until then
}

// New returns a Scheduler whose goroutine is one of the workers. flush is called by it
// after each round of events, and must not block. New starts nothing.
func New(w *Workers, flush func()) *Scheduler {
	return &Scheduler{workers: w, flush: flush, byTime: map[Time]*bucket{}, timer: time.NewTimer(0)}
}

// Set schedules an event for a time, soon if that is past, or moves it there. After
// Stop it does nothing.
func (s *Scheduler) Set(e Event, at Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.remove(e.entry())
	s.bucketOf(at).add(e)
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
	if s.stopped || !s.remove(e.entry()) || len(s.buckets) > 0 {
		return
	}
	now := Now()
	s.endAt = now.Add(linger)
	if s.endAt < s.wakeAt {
		s.wake(s.endAt, now)
	}
}

// Stop drops all events for good, and ends the goroutine, as soon as the events that it
// is calling have returned. It does not wait for that: [Workers.Wait] does.
func (s *Scheduler) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.buckets, s.byTime, s.spare, s.endAt = nil, nil, nil, 0
	s.wake(0, 0)
}

// remove reports whether the event was scheduled. s.mu is held.
func (s *Scheduler) remove(e *Entry) bool {
	b := e.bucket
	if b == nil {
		return false
	}
	b.remove(e)
	if len(b.events) == 0 {
		s.drop(b)
	}
	return true
}

// bucketOf finds or makes the bucket of a time. s.mu is held.
func (s *Scheduler) bucketOf(at Time) *bucket {
	b := s.byTime[at]
	if b == nil {
		if b, s.spare = s.spare, nil; b == nil {
			b = &bucket{}
		}
		b.at = at
		s.byTime[at] = b
		heap.Push(&s.buckets, b)
	}
	return b
}

// drop takes out a bucket that is empty. s.mu is held.
func (s *Scheduler) drop(b *bucket) {
	heap.Remove(&s.buckets, b.index)
	delete(s.byTime, b.at)
	s.spare = b
}

// wake has the goroutine look at a time. s.mu is held.
func (s *Scheduler) wake(at, now Time) {
	s.wakeAt = at
	s.timer.Reset(at.Sub(now))
}

func (s *Scheduler) run() {
	for {
		due, now, ok := s.next()
		if !ok {
			return
		}
		if len(due) == 0 {
			<-s.timer.C
			continue
		}
		for _, e := range due {
			e.Due(now)
		}
		s.flush()
	}
}

// next takes out what is due. If nothing is, it sets the timer. It is false when the
// goroutine is to end.
func (s *Scheduler) next() (due []Event, now Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = Now()
	for len(s.buckets) > 0 && s.buckets[0].at <= now {
		due = s.buckets[0].empty(due)
		s.drop(s.buckets[0])
	}
	if len(due) > 0 {
		s.endAt = now.Add(linger)
		return due, now, true
	}
	at := s.endAt
	if len(s.buckets) > 0 {
		at = s.buckets[0].at
	}
	s.running = at > now
	if s.running {
		s.wake(at, now)
	}
	return nil, now, s.running
}
