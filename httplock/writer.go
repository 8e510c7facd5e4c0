package httplock

import (
	"io"
	"net/http"

	"github.com/felixge/httpsnoop"

	"github.com/latchkey-go/latchkey/internal/guard"
)

// watch returns w with all its interfaces, which reports what is written to it.
func watch(w http.ResponseWriter, answer *guard.Answer) http.ResponseWriter {
	return httpsnoop.Wrap(w, httpsnoop.Hooks{
		WriteHeader: func(next httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
			return func(code int) {
				answer.WriteHeader(code)
				next(code)
			}
		},
		Write: func(next httpsnoop.WriteFunc) httpsnoop.WriteFunc {
			return func(p []byte) (int, error) {
				answer.Write()
				return next(p)
			}
		},
		ReadFrom: func(next httpsnoop.ReadFromFunc) httpsnoop.ReadFromFunc {
			return func(r io.Reader) (int64, error) {
				// The answer begins with the first byte of r, which may have none.
				n, err := io.Copy(first{w, answer}, io.LimitReader(r, firstBytes))
				if err != nil || n < firstBytes {
					return n, err
				}
				more, err := next(r)
				return n + more, err
			}
		},
		Flush: func(next httpsnoop.FlushFunc) httpsnoop.FlushFunc {
			return func() {
				answer.Write()
				next()
			}
		},
	})
}

// firstBytes is as much as net/http looks at itself before it copies in its own way.
const firstBytes = 512

// first writes the beginning of an answer.
type first struct {
	w      http.ResponseWriter
	answer *guard.Answer
}

func (f first) Write(p []byte) (int, error) {
	f.answer.Write()
	return f.w.Write(p)
}
