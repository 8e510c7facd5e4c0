package schedule

import "sync"

// Queue calls functions that others have written, such as a log handler, one after the other and each in a goroutine of
// its own: nothing of ours waits for one that blocks, and one that panics, or ends its goroutine, is as one that returns.
// The zero value is ready; the methods are safe for concurrent use and do not block.
type Queue struct {
	mu       sync.Mutex
	calls    []func() // the first one is under way
	underWay Count
}

// Put has f called after all that were put before. It is false when that many are left: then f is not called.
func (q *Queue) Put(f func(), most int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.calls) >= most {
		return false
	}
	q.underWay.Begin()
	if q.calls = append(q.calls, f); len(q.calls) == 1 {
		go q.run(f)
	}
	return true
}

// IsEmpty says that nothing that was put is left.
func (q *Queue) IsEmpty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.calls) == 0
}

// Empty returns a channel that is closed as soon as nothing is left.
func (q *Queue) Empty() <-chan struct{} { return q.underWay.None() }

func (q *Queue) run(f func()) {
	defer func() {
		_ = recover()
		q.mu.Lock()
		defer q.mu.Unlock()
		q.calls[0] = nil
		if q.calls = q.calls[1:]; len(q.calls) > 0 {
			go q.run(q.calls[0])
		} else {
			q.calls = nil
		}
		q.underWay.End()
	}()
	f()
}
