package guard

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/felixge/httpsnoop"
)

// Watch returns w with all its interfaces, which reports what is written to it. implied is
// the status that w sends when the body begins without one; nil: 200.
func Watch(w http.ResponseWriter, answer *Answer, implied func() int) http.ResponseWriter {
	begin := func() {
		if implied == nil {
			answer.WriteHeader(http.StatusOK)
		} else {
			answer.WriteHeader(implied())
		}
	}
	watched := httpsnoop.Wrap(w, httpsnoop.Hooks{
		WriteHeader: func(next httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
			return func(code int) {
				answer.WriteHeader(code)
				next(code)
			}
		},
		Write: func(next httpsnoop.WriteFunc) httpsnoop.WriteFunc {
			return func(p []byte) (int, error) {
				begin()
				n, err := next(p)
				return answer.Wrote(p, n, err)
			}
		},
		ReadFrom: func(next httpsnoop.ReadFromFunc) httpsnoop.ReadFromFunc {
			return func(r io.Reader) (int64, error) {
				if answer.record.isOpen() {
					return io.Copy(recording{w, begin, answer}, r)
				}
				// The answer begins with the first byte of r, which may have none.
				n, err := io.Copy(first{w, begin}, io.LimitReader(r, firstBytes))
				if err != nil || n < firstBytes {
					return n, err
				}
				more, err := next(r)
				return n + more, err
			}
		},
		Flush: func(next httpsnoop.FlushFunc) httpsnoop.FlushFunc {
			return func() {
				answer.Flush()
				next()
			}
		},
		Hijack: func(next httpsnoop.HijackFunc) httpsnoop.HijackFunc {
			return func() (net.Conn, *bufio.ReadWriter, error) {
				conn, buffered, err := next()
				if err == nil {
					answer.Hijack()
				}
				return conn, buffered, err
			}
		},
	})
	flusher, flushes := watched.(http.Flusher)
	hijacker, hijacks := watched.(http.Hijacker)
	unwraps := unwrapping{watched, behind{w, answer}}
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

// first writes the beginning of an answer.
type first struct {
	w     http.ResponseWriter
	begin func()
}

func (f first) Write(p []byte) (int, error) {
	f.begin()
	return f.w.Write(p)
}

// recording writes an answer that is to be sent again.
type recording struct {
	w      http.ResponseWriter
	begin  func()
	answer *Answer
}

func (r recording) Write(p []byte) (int, error) {
	r.begin()
	n, err := r.w.Write(p)
	return r.answer.Wrote(p, n, err)
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
	answer *Answer
}

func (b behind) FlushError() error {
	err := http.NewResponseController(b.ResponseWriter).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		b.answer.Flush()
	}
	return err
}

func (b behind) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(b.ResponseWriter).Hijack()
	if err == nil {
		b.answer.Hijack()
	}
	return conn, buffered, err
}

func (b behind) Unwrap() http.ResponseWriter { return b.ResponseWriter }
