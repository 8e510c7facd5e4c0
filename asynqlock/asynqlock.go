package asynqlock

import (
	"context"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// defaultLastWait is longer than the default lease, so that a holder that died
// does not cost a task its last attempt.
const defaultLastWait = time.Minute

// BusyPolicy says what becomes of a task whose key is busy.
type BusyPolicy int

const (
	// Retry puts the task back, to be tried again soon, or when the dedup window
	// in its way has ended. The default.
	Retry BusyPolicy = iota
	// Drop revokes the task, which asynq then neither retries nor archives: the
	// work is being done already, or was done within the dedup window. Only when
	// an earlier run of the same task is in the way, one that asynq gave up at a
	// deadline or a shutdown, the task is retried: else nobody would do the work.
	Drop
)

// Config is the long form of the By functions.
type Config struct {
	// Locker takes the locks. nil means [core.Default], looked up for each task;
	// with none set the task fails without having run.
	Locker *core.Locker
	// Key derives the key of a task. Required.
	Key keyfunc.Func[keyfunc.Task]
	// Options are for each lock. A task does not wait for a busy key unless
	// they, or the Locker's, say so with [core.Wait]: then it occupies a worker
	// while it waits. Keep the wait shorter than the task's timeout, for asynq
	// counts it as a failure when that ends first.
	Options []core.Option
	// Skip lets tasks through without a lock when it returns true.
	Skip func(*asynq.Task) bool
	// OnBusy says what becomes of a task whose key is busy.
	OnBusy BusyPolicy
	// LastWait is how long a task waits for a busy key on its last attempt,
	// because asynq archives it when that fails. It counts where neither Options
	// nor the Locker's say how long to wait, and where OnBusy is Retry. One
	// minute if zero; a negative value is refused.
	LastWait time.Duration
}

// ByPayload locks by a field of the JSON payload, such as "order_id" or
// "order.id", as [keyfunc.Payload] takes it. The key is "order_id=42": the name is
// part of it, the task's type is not, so that tasks of different types exclude one
// another. It panics when the path is empty or an option bad.
func ByPayload(path string, opts ...core.Option) asynq.MiddlewareFunc {
	opts = append([]core.Option{core.Name(path)}, opts...)
	return New(Config{Key: keyfunc.Payload(path), Options: opts})
}

// ByTemplate locks by a template, such as "{type}:{payload.order.id}"; see
// [keyfunc.TaskTemplate]. It panics when the template or an option is bad.
func ByTemplate(t string, opts ...core.Option) asynq.MiddlewareFunc {
	key, err := keyfunc.TaskTemplate(t)
	if err != nil {
		panic("asynqlock: ByTemplate: " + err.Error())
	}
	return New(Config{Key: key, Options: opts})
}

// By locks by any key. It panics when key is nil or an option bad.
func By(key keyfunc.Func[keyfunc.Task], opts ...core.Option) asynq.MiddlewareFunc {
	return New(Config{Key: key, Options: opts})
}

// New returns a middleware for the configuration. The handler runs with
// [core.Lock.Context], which carries ownership and is cancelled when the lock is
// lost; the task then ends with [core.ErrLost] even if the handler returned nil.
// The lock is released when the handler returns or panics. A [core.KeepFor] window
// opens when the handler returned nil.
//
// A task that must not run ends with an error instead:
//   - When the key is busy or the Locker closes, with one that [IsFailure] does
//     not count.
//   - When no key can be derived, for it never would be, with one that wraps
//     [asynq.SkipRetry], so that asynq archives the task at once.
//   - When Redis does not answer, with one that wraps [core.ErrUnavailable]. It
//     counts as a failure, and so do a missing Locker and a context that ended.
//
// New panics when Key is nil, OnBusy is unknown, LastWait is negative or an option
// is bad.
func New(cfg Config) asynq.MiddlewareFunc {
	switch {
	case cfg.Key == nil:
		panic(`asynqlock: Config.Key is nil; give it a key function, such as keyfunc.Payload("order_id")`)
	case cfg.LastWait < 0:
		panic("asynqlock: Config.LastWait is negative")
	case cfg.OnBusy != Retry && cfg.OnBusy != Drop:
		panic("asynqlock: Config.OnBusy is neither Retry nor Drop")
	}
	if err := core.CheckOptions(cfg.Options...); err != nil {
		panic("asynqlock: bad option: " + err.Error())
	}
	if cfg.LastWait == 0 {
		cfg.LastWait = defaultLastWait
	}
	g := &guard{
		config: cfg,
		usual:  append([]core.Option{core.Fallback(core.NoWait())}, cfg.Options...),
		last:   append([]core.Option{core.Fallback(core.Wait(cfg.LastWait))}, cfg.Options...),
	}
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error { return g.process(ctx, t, next) })
	}
}
