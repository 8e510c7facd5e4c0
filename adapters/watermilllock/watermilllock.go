package watermilllock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
)

const (
	// usualWait is how long a message waits. How many wait is not bounded: many brokers would deliver the others again at once.
	usualWait = 5 * time.Second
	// pause is how long a message is held at least whose handler does not run: it may come back at once.
	pause = time.Second
)

// ErrNotRun is what the middleware returns when the handler has not run, and another delivery may succeed. The error is also the reason:
// [core.ErrNotAcquired], [core.ErrUnavailable], [core.ErrClosed] or that of the message's context.
var ErrNotRun = errors.New("watermilllock: the handler did not run")

var errNoLocker = fmt.Errorf("%w: no Locker: give one to With, or call core.SetDefault", ErrNotRun)

// Guards makes middleware with one Locker and the same options: see [With]. It is safe for concurrent use. The zero
// value is With(nil).
type Guards struct {
	locker  *core.Locker
	options []core.Option
}

// With returns what makes middleware that takes its locks from l, with opts. A nil l is [core.Default], looked up for
// each message. It panics when an option is bad.
func With(l *core.Locker, opts ...core.Option) *Guards {
	mustBeGood(opts)
	return &Guards{l, slices.Clone(opts)}
}

// ByPayload locks by a field of the JSON payload, such as "orderID" or "order.id", as [keyfunc.Payload] takes it. The
// key is "orderID=42": the topic is not part of it, so messages of different topics exclude one another. It panics when the path is empty
// or an option bad.
func (g *Guards) ByPayload(path string, opts ...core.Option) message.HandlerMiddleware {
	return g.By(keyfunc.Payload(path), opts...)
}

// ByTemplate locks by a template, such as "{type}:{payload.order.id}", where the type is the topic; see
// [keyfunc.TaskTemplate]. It panics when the template or an option is bad.
func (g *Guards) ByTemplate(template string, opts ...core.Option) message.HandlerMiddleware {
	key, err := keyfunc.TaskTemplate(template)
	if err != nil {
		panic("watermilllock: ByTemplate: " + err.Error())
	}
	return g.By(key, opts...)
}

// ByMetadata locks by a value of the message's metadata. The key is "orderID=42", as that of ByPayload. It panics when name is empty or
// an option bad.
func (g *Guards) ByMetadata(name string, opts ...core.Option) message.HandlerMiddleware {
	return g.guard(name, keyfunc.Named(name, func(m *message.Message) (string, error) {
		return m.Metadata.Get(name), nil // an empty key counts as missing
	}), opts)
}

// By locks by any key of the topic, which is the task's type, and the payload. It panics when key is nil or an option bad.
func (g *Guards) By(key keyfunc.Func[keyfunc.Task], opts ...core.Option) message.HandlerMiddleware {
	if key == nil {
		panic(`watermilllock: By needs a key function, such as keyfunc.Payload("orderID")`)
	}
	return g.guard(keyfunc.Describe(key, nil).Name, func(m *message.Message) (string, error) { return key(task{m}) }, opts)
}

// ByMessage locks by any key of the message. Begin it with a name of its own, by [keyfunc.Named], or else who writes the value could choose
// any lock. It panics when key is nil or an option bad.
//
// A message whose handler must not run is nacked, with [ErrNotRun], or the error of key if there is none. No error has
// the key in its text. Without a key by [keyfunc.ErrSkip] the handler runs without a lock.
func (g *Guards) ByMessage(key keyfunc.Func[*message.Message], opts ...core.Option) message.HandlerMiddleware {
	if key == nil {
		panic("watermilllock: ByMessage needs a key function")
	}
	return g.guard("", key, opts)
}

// guard makes middleware whose locks have a name for Observers, unless it is empty.
func (g *Guards) guard(name string, key keyfunc.Func[*message.Message], given []core.Option) message.HandlerMiddleware {
	opts := []core.Option{adapter.Fallback(core.Wait(usualWait))}
	if name != "" {
		opts = append(opts, core.Name(name))
	}
	opts = slices.Concat(opts, g.options, given)
	mustBeGood(opts)
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(m *message.Message) ([]*message.Message, error) { return g.handle(m, next, key, opts) }
	}
}

func mustBeGood(opts []core.Option) {
	if err := adapter.Validate(opts...); err != nil {
		panic("watermilllock: bad option: " + strings.ReplaceAll(err.Error(), "core: ", ""))
	}
}

// task is what a key function sees of a message.
type task struct{ *message.Message }

func (t task) Type() string    { return message.SubscribeTopicFromCtx(t.Context()) }
func (t task) Payload() []byte { return t.Message.Payload }

// handle runs next under the lock of the message's key, or returns why it must not.
func (g *Guards) handle(m *message.Message, next message.HandlerFunc, key keyfunc.Func[*message.Message], opts []core.Option) (
	produced []*message.Message, err error,
) {
	began := time.Now()
	k, err := key(m)
	if errors.Is(err, keyfunc.ErrSkip) {
		return next(m)
	}
	locker := cmp.Or(g.locker, core.Default())
	outer := m.Context()
	switch {
	case err != nil:
		hold(outer, began)
		return nil, fmt.Errorf("watermilllock: the key of a message cannot be used: %w", err)
	case locker == nil:
		hold(outer, began)
		return nil, errNoLocker
	}
	ran, err := adapter.Do(outer, locker, k, func(ctx context.Context) (failure error) {
		m.SetContext(ctx)
		defer m.SetContext(outer) // for the middleware outside: the lock's is cancelled by then
		produced, failure = next(m)
		return failure
	}, opts...)
	switch {
	case err == nil:
		return produced, nil
	case ran:
		return nil, err
	}
	adapter.Notify(outer, locker, core.Event{Kind: core.EventRefused, Err: err}, opts...)
	hold(outer, began)
	if errors.Is(err, core.ErrInvalidKey) {
		return nil, fmt.Errorf("watermilllock: the key of a message cannot be used: %w", err)
	}
	return nil, fmt.Errorf("%w: %w", ErrNotRun, err)
}

// hold waits until a pause after a message has come, or until the message's context ends.
func hold(ctx context.Context, came time.Time) {
	timer := time.NewTimer(time.Until(came.Add(pause)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// withDefault is that of the functions.
var withDefault Guards

// ByPayload is [Guards.ByPayload] of With(nil).
func ByPayload(path string, opts ...core.Option) message.HandlerMiddleware {
	return withDefault.ByPayload(path, opts...)
}

// ByTemplate is [Guards.ByTemplate] of With(nil).
func ByTemplate(template string, opts ...core.Option) message.HandlerMiddleware {
	return withDefault.ByTemplate(template, opts...)
}

// ByMetadata is [Guards.ByMetadata] of With(nil).
func ByMetadata(name string, opts ...core.Option) message.HandlerMiddleware {
	return withDefault.ByMetadata(name, opts...)
}

// By is [Guards.By] of With(nil).
func By(key keyfunc.Func[keyfunc.Task], opts ...core.Option) message.HandlerMiddleware {
	return withDefault.By(key, opts...)
}

// ByMessage is [Guards.ByMessage] of With(nil).
func ByMessage(key keyfunc.Func[*message.Message], opts ...core.Option) message.HandlerMiddleware {
	return withDefault.ByMessage(key, opts...)
}
