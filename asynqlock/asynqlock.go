package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// defaultLastWait is how long a task waits on its last attempt.
const defaultLastWait = 30 * time.Second

// BusyPolicy says what becomes of a task whose key is busy.
type BusyPolicy int

const (
	// Retry puts the task back, to be tried again soon. The default.
	Retry BusyPolicy = iota
	// Drop revokes the task: the work is being done already.
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
	// while it waits.
	Options []core.Option
	// Skip lets tasks through without a lock when it returns true.
	Skip func(*asynq.Task) bool
	// OnBusy says what becomes of a task whose key is busy.
	OnBusy BusyPolicy
	// LastWait is how long a task waits for a busy key on its last attempt,
	// where no [core.Wait] says otherwise, because asynq archives it when that
	// fails. 30 s if zero; a negative value is refused.
	LastWait time.Duration
}

// ByPayload locks by a field of the JSON payload, such as "order_id" or
// "order.id". It panics when the path is empty or an option bad.
func ByPayload(path string, opts ...core.Option) asynq.MiddlewareFunc {
	return New(Config{Key: keyfunc.Payload(path), Options: opts})
}

// ByTemplate locks by a template, such as "{type}:{payload.order.id}". It panics
// when the template or an option is bad.
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
//
// A task that must not run ends with an error instead: one that [IsFailure] does
// not count when the key is busy or the Locker closes; one that wraps
// [asynq.SkipRetry] when no key can be derived, for it never would; one that wraps
// [core.ErrUnavailable], to be retried as asynq does, when Redis does not answer.
//
// New panics when Key is nil, LastWait is negative or an option is bad.
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

type guard struct {
	config Config
	usual  []core.Option
	last   []core.Option // on the last attempt
}

func (g *guard) process(ctx context.Context, t *asynq.Task, next asynq.Handler) error {
	if g.config.Skip != nil && g.config.Skip(t) {
		return next.ProcessTask(ctx, t)
	}
	key, err := g.config.Key(t)
	if errors.Is(err, keyfunc.ErrSkip) {
		return next.ProcessTask(ctx, t)
	}
	if err != nil {
		return fmt.Errorf("asynqlock: no key for a task of type %q: %w: %w", t.Type(), asynq.SkipRetry, err)
	}
	locker := g.config.Locker
	if locker == nil {
		if locker = core.Default(); locker == nil {
			return errors.New("asynqlock: no Locker: call core.SetDefault, or set Config.Locker")
		}
	}
	opts := g.usual
	if isLastAttempt(ctx) {
		opts = g.last
	}
	ran := false
	err = locker.Do(ctx, key, func(ctx context.Context) error {
		ran = true
		return next.ProcessTask(ctx, t)
	}, opts...)
	switch {
	case ran || err == nil:
		return err
	case errors.Is(err, core.ErrInvalidKey):
		return fmt.Errorf("asynqlock: no key for a task of type %q: %w: %w", t.Type(), asynq.SkipRetry, err)
	case errors.Is(err, core.ErrNotAcquired) && g.config.OnBusy == Drop:
		return fmt.Errorf("asynqlock: already being done: %w: %w", asynq.RevokeTask, err)
	case errors.Is(err, core.ErrNotAcquired), errors.Is(err, core.ErrClosed):
		return &contentionError{err}
	default:
		return fmt.Errorf("asynqlock: %w", err)
	}
}

// isLastAttempt reports that asynq archives the task if it fails now.
func isLastAttempt(ctx context.Context) bool {
	retried, ok := asynq.GetRetryCount(ctx)
	most, also := asynq.GetMaxRetry(ctx)
	return ok && also && retried >= most
}
