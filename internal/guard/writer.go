package guard

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/felixge/httpsnoop"
)

// Watch returns w with all its interfaces, which reports what is written to it. known is asked what the
// framework knows of the answer; nil: nothing, and w sends 200 when the body begins without a status.
func Watch(w http.ResponseWriter, outcome *Outcome, known func() Known) http.ResponseWriter {
	outcome.known = known
	outcome.Passed()
	body := watchedBody{w, outcome}
	watched := httpsnoop.Wrap(w, httpsnoop.Hooks{
		WriteHeader: func(next httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
			return func(code int) {
				outcome.Passes()
				outcome.WriteHeader(outcome.sentFor(code))
				next(code)
				outcome.Passed()
			}
		},
		Write: func(httpsnoop.WriteFunc) httpsnoop.WriteFunc { return body.Write },
		ReadFrom: func(next httpsnoop.ReadFromFunc) httpsnoop.ReadFromFunc {
			return func(r io.Reader) (int64, error) {
				if outcome.recording.isOpen() {
					return io.Copy(body, r)
				}
				// The answer begins with the first byte of r, which may have none.
				n, err := io.Copy(body, io.LimitReader(r, firstBytes))
				if err != nil || n < firstBytes {
					return n, err
				}
				more, err := next(r)
				return n + more, err
			}
		},
		Flush: func(next httpsnoop.FlushFunc) httpsnoop.FlushFunc {
			return func() {
				outcome.Passes()
				outcome.Flush()
				next()
				outcome.Passed()
			}
		},
		Hijack: func(next httpsnoop.HijackFunc) httpsnoop.HijackFunc {
			return func() (net.Conn, *bufio.ReadWriter, error) {
				conn, buffered, err := next()
				if err == nil {
					outcome.Hijack()
				}
				return conn, buffered, err
			}
		},
	})
	flusher, flushes := watched.(http.Flusher)
	hijacker, hijacks := watched.(http.Hijacker)
	unwraps := unwrapping{watched, behind{w, outcome}}
	switch _, wraps := w.(interface{ Unwrap() http.ResponseWriter }); {
	case !wraps || flushes && hijacks:
		return watched
	case flushes:
		return struct {
			unwrapping
			http.Flusher
		}{unwraps, flusher}
	case hijacks:
		return struct {
			unwrapping
			http.Hijacker
		}{unwraps, hijacker}
	}
	return unwraps
}

// firstBytes is as much as net/http looks at itself before it copies in its own way.
const firstBytes = 512

// watchedBody writes the body of an answer.
type watchedBody struct {
	w       http.ResponseWriter
	outcome *Outcome
}

func (b watchedBody) Write(p []byte) (int, error) {
	b.outcome.Passes()
	b.outcome.WriteHeader(b.outcome.impliedNow())
	n, err := b.w.Write(p)
	b.outcome.Passed()
	return b.outcome.Wrote(p, n, err)
}

// unwrapping is a watched writer around one that can be unwrapped.
type unwrapping struct {
	http.ResponseWriter
	behind behind
}

func (u unwrapping) Unwrap() http.ResponseWriter { return u.behind }

// behind is what [http.ResponseController] finds inside of a watched writer that cannot do
// itself what is asked of it, but perhaps one inside of it can: it would be done behind our back.
type behind struct {
	http.ResponseWriter
	outcome *Outcome
}

func (b behind) FlushError() error {
	err := http.NewResponseController(b.ResponseWriter).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		b.outcome.Flush()
		b.outcome.Passed()
	}
	return err
}

func (b behind) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(b.ResponseWriter).Hijack()
	if err == nil {
		b.outcome.Hijack()
	}
	return conn, buffered, err
}

func (b behind) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// RefusedWriter writes an answer that begins with the status of a refusal: whatever somebody
// else answers, it is not taken for a success by mistake.
type RefusedWriter struct {
	http.ResponseWriter
	status int
	begun  bool
}

// WriteHeader sends another status, unless the answer has begun.
func (w *RefusedWriter) WriteHeader(status int) {
	if w.begun {
		return
	}
	w.begun = status >= http.StatusOK // the answer is to follow an informational one
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (w *RefusedWriter) Write(p []byte) (int, error) {
	w.Begin()
	return w.ResponseWriter.Write(p)
}

// Flush is FlushError.
func (w *RefusedWriter) Flush() { _ = w.FlushError() }

// FlushError sends what was written.
func (w *RefusedWriter) FlushError() error {
	w.Begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap is for [http.ResponseController].
func (w *RefusedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Begin sends the status of the refusal, unless the answer has begun.
func (w *RefusedWriter) Begin() {
	if !w.begun {
		w.WriteHeader(w.status)
	}
}

// Writer returns a writer for somebody else's answer, with Retry-After set.
func (r *Refusal) Writer(w http.ResponseWriter) *RefusedWriter {
	r.RetryHeader(w.Header())
	return &RefusedWriter{ResponseWriter: w, status: r.Status}
}
