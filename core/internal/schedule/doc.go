// Package schedule runs what a process does by itself: events at their times, and
// background work that its owner can wait for.
//
//	var workers schedule.Workers
//	s := schedule.New(&workers, flush)
//	s.Set(event, schedule.Now().Add(time.Second))
//	…
//	s.Stop()
//	<-workers.Wait()
//
// Events of one time are cheap in any number, and what they enqueue is sent by one
// flush: round the times of those that may as well come together.
package schedule
