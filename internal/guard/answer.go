package guard

import (
	"context"
	"net/http"

	"github.com/latchkey-go/latchkey/core"
)

// Answer is what a handler answers with, for adapters whose framework does not tell
// the status, or not in time: a middleware outside may keep it back until the body is
// complete. The adapter reports what is called on the ResponseWriter.
type Answer struct{ status int }

// Matters reports whether anything depends on the answer of the handler that runs
// under ctx: whether its lock leaves a dedup window. Where not, the ResponseWriter
// can stay as it is.
func Matters(ctx context.Context) bool {
	lock, held := core.FromContext(ctx)
	return held && lock.Window() > 0
}

// WriteHeader says that the method is called. Of several calls the first counts:
// the client never sees the others.
func (a *Answer) WriteHeader(code int) {
	informs := code < http.StatusOK && code != http.StatusSwitchingProtocols // the answer is to follow
	if a.status == 0 && !informs {
		a.status = code
	}
}

// Write says that a part of the body is written or flushed, which answers with 200
// unless there was a status before.
func (a *Answer) Write() { a.WriteHeader(http.StatusOK) }

// Succeeded reports whether the status is below 400. No answer at all is a success.
func (a *Answer) Succeeded() bool { return a.status < http.StatusBadRequest }

// HandBack gives to a request what was found out on the copy that the handler has
// worked with, for those outside who look for it there: the server, which removes
// the files of an upload by MultipartForm, and middleware that counts by Pattern.
func HandBack(outer, inner *http.Request) {
	if inner.MultipartForm != nil {
		outer.MultipartForm = inner.MultipartForm
	}
	if inner.Pattern != outer.Pattern {
		outer.Pattern = inner.Pattern
	}
}
