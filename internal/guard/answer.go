package guard

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/core"
)

// Answer is what a handler answers with, as its adapter reports it: whether the work
// was done, so that the lock leaves its dedup window. Once an answer has begun its
// status alone counts. What comes later, an error or a panic, is for the most part
// the client's doing, who has gone and would rather have the work done again.
type Answer struct {
	status  int // 0 until the answer has begun
	implied int // that it has if nobody writes one; 0: 200
	failed  bool
	record  *record     // nil: it is not to be sent again
	refused atomic.Bool // by another goroutine behind http.TimeoutHandler
	url     *url.URL    // of the request, the same for all guards that it goes through
	header  http.Header // of the response, likewise
	outer   *Answer     // what the context had before
}

type answerKey struct{}

// within returns a context in which guards inside find the answer.
func (a *Answer) within(ctx context.Context, r Request) context.Context {
	a.url, a.header, a.outer = r.HTTP().URL, r.ResponseHeader(), answerIn(ctx)
	return context.WithValue(ctx, answerKey{}, a)
}

func answerIn(ctx context.Context) *Answer {
	a, _ := ctx.Value(answerKey{}).(*Answer)
	return a
}

// refuseOuter says to the guards outside that a request of theirs was refused inside, so that
// they do not take the answer for a success, whoever writes it. The context may come from
// another request, of which this one is a part: then neither request nor response is the same.
// Middleware may have replaced one of them, http.TimeoutHandler the response.
func refuseOuter(r Request) {
	own := reflect.ValueOf(r.ResponseHeader()).Pointer()
	for a := answerIn(r.HTTP().Context()); a != nil; a = a.outer {
		if a.url == r.HTTP().URL || reflect.ValueOf(a.header).Pointer() == own {
			a.refused.Store(true)
		}
	}
}

// Matters reports whether anything depends on the answer of the handler that runs
// under ctx: whether its lock leaves a dedup window, or it is to be sent again. Where not, the
// ResponseWriter can stay as it is.
func (a *Answer) Matters(ctx context.Context) bool {
	if a.record != nil {
		return true
	}
	lock, held := core.FromContext(ctx)
	return held && lock.Window() > 0
}

// IsRecorded reports whether the answer is to be sent again: then all of it has to be written
// before the handler returns, also what reports an error.
func (a *Answer) IsRecorded() bool { return a.record != nil }

// Implied says which status the answer has if nobody writes one.
func (a *Answer) Implied(status int) {
	if status >= http.StatusOK {
		a.implied = status
	}
}

// final returns the status of the answer, and whether it has begun.
func (a *Answer) final() (status int, begun bool) {
	return cmp.Or(a.status, a.implied, http.StatusOK), a.status != 0
}

// WriteHeader says that the method is called. Of several calls the first counts:
// the client never sees the others.
func (a *Answer) WriteHeader(code int) {
	informs := code < http.StatusOK && code != http.StatusSwitchingProtocols // the answer is to follow
	if a.status == 0 && !informs {
		a.status = code
		a.record.begin(code, a.header)
	}
}

// Wrote says what was written of the body, and with which outcome. It returns the one that the
// handler is to have.
func (a *Answer) Wrote(p []byte, n int, err error) (int, error) { return a.record.wrote(p, n, err) }

// Flush says that the response is flushed, which answers with 200 unless there was a
// status before.
func (a *Answer) Flush() {
	a.WriteHeader(http.StatusOK)
	a.record.drop()
}

// Hijack says that the handler has taken the connection, and with it the rest of the answer.
func (a *Answer) Hijack() {
	a.WriteHeader(http.StatusSwitchingProtocols) // as far as anybody can see
	a.record.drop()
}

// Fail says that the handler reports a failure. It counts unless an answer has begun.
func (a *Answer) Fail() { a.failed = true }

// succeeded reports whether the status is below 400. No answer at all is a success,
// unless the handler has failed.
func (a *Answer) succeeded() bool {
	status, begun := a.final()
	return !a.refused.Load() && (begun || !a.failed) && status < http.StatusBadRequest
}

// Next runs a handler under ctx and reports its answer, also when it panics.
type Next func(ctx context.Context, answer *Answer)

// errFailed makes core drop the dedup window after a handler that failed.
var errFailed = errors.New("the handler failed")

// run runs next under the lock that ctx holds.
func (g *Guard) run(ctx context.Context, r Request, next Next) error {
	var answer Answer
	if answer.Matters(ctx) {
		ctx = answer.within(ctx, r)
	}
	returned := false
	defer func() {
		if !returned && answer.status != 0 && answer.succeeded() {
			g.keepWindow(ctx)
		}
	}()
	next(ctx, &answer)
	returned = true
	if !answer.succeeded() {
		return errFailed
	}
	return nil
}

// keepWindow releases the lock as after a success, while a panic is on its way: core,
// which would drop the window, then finds it released. The panic is not recovered,
// for who recovers it outside shall see where it came from.
func (g *Guard) keepWindow(ctx context.Context) {
	lock, held := core.FromContext(ctx)
	if !held || lock.Window() == 0 {
		return
	}
	if err := lock.Unlock(ctx); err != nil && !errors.Is(err, core.ErrNotHeld) {
		g.log(slog.LevelWarn, "latchkey: a release failed after the work was done", "error", err)
	}
}
