package asynqlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

const (
	// parked is how long a task stays put off that nobody promotes, and twice that at most. It is
	// random: otherwise thousands would come back at once.
	parked = time.Minute
	// leastParked is the shortest time for which a task is parked.
	leastParked = 5 * time.Second
	// surelyParked is how long before its time a task is certainly still put off. After that asynq
	// may run it, and running it once more could repeat it.
	surelyParked = 2 * time.Second
	// promoteEvery is how often notes are looked at, whatever happens.
	promoteEvery = 50 * time.Millisecond
)

// parking notes tasks whose key is busy, and has asynq run them when there is room among those
// that wait. It runs only tasks of its own process. Asynq keeps the tasks: when a process dies, the
// tasks that it has parked come when their time is over. It is safe for concurrent use; a nil one
// parks nothing.
type parking struct {
	inspector *asynq.Inspector
	workers   *workers

	ticks atomic.Bool  // a look is to come
	looks atomic.Int64 // the one that is under way, and those that are wanted since it began
}

// join begins the wait of a task for its keys. It returns how many tasks may wait for a key, -1 if
// parking does not decide that. Call acquired when the task has its keys, and leave when its wait
// is over.
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

// park notes the task of ctx, and returns when asynq runs it by itself. It returns false if the
// task cannot be parked.
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

// tick schedules a look.
func (p *parking) tick() {
	if p.ticks.CompareAndSwap(false, true) {
		time.AfterFunc(promoteEvery, func() {
			p.ticks.Store(false)
			p.look()
		})
	}
}

// look promotes tasks. If another goroutine does that already, that one does it once more.
func (p *parking) look() {
	wanted := p.looks.Add(1)
	if wanted > 1 {
		return
	}
	for p.promote(); !p.looks.CompareAndSwap(wanted, 0); p.promote() {
		wanted = p.looks.Load()
	}
}

// promote has asynq run tasks as long as there is room for them. It schedules another look while
// any task is parked or expected.
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

// run has asynq run a parked task, if that is still put off as it was. Otherwise asynq might do it
// again: RunTask takes tasks that are done or archived as well. It reports whether the task comes.
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
