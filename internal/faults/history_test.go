package faults

import "sync"

// history collects the visits of a round, as workers report them.
type history struct {
	mu      sync.Mutex
	visits  map[string]visit
	granted map[string]int64 // by key: when it was last taken
	tasks   *tasks
}

func newHistory() *history {
	return &history{visits: map[string]visit{}, granted: map[string]int64{}, tasks: newTasks()}
}

func (h *history) add(v visit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.visits[v.ID] = v
	if v.Granted() {
		h.granted[v.Key] = max(h.granted[v.Key], v.Returned)
	}
}

// take returns what was collected, and forgets it.
func (h *history) take() []visit {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []visit
	for _, v := range h.visits {
		out = append(out, v)
	}
	clear(h.visits)
	return out
}

// grantedSince says whether a key was taken after a time.
func (h *history) grantedSince(key string, t int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.granted[key] > t
}

// holder returns a worker that has a lock, as far as is known, and means to keep it
// until a time, or runs a task; -1 for none.
func (h *history) holder(until int64) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, v := range h.visits {
		if v.Granted() && v.Planned > until && v.Released == 0 && v.Told == 0 {
			return v.Worker
		}
	}
	return h.tasks.runner()
}
