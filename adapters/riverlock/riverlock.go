package riverlock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
)

const (
	// usualWait and usualWaiters are how long and how many jobs wait for a key in a worker.
	usualWait    = time.Second
	usualWaiters = 4
	// step is how much longer a job is snoozed each time, up to longest.
	step    = time.Second
	longest = 30 * time.Second
)

var errNoLocker = errors.New("riverlock: no Locker: give one to With, or call core.SetDefault")

// Guards makes middleware with one Locker and the same options: see [With]. It is safe for concurrent use. The zero
// value is With(nil).
type Guards struct {
	locker  *core.Locker
	options []core.Option
}

// With returns what makes middleware that takes its locks from l, with opts. A nil l is [core.Default], looked up for
// each job. It panics when an option is bad.
func With(l *core.Locker, opts ...core.Option) *Guards {
	mustBeGood(opts)
	return &Guards{l, slices.Clone(opts)}
}

// ByPayload locks by a field of the job's encoded args, such as "orderID" or "order.id", as [keyfunc.Payload] takes
// it. The key is "orderID=42": the kind is not part of it, so jobs of different kinds exclude one another. It panics when the path is
// empty or an option bad.
func (g *Guards) ByPayload(path string, opts ...core.Option) rivertype.WorkerMiddleware {
	return g.By(keyfunc.Payload(path), opts...)
}

// ByTemplate locks by a template, such as "{type}:{payload.order.id}", where the type is the job's kind; see
// [keyfunc.TaskTemplate]. It panics when the template or an option is bad.
func (g *Guards) ByTemplate(template string, opts ...core.Option) rivertype.WorkerMiddleware {
	key, err := keyfunc.TaskTemplate(template)
	if err != nil {
		panic("riverlock: ByTemplate: " + err.Error())
	}
	return g.By(key, opts...)
}

// By locks by any key. It panics when key is nil or an option bad.
//
// A job that must not run is
//   - snoozed when its key is busy, its client stops during the wait, Redis is overloaded ([core.ErrOverloaded]), or the Locker
//     closes;
//   - failed when no key can be derived, when Redis does not answer ([core.ErrUnavailable]) or there is no Locker: another attempt
//     may find what this one has missed, such as args that are encrypted, or the field in a later version.
//
// Middleware outside finds the reason in the error, such as [core.ErrNotAcquired]. No error has the key in its text. Without a key
// by [keyfunc.ErrSkip] the job runs without a lock.
func (g *Guards) By(key keyfunc.Func[keyfunc.Task], opts ...core.Option) rivertype.WorkerMiddleware {
	if key == nil {
		panic(`riverlock: By needs a key function, such as keyfunc.Payload("orderID")`)
	}
	opts = append(slices.Clone(g.options), opts...)
	mustBeGood(opts)
	own := []core.Option{adapter.Fallback(core.Wait(usualWait), core.MaxWaiters(usualWaiters))}
	if name := keyfunc.Describe(key, nil).Name; name != "" {
		own = append(own, core.Name(name))
	}
	return &middleware{locker: g.locker, key: key, options: append(own, opts...)}
}

func mustBeGood(opts []core.Option) {
	if err := adapter.Validate(opts...); err != nil {
		panic("riverlock: bad option: " + strings.ReplaceAll(err.Error(), "core: ", ""))
	}
}

type middleware struct {
	river.MiddlewareDefaults
	locker  *core.Locker
	key     keyfunc.Func[keyfunc.Task]
	options []core.Option
}

// task is what a key function sees of a job.
type task struct{ *rivertype.JobRow }

func (t task) Type() string    { return t.Kind }
func (t task) Payload() []byte { return t.EncodedArgs }

// Work runs the job under the lock of its key, or returns why it must not.
func (m *middleware) Work(ctx context.Context, job *rivertype.JobRow, doInner func(context.Context) error) error {
	key, err := m.key(task{job})
	if errors.Is(err, keyfunc.ErrSkip) {
		return doInner(ctx)
	}
	locker := cmp.Or(m.locker, core.Default())
	switch {
	case err != nil:
		return fmt.Errorf("riverlock: the key of a job of kind %q cannot be used: %w", job.Kind, err)
	case locker == nil:
		return errNoLocker
	}
	ran, err := adapter.Do(ctx, locker, key, doInner, m.options...)
	if ran {
		return err
	}
	adapter.Notify(ctx, locker, core.Event{Kind: core.EventRefused, Err: err}, m.options...)
	busy, failed := (*core.BusyError)(nil), (*core.LockError)(nil)
	err = fmt.Errorf("riverlock: the job did not run: %w", err)
	switch {
	case errors.As(err, &busy) && busy.Done:
		return snooze(busy.RetryAfter, err)
	case busy != nil:
		return snooze(delay(job), err)
	case errors.Is(err, core.ErrOverloaded) && errors.As(err, &failed):
		wait := max(failed.RetryAfter, step)
		return snooze(wait+rand.N(wait), err)
	case errors.Is(err, core.ErrClosed), ctx.Err() != nil:
		return snooze(step, err)
	default:
		return err
	}
}

// snooze has River run the job again, and keeps the reason for middleware outside.
func snooze(d time.Duration, reason error) error {
	return fmt.Errorf("%w: %w", reason, river.JobSnooze(max(0, d)))
}

// delay is the longer the more often the job was snoozed, and differs among the jobs of a key.
func delay(job *rivertype.JobRow) time.Duration {
	var earlier struct {
		Snoozes time.Duration `json:"snoozes"` // a number
	}
	_ = json.Unmarshal(job.Metadata, &earlier)
	d := step * (1 + min(max(0, earlier.Snoozes), longest/step-1))
	return d/2 + rand.N(d)
}

// withDefault is that of the functions.
var withDefault Guards

// ByPayload is [Guards.ByPayload] of With(nil).
func ByPayload(path string, opts ...core.Option) rivertype.WorkerMiddleware {
	return withDefault.ByPayload(path, opts...)
}

// ByTemplate is [Guards.ByTemplate] of With(nil).
func ByTemplate(template string, opts ...core.Option) rivertype.WorkerMiddleware {
	return withDefault.ByTemplate(template, opts...)
}

// By is [Guards.By] of With(nil).
func By(key keyfunc.Func[keyfunc.Task], opts ...core.Option) rivertype.WorkerMiddleware {
	return withDefault.By(key, opts...)
}
