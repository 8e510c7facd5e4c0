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

// Outcome is that of a handler, as the adapter reports it: whether the work was done, so that the
// lock leaves its dedup window. Once an answer has begun, only its status counts. Most errors and
// panics after that come from a client that has left, and must not undo what was done.
type Outcome struct {
	status    int  // 0 until the answer has begun
	implied   int  // that it has if nobody writes one; 0: 200
	stated    bool // the handler has set that one
	failed    bool
	unseen    bool         // how the answer ended
	known     func() Known // nil: the framework knows nothing itself
	last      Known        // after the last call that has passed
	recording *recording   // nil: the answer is not stored
	refused   atomic.Bool  // by another goroutine behind http.TimeoutHandler
	url       *url.URL     // of the request, the same for all its guards
	header    http.Header  // of the response, the same for all its guards
	outer     *Outcome     // of the guard outside
}

type outcomeKey struct{}

// within returns a context in which guards inside find the outcome.
func (o *Outcome) within(ctx context.Context, r Request) context.Context {
	o.url, o.header, o.outer = r.HTTP().URL, r.ResponseHeader(), outcomeIn(ctx)
	return context.WithValue(ctx, outcomeKey{}, o)
}

func outcomeIn(ctx context.Context) *Outcome {
	o, _ := ctx.Value(outcomeKey{}).(*Outcome)
	return o
}

// refuseOuter reports to the guards outside that their request was refused inside, so that they do
// not take the answer for a success, whoever writes it. The context may come from another request,
// of which this one is a part: then both request and response differ. Middleware may have replaced
// one of them, as http.TimeoutHandler does with the response.
func refuseOuter(r Request) {
	own := reflect.ValueOf(r.ResponseHeader()).Pointer()
	for o := outcomeIn(r.HTTP().Context()); o != nil; o = o.outer {
		if o.url == r.HTTP().URL || reflect.ValueOf(o.header).Pointer() == own {
			o.refused.Store(true)
		}
	}
}

// Matters reports whether anything depends on the outcome of the handler that runs
// under ctx: whether its lock leaves a dedup window, or its answer is stored. Where not, the
// ResponseWriter can stay as it is.
func (o *Outcome) Matters(ctx context.Context) bool {
	if o.recording != nil {
		return true
	}
	lock, held := core.FromContext(ctx)
	return held && lock.Window() > 0
}

// IsRecorded reports whether the answer is stored: then all of it has to be written
// before the handler returns, also what reports an error.
func (o *Outcome) IsRecorded() bool { return o.recording != nil }

// Implied says which status the answer has if nobody writes one, and whether it is the handler that has set it.
func (o *Outcome) Implied(status int, stated bool) {
	if status >= http.StatusOK {
		o.implied, o.stated = status, stated
	}
}

// Known is what a framework itself knows of an answer: its status, which is the implied one until the answer has begun.
type Known struct {
	Begun  bool
	Status int
	Size   int64
}

// impliedNow is the status with which a body would begin now.
func (o *Outcome) impliedNow() int {
	if o.known == nil {
		return http.StatusOK
	}
	return o.known().Status
}

// sentFor is the status that is sent when the handler writes one. A framework that takes an informational status for the
// beginning of the answer drops those after it, and net/http sends 200.
func (o *Outcome) sentFor(code int) int {
	if o.known != nil {
		if k := o.known(); k.Begun && informs(k.Status) {
			return http.StatusOK
		}
	}
	return code
}

func (o *Outcome) look() Known {
	k := o.known()
	if !k.Begun {
		k.Status = 0 // it may change yet, and is asked for when the answer begins
	}
	return k
}

// Passes says that a call of the handler is about to go on to the framework's writer. What the framework knows has
// not changed since the last one, or somebody has written past the guard.
func (o *Outcome) Passes() {
	if o.known == nil {
		return
	}
	k := o.look()
	if k != o.last {
		o.recording.drop()
	}
	if k.Begun && o.status == 0 {
		o.WriteHeader(k.Status)
	}
}

// Passed says that such a call has returned.
func (o *Outcome) Passed() {
	if o.known != nil {
		o.last = o.look()
	}
}

// Committed says that the framework takes the answer for begun, with that status, and how many bytes it has written;
// -1: they cannot be compared with those that were recorded. Where anything differs somebody has written past the guard.
func (o *Outcome) Committed(status int, size int64) {
	if o.recording != nil && (!informs(status) && status != o.status || size >= 0 && size != o.recording.sent) {
		o.recording.drop()
	}
	o.WriteHeader(status)
}

// final returns the status of the answer, and whether it has begun.
func (o *Outcome) final() (status int, begun bool) {
	return cmp.Or(o.status, o.implied, http.StatusOK), o.status != 0
}

// WriteHeader says that the method is called. Of several calls the first counts:
// the client never sees the others.
func (o *Outcome) WriteHeader(code int) {
	if o.status == 0 && !informs(code) {
		o.status = code
		o.recording.begin(code, o.header)
	}
}

// informs reports whether the answer is to follow that status.
func informs(code int) bool { return code < http.StatusOK && code != http.StatusSwitchingProtocols }

// Wrote says what was written of the body, and with which result. It returns the one that the
// handler is to have.
func (o *Outcome) Wrote(p []byte, n int, err error) (int, error) {
	n, err = o.recording.wrote(p, n, err)
	if o.recording != nil {
		o.recording.sent += int64(n)
	}
	return n, err
}

// Flush says that the response is flushed, which answers with 200 unless there was a
// status before.
func (o *Outcome) Flush() {
	o.WriteHeader(http.StatusOK)
	o.recording.flushed()
}

// Hijack says that the handler has taken the connection, and with it the rest of the answer.
func (o *Outcome) Hijack() {
	o.WriteHeader(http.StatusSwitchingProtocols) // as far as anybody can see
	o.recording.drop()
}

// Fail says that the handler reports a failure. It counts unless an answer has begun.
func (o *Outcome) Fail() { o.failed = true }

// Unseen says that the framework's context was not the request's any more when the handler ended, so that nobody knows
// how the answer has ended.
func (o *Outcome) Unseen() {
	o.unseen, o.failed, o.known = true, true, nil
	o.recording.drop()
}

// isUnknown reports whether no answer was seen, although the handler may have done its work: it has said nothing at all,
// and its context, that of the lock, is over; or its answer was not seen.
func (o *Outcome) isUnknown(ctx context.Context, returned bool) bool {
	if o.status != 0 || o.refused.Load() {
		return false
	}
	return o.unseen || returned && !o.failed && !o.stated && ctx.Err() != nil
}

// isSuccess reports whether the status is below 400. No answer is a success, which net/http answers with 200,
// unless the handler has failed, or the outcome is unknown.
func (o *Outcome) isSuccess() bool {
	status, begun := o.final()
	return !o.refused.Load() && (begun || !o.failed) && status < http.StatusBadRequest
}

// Next runs a handler under ctx and reports its outcome, also when it panics.
type Next func(ctx context.Context, outcome *Outcome)

// errFailed makes core drop the dedup window after a handler that failed.
var errFailed = errors.New("the handler failed")

// run runs next under the lock that ctx holds.
func (g *Guard) run(ctx context.Context, r Request, next Next) error {
	var outcome Outcome
	watched := outcome.Matters(ctx)
	if watched {
		ctx = outcome.within(ctx, r)
	}
	returned := false
	defer func() {
		if !returned && outcome.status != 0 && outcome.isSuccess() {
			g.keepWindow(ctx)
		}
	}()
	next(ctx, &outcome)
	returned = true
	outcome.Passes()
	if !outcome.isSuccess() || watched && outcome.isUnknown(ctx, true) {
		return errFailed
	}
	return nil
}

// keepWindow releases the lock as after a success, while a panic is on its way: core,
// which would drop the window, then finds it released. The panic is not recovered, so that
// the one who recovers it outside sees where it came from.
func (g *Guard) keepWindow(ctx context.Context) {
	lock, held := core.FromContext(ctx)
	if !held || lock.Window() == 0 {
		return
	}
	if err := lock.Unlock(ctx); err != nil && !errors.Is(err, core.ErrNotHeld) {
		g.log.Limited(ctx, slog.LevelWarn, "a release failed after the work was done", "key", lock.Key(), "error", err)
	}
}
