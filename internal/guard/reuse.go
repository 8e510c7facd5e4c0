package guard

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"runtime"
	"sync/atomic"
)

// Received is a request as a guard has received it.
//
// Frameworks use a context again, for another request, as soon as the handler chain has returned. Middleware
// outside that answers before that, as timeouts do, leaves a goroutine behind in which the rest of the chain runs
// with a context that may be somebody else's. So a guard touches a context only where it was seen to be that of
// its request: in the goroutine of the framework itself, which gives the context away when it returns; or in
// another one, as long as the request is not over and the context has it still.
type Received struct {
	Request
	guard *Guard
	first *http.Request   // as it came
	ctx   context.Context // of first, and where the guards inside find this
	left  *http.Request   // that the context was given back
	outer *Received       // by the guard outside
	over  atomic.Bool     // the guard does not serve it any more
}

type receivedKey struct{}

func (g *Guard) receive(r Request) *Received {
	first := r.HTTP()
	in := &Received{Request: r, guard: g, first: first, outer: ReceivedIn(first.Context())}
	in.ctx = context.WithValue(first.Context(), receivedKey{}, in)
	return in
}

// ReceivedIn returns what the innermost guard has received that ctx comes from; nil: there is none.
func ReceivedIn(ctx context.Context) *Received {
	in, _ := ctx.Value(receivedKey{}).(*Received)
	return in
}

// HTTP returns the request as it came: the context may have another one by now.
func (in *Received) HTTP() *http.Request { return in.first }

// Route is unknown, too, where a handler of requests that no route matches was registered with the guard: it may do anything.
func (in *Received) Route() (pattern string, known bool) {
	pattern, known = in.Request.Route()
	return pattern, known && (pattern != "" || !in.IsFallback(in.guard))
}

// has reports whether the context has a request that is, or was made of, this one.
func (in *Received) has() bool {
	now := in.Request.HTTP()
	switch {
	case now == nil:
		return false
	case now == in.first, now == in.left, now.URL == in.first.URL: // which copies have, too
		return true
	}
	for made := ReceivedIn(now.Context()); made != nil; made = made.outer {
		if made == in {
			return true
		}
	}
	return false
}

// IsOurs reports whether the context may be touched. When the request is over, in a goroutine that the framework
// does not wait for, the context may be anybody's at any moment, and is not even looked at. That answer is final.
// Where no server serves the request, as in a test that calls a handler with a context that it has made, it need not
// be the framework's to give away.
func (in *Received) IsOurs() bool {
	framework, served := in.ServedBy(), in.ctx.Value(http.ServerContextKey) != nil
	if framework == "" || (in.ctx.Err() == nil || !served) && in.has() || IsCalledBy(framework) {
		return true
	}
	in.guard.late.Do(func() {
		in.guard.log.Each(in.ctx, slog.LevelError, "a guard has come back too late to its request, in a goroutine of middleware outside, "+
			"which must not answer before the handlers inside have returned: the framework gives their context to another request. "+
			"Put a timeout around the whole engine, or have the request's context end")
	})
	return false
}

// Logger gets the lines of the guard.
func (in *Received) Logger() *slog.Logger { return in.guard.log.Logger() }

// IsOver reports whether the guard has ended, so that nothing may be run under its lock.
func (in *Received) IsOver() bool { return in.over.Load() }

// Outer returns the request that middleware outside has after the handler, which has left another one: with all
// that was set on that, but with outer's own context, for the lock's has ended.
func (in *Received) Outer(outer, left *http.Request) *http.Request {
	HandBack(outer, left)
	in.left = left.WithContext(outer.Context())
	if body, ok := in.left.Body.(*guardedBody); ok {
		in.left.Body = body.ReadCloser
	}
	return in.left
}

// errNotOurs is why no handler runs.
var errNotOurs = errors.New("latchkey: the framework has taken the request's context back")

// End ends the goroutine unless the context may be touched: whatever the framework or other middleware does in it
// from now on, it would do to somebody else's request.
func (in *Received) End() {
	if !in.IsOurs() {
		runtime.Goexit()
	}
}

// FunctionName returns the name of a function in a stack.
func FunctionName(f any) string { return runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name() }

// IsCalledBy reports whether a function is on the stack of this goroutine. That takes microseconds.
func IsCalledBy(name string) bool {
	var calls [64]uintptr
	for skip := 1; ; skip += len(calls) {
		n := runtime.Callers(skip, calls[:])
		for frames := runtime.CallersFrames(calls[:n]); ; {
			frame, more := frames.Next()
			if frame.Function == name {
				return true
			}
			if !more {
				break
			}
		}
		if n < len(calls) {
			return false
		}
	}
}
