package core

import "sync"

// tasks counts the goroutines of a Locker, so that Close can wait for them.
type tasks struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n is 0; nil when nobody waits
}

func (t *tasks) start(f func()) {
	t.mu.Lock()
	t.n++
	t.mu.Unlock()
	go func() {
		defer t.end()
		f()
	}()
}

func (t *tasks) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	if t.n == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// wait returns a channel that is closed when no task runs.
func (t *tasks) wait() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	return t.idle
}
