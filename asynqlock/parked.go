package asynqlock

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
)

const (
	// parked is for how long a task stays put off that nobody promotes, twice that at most: it
	// is random, or thousands would come back at once.
	parked = time.Minute
	// leastParked is what is worth a note.
	leastParked = 5 * time.Second
	// surelyParked is how long before its time a task is certainly put off still: asynq may
	// run it from then on, and running it once more could repeat it.
	surelyParked = 2 * time.Second
	// promoteEvery is how often notes are looked at, whatever happens.
	promoteEvery = 50 * time.Millisecond
)

// parking notes tasks whose key is busy beside its lock, and has asynq run them when there is
// room among those that wait. A note that is lost costs its task the time for which it was put
// off, no more. It is safe for concurrent use; a nil one parks nothing.
type parking struct {
	inspector *asynq.Inspector
	workers   *workers
	wake      chan struct{} // has room for one

	mu       sync.Mutex
	promotes bool // there is a goroutine that promotes; it ends when there are no notes
}

// note is what is left beside the lock.
type note struct {
	Queue, ID string
	Due       int64 // Unix time at which asynq runs the task if nobody else has it run
}

func newParking(inspector *asynq.Inspector, w *workers) *parking {
	return &parking{inspector: inspector, workers: w, wake: make(chan struct{}, 1)}
}

func (p *parking) begin() {
	if p != nil {
		p.workers.begin()
	}
}

func (p *parking) end() {
	if p != nil {
		p.workers.end()
	}
}

// join is for a task that is going to wait for its keys, and returns how many may wait for one; less
// than 0: nobody says. acquired is called when it has them, and leave when it waits no longer.
func (p *parking) join(keys []string) (most int, acquired, leave func()) {
	if p == nil {
		return -1, func() {}, func() {}
	}
	began := time.Now()
	most, before := p.workers.join(keys)
	inVain := before < most || most == 0 // and not refused because too many wait
	leave = sync.OnceFunc(func() {
		if inVain {
			p.workers.refused(keys)
		}
		p.workers.leave(keys)
	})
	acquired = func() {
		inVain = false
		leave()
		if p.workers.acquired(keys, time.Since(began)/time.Duration(before+1)) {
			select {
			case p.wake <- struct{}{}:
			default: // it is awake
			}
		}
	}
	return most, acquired, leave
}

// park leaves a note for the task of ctx, and returns when the task is due without it. It
// returns false for one that cannot be parked.
func (p *parking) park(ctx context.Context, locker *core.Locker, key string) (due time.Time, ok bool) {
	id, served := asynq.GetTaskID(ctx)
	queue, _ := asynq.GetQueueName(ctx)
	if p == nil || !served {
		return due, false
	}
	life := parked
	if deadline, limited := ctx.Deadline(); limited {
		life = min(life, time.Until(deadline)/4)
	}
	if life < leastParked {
		return due, false
	}
	due = time.Now().Add(life + rand.N(life)).Truncate(time.Second)
	text, err := json.Marshal(note{queue, id, due.Unix()})
	return due, err == nil && p.add(ctx, locker, key, string(text))
}

func (p *parking) add(ctx context.Context, locker *core.Locker, key, text string) (added bool) {
	if adapter.AddNote(ctx, locker, key, text, 2*parked) != nil {
		return false
	}
	p.workers.note(key, locker)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.promotes {
		p.promotes = true
		go p.promote()
	}
	return true
}

// promote has asynq run tasks as there is room for them, as long as there are notes.
func (p *parking) promote() {
	tick := time.NewTicker(promoteEvery)
	defer tick.Stop()
	for {
		noted := p.workers.noted()
		for _, n := range noted {
			p.promoteFrom(n)
		}
		if len(noted) == 0 && p.ends() {
			return
		}
		select {
		case <-p.wake:
		case <-tick.C:
		}
	}
}

// ends says that there are no notes any more, and that the next one starts a new goroutine.
func (p *parking) ends() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.promotes = len(p.workers.noted()) > 0
	return !p.promotes
}

// promoteFrom promotes tasks of a key as there is room for them.
func (p *parking) promoteFrom(from notes) {
	ctx := context.Background()
	for {
		room := p.workers.room(from.key)
		if room <= 0 {
			return
		}
		taken, more, err := adapter.TakeNotes(ctx, from.locker, from.key, room)
		if errors.Is(err, core.ErrClosed) {
			p.workers.none(from)
		}
		if err != nil {
			return
		}
		for i, text := range taken {
			if !p.run(text, from.key) {
				for _, text := range taken[i:] {
					p.add(ctx, from.locker, from.key, text)
				}
				return
			}
		}
		if !more {
			p.workers.none(from)
		}
		if !more || len(taken) == 0 {
			return
		}
	}
}

// run has asynq run a task that was parked, if it is still as it was put off. Else asynq might
// do it again: RunTask takes tasks that are done or archived as well. It returns false to be
// asked again a little later.
func (p *parking) run(text, key string) (done bool) {
	var n note
	if json.Unmarshal([]byte(text), &n) != nil || time.Until(time.Unix(n.Due, 0)) < surelyParked {
		return true // asynq runs it soon
	}
	info, err := p.inspector.GetTaskInfo(n.Queue, n.ID)
	switch {
	case errors.Is(err, asynq.ErrTaskNotFound), errors.Is(err, asynq.ErrQueueNotFound):
		return true
	case err != nil, info.State == asynq.TaskStateActive: // which it is until asynq has put it off
		return false
	case info.NextProcessAt.Unix() != n.Due, !strings.Contains(info.LastErr, didNotRun):
		return true
	}
	p.workers.promote(key) // it may come at once
	return p.inspector.RunTask(n.Queue, n.ID) == nil
}
