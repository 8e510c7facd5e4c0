package asynqlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
)

const (
	// parkedFor is how long a task stays put off that nobody promotes, and twice that at most.
	// It is random, or thousands would come back at once.
	parkedFor = time.Minute
	// minParkedFor is the shortest time for which a task is parked.
	minParkedFor = 5 * time.Second
	// surelyParkedFor is how long before its time a task is certainly still put off. After that asynq
	// may run it, and running it once more could repeat it.
	surelyParkedFor = 2 * time.Second
	// scanInterval is how often the parked tasks are looked through, whatever happens.
	scanInterval = 50 * time.Millisecond
)

// parking notes tasks whose key is busy, and has asynq run them when there is room among those
// that wait. It runs only tasks of its own process. Asynq keeps the tasks: when a process dies, the
// tasks that it has parked come when their time is over. It is safe for concurrent use; a nil one
// parks nothing.
type parking struct {
	inspector *asynq.Inspector
	workers   *workers

	scheduled atomic.Bool  // a scan is to come
	scans     atomic.Int64 // the one that is under way, and those that are wanted since it began
}

// join begins the wait of a task for its keys. It returns the bound on those that wait beside it,
// if parking decides that. Call acquire when the task has its keys, and leave in any case.
func (p *parking) join(keys []string) (bound []core.Option, acquire, leave func()) {
	if p == nil {
		return nil, func() {}, func() {}
	}
	most, before := p.workers.join(keys)
	end := refused
	if most == 0 {
		bound = append(bound, core.NoWait())
	} else if bound = append(bound, core.MaxWaiters(most)); before >= most {
		end = oneTooMany
	}
	leave = sync.OnceFunc(func() {
		if p.workers.leave(keys, end) {
			go p.scan()
		}
	})
	return bound, func() { end = acquired; leave() }, leave
}

// park notes the task of ctx, and returns when asynq runs it by itself. It returns false if the
// task cannot be parked.
func (p *parking) park(ctx context.Context, key string) (due time.Time, ok bool) {
	id, served := asynq.GetTaskID(ctx)
	queue, _ := asynq.GetQueueName(ctx)
	if p == nil || !served {
		return due, false
	}
	d := parkedFor
	if deadline, limited := ctx.Deadline(); limited {
		d = min(d, time.Until(deadline)/4)
	}
	if d < minParkedFor {
		return due, false
	}
	due = time.Now().Add(d + rand.N(d)).Truncate(time.Second)
	p.workers.park(&parkedTask{taskRef: taskRef{queue, id}, key: key, due: due})
	p.schedule()
	return due, true
}

// schedule has a scan made soon.
func (p *parking) schedule() {
	if p.scheduled.CompareAndSwap(false, true) {
		time.AfterFunc(scanInterval, func() {
			p.scheduled.Store(false)
			p.scan()
		})
	}
}

// scan promotes tasks. If another goroutine does that already, that one does it once more.
func (p *parking) scan() {
	wanted := p.scans.Add(1)
	if wanted > 1 {
		return
	}
	for p.promote(); !p.scans.CompareAndSwap(wanted, 0); p.promote() {
		wanted = p.scans.Load()
	}
}

// promote has asynq run tasks as long as there is room for them. It schedules another scan while
// any task is parked or expected.
func (p *parking) promote() {
	p.workers.beginScan()
	for t := p.workers.takeNext(); t != nil; t = p.workers.takeNext() {
		comes, err := p.run(t)
		switch {
		case errors.Is(err, errStillActive):
			p.workers.parkAgain(t)
		case err != nil: // asynq's Redis does not answer
			p.workers.parkAgain(t)
			p.schedule()
			return
		case !comes:
			p.workers.doesNotCome(t)
		}
	}
	if !p.workers.idle() {
		p.schedule()
	}
}

// errStillActive says that asynq has not put the task off yet.
var errStillActive = errors.New("asynqlock: the task is active still")

// run has asynq run a parked task, if that is still put off as it was. Otherwise asynq might do it
// again: RunTask takes tasks that are done or archived as well. It reports whether the task comes.
func (p *parking) run(t *parkedTask) (comes bool, err error) {
	info, err := p.inspector.GetTaskInfo(t.queue, t.id)
	switch {
	case errors.Is(err, asynq.ErrTaskNotFound), errors.Is(err, asynq.ErrQueueNotFound):
		return false, nil
	case err != nil:
		return false, err
	case info.State == asynq.TaskStateActive:
		return false, errStillActive
	case !info.NextProcessAt.Equal(t.due), t.isDueSoon():
		return false, nil
	}
	err = p.inspector.RunTask(t.queue, t.id)
	return err == nil, err
}
