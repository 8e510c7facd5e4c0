package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
)

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

// checkKey returns why the lock is not that of the task's own key, or the options that are for
// asynq.
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
		return nil, fmt.Errorf("asynqlock: Enqueue: the lock is that of %q, but the task's own key is %q: hand over core.FromContextKey(ctx, %q)", lock.Key(), key, key)
	}
	return rest, nil
}

// checkUsualKey is checkKey for a task whose key nobody has told.
func checkUsualKey(ctx context.Context, lock *core.Lock, t *asynq.Task) error {
	if !isUsualKey(lock.Key(), t) {
		return fmt.Errorf("asynqlock: Enqueue: the lock is that of %q, and ByPayload makes no such key from the task: hand over the lock of the task's own key, by core.FromContextKey, or say by asynqlock.TaskKey how the worker derives it", lock.Key())
	}
	for _, k := range slices.Concat(adapter.LocksOf(ctx), adapter.LocksOf(lock.Context())) {
		if k.Key() != lock.Key() && isUsualKey(k.Key(), t) {
			return fmt.Errorf("asynqlock: Enqueue: the locks of %q and of %q are held, and either could be the task's: say by asynqlock.TaskKey how the worker derives the key", lock.Key(), k.Key())
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
