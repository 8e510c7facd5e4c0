package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Enqueue hands a lock over to a task, which it enqueues: from now until the task has
// succeeded, its retries included, nobody else has the lock. In the worker the middleware of
// this package does the rest; the key that it derives from the task must be the lock's, and its
// Locker must have the same Redis and [core.Prefix].
//
// The lock has to be that of the task's own key. Otherwise nothing is handed over or enqueued, and
// the error names the lock's key, and with TaskKey the task's. The task's key is what [TaskKey]
// among opts derives. Without TaskKey it is that of [ByPayload] with the name in the lock's key: a
// lock of "orderID=42" belongs to a payload whose field orderID is 42. TaskKey is needed if that
// is true of another lock of ctx as well, or if the lock's key has another form. Where several
// locks may be held, [core.FromContextKey] returns that of a key.
//
// The lock is parked for ttl. Within ttl the task must start, and after a failure start again;
// otherwise the lock is free, and the task competes for it as others do. So ttl should be longer
// than the time that the task spends in its queue, than the delay of its retries, and than the
// two minutes after which asynq gives the tasks of a worker that died to others.
//
// The lock is free at once, without a [core.KeepFor] window, when asynq does not run the task again: its handler has
// returned [asynq.SkipRetry] or [asynq.RevokeTask] before the end of its context, or its last attempt has failed,
// panicked, or exceeded its deadline. Middleware outside must not turn such an error into another one. A task that is
// deleted, that somebody cancels, or that asynq archives without a run under the lock leaves it parked for the rest of ttl.
//
// The lock belongs to the task's ID: the [asynq.TaskID] of opts, or a new one. An ID among the
// options of [asynq.NewTask] cannot be seen, and is replaced. The payload stays as it is. The ID
// is the ticket of [core.Lock.Handover]: a task with that ID and key has the lock, whatever its
// queue.
//
// Afterwards lock is not the caller's any more: its context has ended with
// [core.ErrHandedOver], and [core.Lock.Unlock] does nothing. An error means that it is held as
// before, unless that is [core.ErrLost]. Errors are those of Handover and of
// [asynq.Client.EnqueueContext], such as [asynq.ErrDuplicateTask]; if the queue has not
// answered, the task may be in it all the same, and competes as others do. A nil lock, which
// [core.FromContextKey] returns where there is none, is an error, and so are [asynq.Group], which
// merges tasks into one with another ID, and an [asynq.ProcessIn] or [asynq.ProcessAt] of opts
// that is later than ttl.
//
// It blocks as Handover and EnqueueContext do. Others must not use lock meanwhile.
func Enqueue(
	ctx context.Context, c *asynq.Client, lock *core.Lock, t *asynq.Task, ttl time.Duration, opts ...asynq.Option,
) (*asynq.TaskInfo, error) {
	if lock == nil {
		return nil, errors.New("asynqlock: Enqueue: the lock is nil: the context holds none of the key that was asked for")
	}
	id, due := uuid.NewString(), time.Duration(0)
	for _, o := range opts {
		switch o.Type() {
		case asynq.TaskIDOpt:
			id = o.Value().(string)
		case asynq.ProcessInOpt:
			due = o.Value().(time.Duration)
		case asynq.ProcessAtOpt:
			due = time.Until(o.Value().(time.Time))
		case asynq.GroupOpt:
			return nil, errors.New("asynqlock: Enqueue: asynq.Group merges tasks into one with another ID, which cannot get the lock")
		}
	}
	opts, err := checkKey(ctx, lock, t, opts)
	if err != nil {
		return nil, err
	}
	if due > 0 && due >= ttl {
		return nil, fmt.Errorf("asynqlock: Enqueue: the task is due in %v, but the lock is parked for %v only", due, ttl)
	}
	var info *asynq.TaskInfo
	err = adapter.Handover(ctx, lock, id, ttl, func() (err error) {
		info, err = c.EnqueueContext(ctx, t, append(opts[:len(opts):len(opts)], asynq.TaskID(id))...)
		if err != nil {
			err = fmt.Errorf("asynqlock: Enqueue: %w", err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return info, nil
}

// TaskKey tells [Enqueue] by which key the worker guards the task: give both the same function.
// Where the worker has [ByAll], key derives the one of its keys whose lock is handed over. asynq
// ignores the option. It panics when key is nil.
func TaskKey(key keyfunc.Func[keyfunc.Task]) asynq.Option {
	if key == nil {
		panic("asynqlock: TaskKey needs the key function of the worker's middleware")
	}
	return taskKey(key)
}

// taskKey is an asynq.Option that asynq does not know.
type taskKey keyfunc.Func[keyfunc.Task]

func (taskKey) String() string         { return "TaskKey" }
func (taskKey) Type() asynq.OptionType { return -1 }
func (k taskKey) Value() any           { return keyfunc.Func[keyfunc.Task](k) }

// checkKey returns the options that are for asynq, or an error that says why the lock is not that
// of the task's own key.
func checkKey(ctx context.Context, lock *core.Lock, t *asynq.Task, opts []asynq.Option) ([]asynq.Option, error) {
	if t == nil {
		return opts, errors.New("asynqlock: Enqueue: task cannot be nil")
	}
	var own taskKey
	rest := make([]asynq.Option, 0, len(opts)+1)
	for _, o := range opts {
		if k, ok := o.(taskKey); ok {
			own = k
		} else {
			rest = append(rest, o)
		}
	}
	if own == nil {
		return rest, checkUsualKey(ctx, lock, t)
	}
	key, err := own(t)
	switch {
	case err != nil:
		return nil, fmt.Errorf("asynqlock: Enqueue: the task has no key: %w", err)
	case key != lock.Key():
		return nil, fmt.Errorf("asynqlock: Enqueue: the lock is that of %q, but the task's own key is %q: "+
			"hand over its lock, by core.FromContextKey", lock.Key(), key)
	}
	return rest, nil
}

// checkUsualKey is checkKey without TaskKey.
func checkUsualKey(ctx context.Context, lock *core.Lock, t *asynq.Task) error {
	if !isUsualKey(lock.Key(), t) {
		return fmt.Errorf("asynqlock: Enqueue: the lock is that of %q, and ByPayload makes no such key from the task: "+
			"hand over the lock of the task's own key, by core.FromContextKey, or say by asynqlock.TaskKey how the worker derives it", lock.Key())
	}
	for _, k := range slices.Concat(adapter.LocksOf(ctx), adapter.LocksOf(lock.Context())) {
		if k.Key() != lock.Key() && isUsualKey(k.Key(), t) {
			return fmt.Errorf("asynqlock: Enqueue: the locks of %q and of %q are held, and either could be the task's: "+
				"say by asynqlock.TaskKey how the worker derives the key", lock.Key(), k.Key())
		}
	}
	return nil
}

// isUsualKey reports whether ByPayload makes the key from the task.
func isUsualKey(key string, t *asynq.Task) bool {
	name, _, _ := strings.Cut(key, "=")
	field, err := keyfunc.TaskTemplate(name + "={payload." + name + "}")
	if err != nil {
		return false
	}
	own, err := field(t)
	return err == nil && own == key
}
