package asynqlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hibiken/asynq"
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

// parking notes tasks whose key is busy, and has asynq run them when there is room among those that
// wait. A process has its own tasks run only: it is asynq that has them, so a process that dies
// costs those that it has parked the time for which they were put off, no more. It is safe for
// concurrent use; a nil one parks nothing.
type parking struct {
	inspector *asynq.Inspector
	workers   *workers

	mu    sync.Mutex
	ticks bool // a look is to come
	looks bool // one is under way
	again bool // another one follows that
}

func newParking(inspector *asynq.Inspector, w *workers) *parking {
	return &parking{inspector: inspector, workers: w}
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
		if p.workers.acquired(keys) {
			go p.look()
		}
	}
	return most, acquired, leave
}

// park notes the task of ctx, and returns when it is due if nobody has it run. It
// returns false for one that cannot be parked.
func (p *parking) park(ctx context.Context, key string) (due time.Time, ok bool) {
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
	p.workers.note(&note{task: taskRef{queue, id}, key: key, due: due})
	p.tick()
	return due, true
}

// tick has a look come in a while.
func (p *parking) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ticks {
		return
	}
	p.ticks = true
	time.AfterFunc(promoteEvery, func() {
		p.mu.Lock()
		p.ticks = false
		p.mu.Unlock()
		p.look()
	})
}

// look promotes, unless that is under way: then it is done once more.
func (p *parking) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.again = true
	if p.looks {
		return
	}
	p.looks = true
	for p.again {
		p.again = false
		p.mu.Unlock()
		p.promote()
		p.mu.Lock()
	}
	p.looks = false
}

// promote has asynq run tasks as there is room for them, and sees to it that there is another look
// as long as any are parked, or expected.
func (p *parking) promote() {
	p.workers.look()
	for n := p.workers.take(); n != nil; n = p.workers.take() {
		comes, err := p.run(n)
		switch {
		case errors.Is(err, errNotYet):
			p.workers.again(n)
		case err != nil: // asynq's Redis does not answer
			p.workers.again(n)
			p.tick()
			return
		case !comes:
			p.workers.stale(n)
		}
	}
	if !p.workers.idle() {
		p.tick()
	}
}

// errNotYet says that a task is active: asynq has not put it off yet.
var errNotYet = errors.New("asynqlock: the task is active still")

// run has asynq run a task that was parked, if it is still as it was put off. Else asynq might
// do it again: RunTask takes tasks that are done or archived as well. It reports whether the task comes.
func (p *parking) run(n *note) (comes bool, err error) {
	info, err := p.inspector.GetTaskInfo(n.task.queue, n.task.id)
	switch {
	case errors.Is(err, asynq.ErrTaskNotFound), errors.Is(err, asynq.ErrQueueNotFound):
		return false, nil
	case err != nil:
		return false, err
	case info.State == asynq.TaskStateActive:
		return false, errNotYet
	case !info.NextProcessAt.Equal(n.due), n.isLate():
		return false, nil
	}
	err = p.inspector.RunTask(n.task.queue, n.task.id)
	return err == nil, err
}
