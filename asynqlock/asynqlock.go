package asynqlock

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// BusyPolicy says what becomes of a task whose key is busy.
type BusyPolicy int

const (
	// Retry puts the task back, to be tried again soon, or when the dedup window
	// in its way has ended. The default.
	Retry BusyPolicy = iota
	// Drop revokes the task, which asynq then neither retries nor archives: the
	// work is being done already, or was done within the dedup window. The task is
	// retried only when an earlier run of itself holds the key, which asynq gave up
	// at a deadline or a shutdown: otherwise nobody would do the work. asynq logs a
	// warning for each, "revoke task id=…": a Logger in asynq.Config can leave it out,
	// and LogLevel asynq.ErrorLevel leaves out all of asynq's warnings.
	Drop
	// KeepOne has one task run and one wait, and drops the rest as Drop does: so a hundred that workers take during a run are one
	// more run, and a run begins after each task that is dropped. The first that finds its key busy waits, over its retries and
	// when its worker dies, one of each type for a key. The next one may wait from just before its handler starts. With
	// [core.KeepFor] it waits for the end of the dedup window, too.
	//
	// Redis has the task that waits as a parked lock, whose key is "KeepOne=", the type, ":" and the key; Observers hear of it
	// under the name KeepOne, and of no refusal of the task. If that task is deleted, or archived without a run, others are
	// dropped for five minutes more while the key is busy. Nobody is dropped because of a task on its last attempt, which asynq
	// archives, nor because of one whose [asynq.Deadline] comes before its own: give a task no [asynq.Timeout] beside that, for asynq
	// tells only which of them is over first. If Redis loses that lock, one more task waits, and runs; if it is back while its task runs,
	// the handler runs once more. While it is unknown who waits, no task is dropped, but retried.
	//
	// A worker may stand still, and go on when another one has done its task. So that it does not wait with that, a task
	// that asynq has retried leaves a dedup window of an hour when it runs or is dropped, whose key is "KeepOne=" and the
	// beginning of its owners. Within that hour it cannot be the one that waits, if its run has failed: it is retried, as with Retry.
	// That needs an IsFailure that counts [asynq.ErrLeaseExpired], as [Configure] sets it.
	//
	// A key is one, and exclusive: KeepOne cannot be combined with Keys, Inspector, Shared, Permits, Weight or a Locker of
	// [core.NewQuorum].
	KeepOne
)

// Config is the long form of the By functions.
type Config struct {
	// Locker takes the locks. nil means that of [With], or else [core.Default], looked up for each
	// task; with none set the task fails without having run.
	Locker *core.Locker
	// Key derives the key of a task. Key or Keys is required.
	Key keyfunc.Func[keyfunc.Task]
	// Keys, in place of Key, derives several keys: the task needs the locks of all of them; see
	// [ByAll].
	Keys keyfunc.Set[keyfunc.Task]
	// Once skips a task that has been done; see [Once]. It takes a Key, and Options or those of the Locker have
	// [core.KeepFor]. It cannot be combined with Keys, Shared, Permits and Weight.
	Once bool
	// Options are for each lock. Where neither they nor the Locker's say otherwise, a
	// task waits a second for a busy key, half of the time to its deadline if that is
	// less, and with OnBusy Drop not at all; and at most four tasks wait for a key in
	// a process, see [core.Wait] and [core.MaxWaiters]. A waiting task occupies a
	// worker. However long the wait, it ends a tenth of that time before the deadline,
	// 100 ms at least, and the task is put off, for asynq would count a failure.
	Options []core.Option
	// Shared says which tasks share the lock: they run beside one another, and the others alone;
	// see [core.Shared].
	Shared func(*asynq.Task) bool
	// Permits says how many tasks may hold the lock when one is admitted, such as by the
	// tenant's plan; see [core.Permits]. One for which it returns less than 1, or more than
	// 10,000, fails. Where all have the same, [core.Permits] among the Options does.
	Permits func(*asynq.Task) int
	// Weight says how many of the permits a task takes, in place of one; see [core.Weight]. One
	// for which it returns less than 1, or more than there are, fails.
	Weight func(*asynq.Task) int
	// Skip lets tasks through without a lock when it returns true.
	Skip func(*asynq.Task) bool
	// OnBusy says what becomes of a task whose key is busy.
	OnBusy BusyPolicy
	// Inspector, of the Redis that has the tasks, parks tasks whose key is busy: they leave
	// their workers when enough others wait, and asynq runs them when there is room. The
	// package's documentation says more under hot keys. nil: tasks come back by [RetryDelay],
	// which is needed in any case. Make it by asynq.NewInspectorFromRedisClient, with a client
	// of its own whose MaxRetries is -1: a client that resends a command when the reply is lost
	// could start a task again that is done by then. The middleware does not close it.
	// It cannot be combined with [core.MaxWaiters] among the Options, nor with OnBusy Drop or KeepOne.
	Inspector *asynq.Inspector
	// Workers and TaskCheckInterval are Concurrency and TaskCheckInterval of the server's
	// asynq.Config, with asynq's defaults if zero. Only parking uses them. The middleware counts
	// the busy workers, so all tasks of the server should pass through this one.
	Workers           int
	TaskCheckInterval time.Duration
	// LastWait is how long a task waits for a busy key on its last attempt,
	// because asynq archives it when that fails. It is used where the Locker's options do not say
	// how long to wait, and cannot be combined with Options that do, or with OnBusy Drop. One
	// minute if zero. It should fit into the task's timeout, with the time that the work
	// takes. Only the number of workers bounds how many tasks wait like this, unless Options
	// or the Locker's have [core.MaxWaiters]: then one too many is archived.
	LastWait time.Duration
}

// ByPayload locks by a field of the JSON payload, such as "orderID" or
// "order.id", as [keyfunc.Payload] takes it. The key is "orderID=42": the name is
// part of it, the task's type is not, so that tasks of different types exclude one
// another. It panics when the path is empty or an option bad.
func ByPayload(path string, opts ...core.Option) asynq.MiddlewareFunc {
	return withDefault.ByPayload(path, opts...)
}

// ByTemplate locks by a template, such as "{type}:{payload.order.id}"; see
// [keyfunc.TaskTemplate]. It panics when the template or an option is bad.
func ByTemplate(t string, opts ...core.Option) asynq.MiddlewareFunc {
	return withDefault.ByTemplate(t, opts...)
}

// By locks by any key. It panics when key is nil or an option bad.
func By(key keyfunc.Func[keyfunc.Task], opts ...core.Option) asynq.MiddlewareFunc {
	return withDefault.By(key, opts...)
}

// ByAll locks by all of several keys: the task runs when it has the locks of each, as
// [core.Locker.LockAll] takes them. It panics when keys is nil or an option bad.
func ByAll(keys keyfunc.Set[keyfunc.Task], opts ...core.Option) asynq.MiddlewareFunc {
	return withDefault.ByAll(keys, opts...)
}

// Once runs the task of a key once: one whose key was done within [core.KeepFor], which is needed, is skipped, as a success, and
// its ResultWriter gets the result that the first has written by [WriteResult]. One that comes while another runs waits for it,
// or is put off, as [Config.OnBusy] says. The key says what is done: give it the task's type, unless others do the same work.
//
//	jobs.Use(asynqlock.Once(keyfunc.Join(keyfunc.TaskType(), keyfunc.Payload("month")), core.KeepFor(24*time.Hour)))
//
// What becomes of an error, a panic, a worker that has died and the like, is as [core.Once] says, but an error is its own task's
// alone: that is retried, and runs again; after a worker that died, or an error that is [core.ErrOutcomeUnknown], with a
// [core.AttemptOf] of more than 1, or, with [core.RefuseUnknown], it fails with ErrOutcomeUnknown. Once fails with
// [core.ErrDeadlock] inside of middleware that has locked the same key, and cannot be combined with a lock that [Enqueue] has
// handed over to the task. Once panics when key is nil or an option bad.
func Once(key keyfunc.Func[keyfunc.Task], opts ...core.Option) asynq.MiddlewareFunc {
	return withDefault.Once(key, opts...)
}

// New returns a middleware for the configuration. The handler runs with
// [core.Lock.Context], which carries ownership and is cancelled when the lock is
// lost; the task then ends with [core.ErrLost] even if the handler returned nil.
// The lock is released when the handler returns or panics. A [core.KeepFor] window
// opens when the handler returned nil.
//
// A task that must not run ends with an error instead:
//   - When the key is busy, Redis is overloaded, the Locker closes or the deadline came near during the wait, with
//     an error that [IsFailure] does not count.
//   - When no key can be derived, with one that wraps [asynq.SkipRetry]: asynq archives the
//     task at once, because no retry would find a key.
//   - When Redis does not answer, with one that wraps [core.ErrUnavailable]. It
//     counts as a failure, and so do a missing Locker and a context that ended.
//
// New panics unless exactly one of Key and Keys is set, when OnBusy is unknown, or has an option that it cannot be combined
// with, when LastWait, Workers or TaskCheckInterval is negative or has no effect, when an option
// is bad, and when Shared or Permits is combined with the other one, [core.KeepFor], or an option of the same form, or Weight is
// without permits.
func New(cfg Config) asynq.MiddlewareFunc { return withDefault.New(cfg) }

func middleware(cfg Config) asynq.MiddlewareFunc {
	switch {
	case cfg.Key != nil && cfg.Keys != nil:
		panic("asynqlock: Config has a Key and Keys; set one of them")
	case cfg.Key == nil && cfg.Keys == nil:
		panic(`asynqlock: Config.Key is nil; give it a key function, such as keyfunc.Payload("orderID")`)
	case cfg.LastWait < 0:
		panic("asynqlock: Config.LastWait is negative")
	case cfg.Once && (cfg.Keys != nil || cfg.Shared != nil || cfg.Permits != nil || cfg.Weight != nil):
		panic("asynqlock: Config.Once is for a Key, without Keys, Shared, Permits and Weight: a task is done once under the lock of one key")
	case cfg.Once && cfg.OnBusy == KeepOne:
		panic("asynqlock: Config.Once is for OnBusy Retry or Drop: of KeepOne each run does the work again")
	case cfg.Inspector != nil && (cfg.OnBusy == Drop || cfg.OnBusy == KeepOne):
		panic("asynqlock: Config.Inspector is for OnBusy Retry: Drop and KeepOne have no tasks that could be parked")
	case cfg.Workers < 0 || cfg.TaskCheckInterval < 0:
		panic("asynqlock: Config.Workers or TaskCheckInterval is negative")
	case cfg.Inspector == nil && (cfg.Workers > 0 || cfg.TaskCheckInterval > 0):
		panic("asynqlock: Config.Workers and TaskCheckInterval are for parking: set Config.Inspector, or leave them out")
	}
	if cfg.Once {
		cfg.Options = append(cfg.Options, adapter.Once())
	}
	cfg.validate()
	switch longest, most := adapter.Waits(cfg.Options...); {
	case cfg.LastWait > 0 && (longest != nil || cfg.OnBusy == Drop):
		panic("asynqlock: Config.LastWait has no effect with core.Wait, core.NoWait or OnBusy Drop: leave one of them out")
	case cfg.Inspector != nil && most != nil:
		panic("asynqlock: core.MaxWaiters has no effect with Config.Inspector, which parks tasks instead: leave one of them out")
	}
	forms := adapter.Forms[*asynq.Task]{Shared: cfg.Shared, Permits: cfg.Permits, Weight: cfg.Weight}
	if err := forms.Validate(cfg.Options...); err != nil {
		panic("asynqlock: " + err.Error())
	}
	formed := cfg.Shared != nil || cfg.Permits != nil || cfg.Weight != nil || !adapter.Parks(nil, cfg.Options...)
	if cfg.OnBusy == KeepOne && (cfg.Keys != nil || formed) {
		panic("asynqlock: OnBusy KeepOne is for one key, whose lock a task has alone: " +
			"it cannot be combined with Keys, Shared, Permits or Weight; use Retry")
	}
	cfg.LastWait = cmp.Or(cfg.LastWait, defaultLastWait)
	g := &guard{all: cfg.Keys != nil, backlogs: newBacklogs()}
	if cfg.Inspector != nil {
		g.parking = &parking{inspector: cfg.Inspector, workers: newWorkers(cfg.Workers, cfg.TaskCheckInterval)}
	}
	if !g.all {
		key := cfg.Key
		cfg.Keys = func(t keyfunc.Task) ([]string, error) {
			k, err := key(t)
			return []string{k}, err
		}
	}
	if name := keyfunc.DescribeSet(cfg.Keys, nil).Name; name != "" {
		cfg.Options = append([]core.Option{core.Name(name)}, cfg.Options...)
	}
	g.config, g.forms = cfg, forms
	g.log.Logger = func() *slog.Logger { return adapter.LoggerOf(g.locker()) }
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error { return g.process(ctx, t, next) })
	}
}
