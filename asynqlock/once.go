package asynqlock

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/core"
)

// maxResult is how many bytes a result may have: its JSON, which core stores, is a third longer.
const maxResult = 48_000

// result is what a handler under Once has written last.
type result struct{ text atomic.Pointer[[]byte] }

type resultKey struct{}

// WriteResult writes the result of a task by its [asynq.Task.ResultWriter], in place of that one's Write: under [Once] it also
// keeps the result, for the tasks that are skipped. ctx is that of the handler. Of several results the last one counts. Under
// Once a result of more than 48,000 bytes is not written, and fails with [core.ErrResultTooLarge]. Outside of a server, as in a
// test, nothing is written. It blocks as asynq does, for one request to Redis, and is safe for concurrent use.
func WriteResult(ctx context.Context, t *asynq.Task, text []byte) error {
	kept, once := ctx.Value(resultKey{}).(*result)
	if once && len(text) > maxResult {
		return fmt.Errorf("asynqlock: %w: it has %d bytes, at most %d are stored", core.ErrResultTooLarge, len(text), maxResult)
	}
	if w := t.ResultWriter(); w != nil {
		if _, err := w.Write(text); err != nil {
			return fmt.Errorf("asynqlock: writing the result of a task: %w", err)
		}
	}
	if once {
		text = append([]byte{}, text...)
		kept.text.Store(&text)
	}
	return nil
}

// once has the handler run, unless another run has done the work: then the task gets that one's result.
func once(
	ctx context.Context, locker *core.Locker, key string, t *asynq.Task, run func(context.Context) error, opts []core.Option,
) (ran bool, err error) {
	text, err := core.Once(ctx, locker, key, func(locked context.Context) ([]byte, error) {
		ran = true
		var kept result
		if err := run(context.WithValue(locked, resultKey{}, &kept)); err != nil {
			return nil, err
		}
		if text := kept.text.Load(); text != nil {
			return *text, nil
		}
		return nil, nil
	}, opts...)
	if !ran && text != nil {
		return true, WriteResult(ctx, t, text)
	}
	return ran || err == nil, err
}
